// Vectorized loops: float2 and float4 where addresses are proved to allow it, an unrolled loop otherwise.
#include <algorithm>

#include "compiler_core/base/status.h"
#include "compiler_core/codegen_cuda/describe.h"
#include "compiler_core/codegen_cuda/kernel_printer.h"
#include "compiler_core/codegen_cuda/vector_access.h"
#include "compiler_core/ir/visitor.h"

namespace tuner::cuda {

// A load that one vector does for all lanes.
struct KernelPrinter::VectorLoad {
  Expr load;
  Expr condition;  // under which it may touch memory, the same for all lanes; undefined: always
};

namespace {

std::string vector_type(DType dtype, int64_t lanes) {
  const std::string_view element = dtype == DType::kInt8     ? "char"
                                   : dtype == DType::kUInt8  ? "uchar"
                                   : dtype == DType::kInt16  ? "short"
                                   : dtype == DType::kUInt32 ? "uint"
                                   : dtype == DType::kInt64  ? "longlong"
                                   : dtype == DType::kUInt64 ? "ulonglong"
                                   : dtype_bytes(dtype) == 2 ? "ushort"
                                                             : c_type(dtype);
  if (lanes > 4) return lanes * dtype_bytes(dtype) == 16 ? "uint4" : "uint2";  // moved as it is
  return str(element, lanes);
}

// What is moved as it is: four bytes are a word, of which the compiler then makes no single ones.
std::string moved_type(DType dtype, int64_t lanes) {
  return lanes * dtype_bytes(dtype) == 4 && lanes == 4 ? "unsigned" : vector_type(dtype, lanes);
}

// "make_float4(0.0f, 0.0f, 0.0f, 0.0f)" of the texts of the lanes.
std::string made_vector(DType dtype, const std::vector<std::string>& lanes) {
  const auto n = static_cast<int64_t>(lanes.size());  // of more than four only zeros are made
  if (n > 4) return n * dtype_bytes(dtype) == 16 ? "make_uint4(0, 0, 0, 0)" : "make_uint2(0, 0)";
  std::string text = str("make_", vector_type(dtype, n), "(");
  for (size_t i = 0; i < lanes.size(); ++i) text += (i == 0 ? "" : ", ") + lanes[i];
  return text + ")";
}

bool is_zero_int(const Expr& e) {
  int64_t value = 1;
  return is_const_int(e, &value) && value == 0;
}

// select(condition, load, 0)
bool is_zero_padded(const Expr& e) {
  return e->kind == ExprKind::kSelect && e->operands[1]->kind == ExprKind::kLoad &&
         ((e->operands[2]->kind == ExprKind::kFloatImm && e->operands[2]->float_value == 0) ||
          is_zero_int(e->operands[2]));
}

Expr in_lane(const Expr& e, const Var& lane, int64_t number) { return substitute(e, {{lane, Expr(number)}}); }

std::vector<Expr> in_lane(const std::vector<Expr>& indices, const Var& lane, int64_t number) {
  std::vector<Expr> result;
  for (const Expr& index : indices) result.push_back(in_lane(index, lane, number));
  return result;
}

// e with each load replaced by a lane of its vector; select(condition, load, 0) too, for the vector holds
// zeros where the load touches no memory.
template <class Loads>
Expr with_vectors(const Expr& e, const Loads& vectors, const Var& lane) {
  for (const auto& [known, vector] : vectors) {
    if (equal(e, known.load)) return load(vector, {Expr(lane)});
    if (known.condition.defined() && is_zero_padded(e) && equal(e->operands[1], known.load) &&
        equal(e->operands[0], known.condition))
      return load(vector, {Expr(lane)});
  }
  return map_children(e, [&](const Expr& operand) { return with_vectors(operand, vectors, lane); });
}

}  // namespace

void KernelPrinter::vector_loop(const Stmt& s, const RangeMap& ranges, bool told) {
  if (s->extent == 8 || s->extent == 16) {
    RangeMap inside = ranges;
    inside.bind(s->var, s->extent);
    if (moves_vectors(s->body, s->var, s->extent, inside))
      return vector_stmt(s->body, s->var, s->extent, inside);
  }
  const int64_t lanes = s->extent % 4 == 0 ? 4 : s->extent % 2 == 0 ? 2 : 1;
  if (lanes > 1 && s->extent > lanes) {  // several vectors: an unrolled loop over them
    const Var outer = make_var(s->var->name + ".vector"), inner = make_var(s->var->name);
    Stmt body = substitute(s->body, {{s->var, Expr(outer) * lanes + inner}});
    body = make_for(inner, lanes, std::move(body), s->axis, LoopKind::kVectorized);
    const Stmt split = make_for(outer, s->extent / lanes, std::move(body), s->axis, LoopKind::kUnrolled);
    return scalar_loop(simplify(split, ranges), ranges, told);
  }
  RangeMap inside = ranges;
  inside.bind(s->var, s->extent);
  if (lanes > 1 && worth_vectors(s->body, s->var, lanes, inside))
    return vector_stmt(s->body, s->var, lanes, inside);
  scalar_loop(s, ranges, told);
}

// Stores under guards that all lanes decide alike, with at least one vector among the accesses.
bool KernelPrinter::worth_vectors(const Stmt& s, const Var& lane, int64_t lanes,
                                  const RangeMap& ranges) const {
  switch (s->kind) {
    case StmtKind::kStore:
      return lane_access(s->buffer, s->indices, lane, lanes, ranges) == LaneAccess::kVector ||
             !vector_loads(s->value, lane, lanes, ranges).empty();
    case StmtKind::kIf: {
      if (s->else_body != nullptr || !same_for_all_lanes(s->condition, lane, lanes, ranges)) return false;
      RangeMap inside = ranges;
      inside.assume(s->condition);
      return worth_vectors(s->body, lane, lanes, inside);
    }
    case StmtKind::kSeq:
      return !s->stmts.empty() && std::all_of(s->stmts.begin(), s->stmts.end(), [&](const Stmt& child) {
        return worth_vectors(child, lane, lanes, ranges);
      });
    default:
      return false;
  }
}

// Stores of 8 or 16 bytes that are loaded as they are, or are zeros: of 16 bits eight elements at once, of 8
// bits eight or sixteen.
bool KernelPrinter::moves_vectors(const Stmt& s, const Var& lane, int64_t lanes,
                                  const RangeMap& ranges) const {
  if (s->kind == StmtKind::kIf && s->else_body == nullptr &&
      same_for_all_lanes(s->condition, lane, lanes, ranges)) {
    RangeMap inside = ranges;
    inside.assume(s->condition);
    return moves_vectors(s->body, lane, lanes, inside);
  }
  if (s->kind != StmtKind::kStore) return false;
  const int64_t bytes = lanes * dtype_bytes(s->buffer->dtype);
  if (bytes != 16 && bytes != 8) return false;
  const Expr& v = s->value;
  return v->dtype == s->buffer->dtype && (v->kind == ExprKind::kLoad || is_zero_padded(v)) &&
         lane_access(s->buffer, s->indices, lane, lanes, ranges) == LaneAccess::kVector &&
         vector_loads(v, lane, lanes, ranges).size() == 1;
}

void KernelPrinter::vector_stmt(const Stmt& s, const Var& lane, int64_t lanes, const RangeMap& ranges) {
  if (s->kind == StmtKind::kSeq) {
    for (const Stmt& child : s->stmts) vector_stmt(child, lane, lanes, ranges);
    return;
  }
  if (s->kind == StmtKind::kStore) return vector_store(*s, lane, lanes, ranges);
  const Expr condition = simplify(in_lane(s->condition, lane, 0), ranges);
  const std::string why = describe_guard(*s, kernel_, ranges);
  RangeMap inside = places_.assuming(ranges, condition);
  inside.assume(s->condition);
  if (is_store_if(s, ranges)) {
    const std::string around = begin_stores(condition, why, ranges);
    vector_stmt(s->body, lane, lanes, inside);
    guard_ = around;
    return;
  }
  open_guard(places_.value(condition, ranges), why);
  vector_stmt(s->body, lane, lanes, inside);
  text_.close();
}

// Loads that a vector can do, each with the conditions of the selects it stands in. A load under a condition
// that differs between lanes stays a load of each lane.
std::vector<KernelPrinter::VectorLoad> KernelPrinter::vector_loads(const Expr& value, const Var& lane,
                                                                   int64_t lanes,
                                                                   const RangeMap& ranges) const {
  std::vector<VectorLoad> found;
  const auto add = [&](const Expr& e, const Expr& condition) {
    for (VectorLoad& known : found)
      if (equal(known.load, e)) {
        // Twice, under other conditions: one of them is enough to touch memory, so both must hold alike.
        if (condition.defined() != known.condition.defined() ||
            (condition.defined() && !equal(condition, known.condition)))
          known.load = {};
        return;
      }
    found.push_back({e, condition});
  };
  const auto walk = [&](const auto& self, const Expr& e, const Expr& condition, bool same) -> void {
    if (e->kind == ExprKind::kLoad) {
      if (same && lane_access(e->buffer, e->operands, lane, lanes, ranges) == LaneAccess::kVector)
        add(e, condition);
      return;  // loads in an index are gathered one by one
    }
    if (e->kind != ExprKind::kSelect) {
      for (const Expr& operand : e->operands) self(self, operand, condition, same);
      return;
    }
    const Expr& own = e->operands[0];
    const bool same_here = same && same_for_all_lanes(own, lane, lanes, ranges);
    const auto with = [&](const Expr& more) { return condition.defined() ? condition && more : more; };
    self(self, own, condition, same);
    self(self, e->operands[1], with(own), same_here);
    self(self, e->operands[2], with(unary(UnaryOp::kNot, own)), same_here);
  };
  walk(walk, value, {}, true);
  std::erase_if(found, [](const VectorLoad& l) { return !l.load.defined(); });
  return found;
}

std::string KernelPrinter::vector_address(const Buffer& buffer, const std::vector<Expr>& indices,
                                          const Var& lane, const RangeMap& ranges, const std::string& type) {
  return str("*(", type, "*)&", places_.element(buffer, in_lane(indices, lane, 0), ranges));
}

void KernelPrinter::vector_store(const StmtNode& s, const Var& lane, int64_t lanes, const RangeMap& ranges) {
  const bool whole = lane_access(s.buffer, s.indices, lane, lanes, ranges) == LaneAccess::kVector;
  const std::vector<VectorLoad> loads = vector_loads(s.value, lane, lanes, ranges);
  // The vector in memory, or zeros where the load may not touch it.
  const auto loaded = [&](const VectorLoad& l, const std::string& type) {
    const Expr condition =
        l.condition.defined() ? simplify(in_lane(l.condition, lane, 0), ranges) : bool_imm(true);
    const bool always = condition->kind == ExprKind::kIntImm && condition->int_value != 0;
    const RangeMap inside = always ? ranges : places_.assuming(ranges, condition);
    const std::string memory =
        vector_address(l.load->buffer, l.load->operands, lane, inside, "const " + type);
    if (always) return memory;
    const std::vector<std::string> zeros(static_cast<size_t>(lanes), constant_text(0, l.load->dtype));
    const std::string zero = type == "unsigned" ? "0u" : made_vector(l.load->dtype, zeros);
    const Expr holds = places_.named(condition, ranges);
    if (is_load_if(l.load->buffer, in_lane(l.load->operands, lane, 0), holds, ranges))
      return load_if(holds, memory.substr(1), zero, ranges);
    return str("(", expr_text_.value(holds, ranges), ") ? ", memory, " : ", zero);
  };
  const std::string to = vector_type(s.buffer->dtype, lanes);
  // Moved as it is, with zeros where the load may not touch memory: no variable in between.
  const Expr& v = s.value;
  const bool is_load = v->kind == ExprKind::kLoad;
  if (whole && loads.size() == 1 && (is_load || is_zero_padded(v)) && s.buffer->dtype == v->dtype) {
    const std::string moved = moved_type(v->dtype, lanes);
    return text_.line(
        stored(vector_address(s.buffer, s.indices, lane, ranges, moved), loaded(loads[0], moved)));
  }

  std::vector<std::pair<VectorLoad, Buffer>> vectors;
  for (const VectorLoad& l : loads) {
    const Buffer vector =
        make_buffer(l.load->buffer->name + "_lanes", l.load->dtype, {lanes}, MemoryScope::kRegister);
    const std::string type = vector_type(vector->dtype, lanes), memory = loaded(l, type);
    text_.line(str("const ", type, " ", names_.declare(vector), " = ", memory, ";"));
    expr_text_.name_vector(vector);
    vectors.emplace_back(l, vector);
  }
  const Expr with = with_vectors(s.value, vectors, lane);
  std::vector<std::string> values;
  for (int64_t i = 0; i < lanes; ++i) values.push_back(places_.value(in_lane(with, lane, i), ranges));
  if (whole) {
    text_.line(
        stored(vector_address(s.buffer, s.indices, lane, ranges, to), made_vector(s.buffer->dtype, values)));
  } else {
    for (int64_t i = 0; i < lanes; ++i)
      text_.line(stored(places_.element(s.buffer, in_lane(s.indices, lane, i), ranges),
                        values[static_cast<size_t>(i)]));
  }
}

}  // namespace tuner::cuda
