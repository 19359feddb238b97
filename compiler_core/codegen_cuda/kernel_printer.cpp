#include "compiler_core/codegen_cuda/kernel_printer.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "compiler_core/arith/meaning.h"
#include "compiler_core/base/status.h"
#include "compiler_core/codegen_cuda/describe.h"
#include "compiler_core/codegen_cuda/printed_body.h"
#include "compiler_core/codegen_cuda/vector_access.h"
#include "compiler_core/ir/intrinsic.h"
#include "compiler_core/ir/layout.h"
#include "compiler_core/ir/visitor.h"

namespace tuner::cuda {
namespace {

constexpr char kDimensions[] = "xyz";

std::set<const BufferNode*> stored_buffers(const Stmt& body) {
  std::set<const BufferNode*> stored;
  visit(body, [&](const Stmt& s) {
    if (s->kind == StmtKind::kStore) stored.insert(s->buffer.get());
  });
  return stored;
}

// Every identifier of the intrinsics that the kernel uses: their text must not meet a variable of ours.
void reserve_intrinsic_words(const Stmt& body, Names& names) {
  visit(body, [&](const Stmt& s) {
    if (s->kind != StmtKind::kIntrinsic) return;
    const Intrinsic* intrinsic = find_intrinsic(s->name);
    CHECK(intrinsic != nullptr) << "intrinsic " << s->name << " is not registered";
    std::string word;
    for (const char c : intrinsic->cuda + " ") {
      if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
        word += c;
      } else {
        if (!word.empty()) names.reserve(word);
        word.clear();
      }
    }
  });
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

}  // namespace

KernelPrinter::KernelPrinter(const GpuKernel& kernel)
    : kernel_(kernel),
      body_(with_step_masks(simplified_body(kernel), kernel, masks_)),
      index_names_(kernel, body_),
      expr_text_(names_),
      places_(names_, index_names_, expr_text_),
      text_(names_),
      rounds_(kernel.name, masks_, {names_, index_names_, expr_text_, places_, text_}),
      barrier_comments_(describe_barriers(body_)),
      fences_tiles_(threads_write_tiles(body_)),
      fetches_(fetches_by_itself(body_)) {
  names_.reserve(kernel.name);
  names_.reserve("load_if");
  names_.reserve("store_if");
  stored_ = stored_buffers(body_);
  reserve_intrinsic_words(body_, names_);
  for (const Buffer& b : kernel.params) places_.declare(b);
  for (const Buffer& b : kernel.shared) places_.declare(b);
  for (const KernelTensorMap& m : kernel.tensor_maps)
    map_names_.push_back(names_.declare(m.buffer->name + ".map"));
}

std::string KernelPrinter::print() {
  head_comment();
  signature();
  RangeMap ranges = kernel_ranges(kernel_);
  define_shared();
  define_indices(ranges);
  stmt(body_, ranges, false);
  text_.close();
  text_.drop_unused_definitions();
  return rounds_.tables() + text_.text();
}

void KernelPrinter::head_comment() {
  const int64_t threads = kernel_.block[0] * kernel_.block[1] * kernel_.block[2];
  text_.line(str("// ", kernel_.name, ": ", kernel_.grid[0], " x ", kernel_.grid[1], " x ", kernel_.grid[2],
                 " blocks of ", kernel_.block[0], " x ", kernel_.block[1], " x ", kernel_.block[2], " = ",
                 threads, " threads"));
  for (const std::string& output : describe_block_output(kernel_, body_))
    text_.comment(str("  a block computes ", output));
  describe_memory();
}

void KernelPrinter::describe_memory() {
  for (size_t i = 0; i < kernel_.shared.size(); ++i) {
    const BufferNode& b = *kernel_.shared[i];
    const int64_t bytes = storage_elements(b) * dtype_bytes(b.dtype);
    text_.comment(str("  shared memory: ", names_.of(kernel_.shared[i]), " ", describe_shape(b),
                      b.layout.empty() ? "" : ", layout " + b.layout, ", ", bytes, " bytes at ",
                      kernel_.shared_offsets[i]));
  }
  if (kernel_.shared_bytes > 0)
    text_.comment(str("  shared memory of a block: ", kernel_.shared_bytes, " bytes"));
  for (size_t i = 0; i < kernel_.tensor_maps.size(); ++i)
    text_.comment(str("  ", map_names_[i], ": ", kernel_.tensor_maps[i].buffer->name, " as ",
                      to_text(kernel_.tensor_maps[i].map), ", the innermost dimension first"));
  std::string registers;
  visit(body_, [&](const Stmt& s) {
    if (s->kind == StmtKind::kAllocate)
      registers += str(registers.empty() ? "" : ", ", s->buffer->name, " ", s->buffer->elements());
  });
  if (!registers.empty()) text_.comment("  registers of a thread for: " + registers);
}

void KernelPrinter::signature() {
  std::string parameters;
  for (const Buffer& b : kernel_.params)
    parameters += str(parameters.empty() ? "" : ", ", stored_.contains(b.get()) ? "" : "const ",
                      c_type(b->dtype), "* __restrict__ ", names_.of(b));
  for (const std::string& map : map_names_)
    parameters += str(parameters.empty() ? "" : ", ", "const __grid_constant__ CUtensorMap ", map);
  const int64_t threads = kernel_.block[0] * kernel_.block[1] * kernel_.block[2];
  const std::string bounds =
      kernel_.min_blocks > 0 ? str(threads, ", ", kernel_.min_blocks) : std::to_string(threads);
  text_.line(str("extern \"C\" __global__ void __launch_bounds__(", bounds, ")"));
  text_.open(str(kernel_.name, "(", parameters, ")"));
}

void KernelPrinter::define_shared() {
  if (kernel_.shared.empty()) return;
  text_.line(
      str("extern __shared__ __align__(", shared_alignment(body_), ") unsigned char shared_memory[];"));
  for (size_t i = 0; i < kernel_.shared.size(); ++i) {
    const Buffer& b = kernel_.shared[i];
    const std::string start = kernel_.shared_offsets[i] == 0
                                  ? "shared_memory"
                                  : str("(shared_memory + ", kernel_.shared_offsets[i], ")");
    text_.line(str(c_type(b->dtype), "* const ", names_.of(b), " = (", c_type(b->dtype), "*)", start,
                   ";  // ", describe_shape(*b), b->layout.empty() ? "" : ", layout " + b->layout));
  }
  if (kernel_.shared_nowhere < 0) return;
  nowhere_ = names_.declare("nowhere");
  text_.line(str("unsigned char* const ", nowhere_, " = shared_memory + ", kernel_.shared_nowhere,
                 ";  // where stores go that do not count"));
}

void KernelPrinter::define_indices(RangeMap& ranges) {
  const auto define = [&](const char* source, const std::array<Var, 3>& vars,
                          const std::array<int64_t, 3>& sizes) {
    for (int d = 0; d < 3; ++d) {
      if (vars[d] == nullptr || sizes[d] == 1) continue;  // of size 1: the ranges make it 0
      const std::string& name = names_.declare(vars[d], vars[d]->name);
      if (d > 0 && vars == kernel_.thread_vars && has_uniform_rows())
        text_.line(str("const int ", name, " = __shfl_sync(0xffffffffu, (int)", source, ".", kDimensions[d],
                       ", 0);  // 0..", sizes[d] - 1,
                       ", the same in all lanes of a warp, which the compiler is told so"));
      else
        text_.line(str("const int ", name, " = ", source, ".", kDimensions[d], ";  // 0..", sizes[d] - 1));
    }
  };
  define("blockIdx", kernel_.block_vars, kernel_.grid);
  define("threadIdx", kernel_.thread_vars, kernel_.block);
  define_warp();
  define_names(nullptr, ranges);
}

void KernelPrinter::define_names(const VarNode* loop, RangeMap& ranges) {
  for (const IndexNames::Named& n : index_names_.defined_in(loop)) {
    const auto bounds = const_bounds(n.value, ranges);
    const bool fits = bounds.has_value() && bounds->first > INT32_MIN && bounds->second < INT32_MAX;
    const std::string text =
        n.values.empty() ? expr_text_.index(n.value, ranges) : rounds_.looked_up(n, ranges);
    if (bounds.has_value()) ranges.bind(n.var, bounds->first, bounds->second + 1);
    if (!fits) expr_text_.is_wide(n.var);
    const std::string& name = names_.declare(n.var, n.var->name);
    text_.definition(name, str("const ", fits ? "int " : "long long ", name, " = ", text, ";  // ",
                               with_c_names(n.about)));
  }
}

void KernelPrinter::stmt(const Stmt& s, const RangeMap& ranges, bool told) {
  if (s == nullptr) return;
  if (!in_run_ && is_unit_run(s)) return unit_run(s, ranges, told);
  const bool is_nest = s->kind == StmtKind::kFor || s->kind == StmtKind::kStore || s->kind == StmtKind::kIf;
  if (!told && is_nest && only_store(s) != nullptr) {
    text_.comment(describe_nest(s));
    told = true;
  }
  switch (s->kind) {
    case StmtKind::kFor:
      return loop(s, ranges, told);
    case StmtKind::kSeq:
      for (const Stmt& child : s->stmts) stmt(child, ranges, told);
      return;
    case StmtKind::kIf:
      return guard(s, ranges, told);
    case StmtKind::kStore:
      return copies_ ? async_store(*s, nullptr, 1, ranges) : store(*s, ranges);
    case StmtKind::kAllocate:
      return allocate(s, ranges);
    case StmtKind::kBarrier:
      return barrier(s);
    case StmtKind::kIntrinsic:
      return intrinsic(*s, ranges);
    case StmtKind::kAsync:
      return async(s, ranges);
  }
}

void KernelPrinter::loop(const Stmt& s, const RangeMap& ranges, bool told) {
  if (s->extent == 1) {  // no loop: the ranges make its variable 0 wherever it stands
    RangeMap inside = ranges;
    inside.bind(s->var, 1);
    return stmt(simplify(s->body, inside), inside, told);
  }
  if (copies_ && s->loop == LoopKind::kVectorized) return async_loop(s, ranges);
  if (s->loop == LoopKind::kVectorized) return vector_loop(s, ranges, told);
  if (s->loop == LoopKind::kDot) return dot(*s, ranges);
  scalar_loop(s, ranges, told);
}

void KernelPrinter::scalar_loop(const Stmt& s, const RangeMap& ranges, bool told) {
  const bool unrolled = prints_unrolled(*s);
  RangeMap inside = ranges;
  rounds_.define_before(s->var.get(), inside);
  if (!told && !unrolled) text_.comment(describe_loop(*s));
  const std::vector<UnitTile> tiles_around = unit_tiles_;
  if (!unrolled) name_unit_tiles(*s, ranges);
  const std::optional<Stages> stages = unrolled ? std::nullopt : begin_stages(*s);  // counters
  text_.line(unrolled ? "#pragma unroll" : "#pragma unroll 1");
  names_.open();
  const std::string name = names_.declare(s->var, s->var->name);
  text_.open(str("for (int ", name, " = 0; ", name, " < ", s->extent, "; ++", name, ")"));
  inside.bind(s->var, s->extent);
  rounds_.begin(s->var, name, inside);
  define_names(s->var.get(), inside);
  if (!unrolled) places_.enter_loop(s->var);
  stmt(s->body, inside, told);
  places_.leave_loop(s->var);
  if (stages.has_value()) end_stages(*stages);
  unit_tiles_ = tiles_around;
  text_.close();
  names_.close();
}

void KernelPrinter::guard(const Stmt& s, const RangeMap& ranges, bool told) {
  // Waiting where nothing is under way costs nothing, and a compiler must see that every way passes the wait.
  if (only_lands(s->body) && s->else_body == nullptr) return stmt(s->body, ranges, told);
  if (is_first_thread_alone(*s)) {
    open_guard(str(warp_, " == 0 && elect_one()"), "one thread of the block");
    stmt(s->body, places_.assuming(ranges, s->condition), told);
    return text_.close();
  }
  const std::string why = describe_guard(*s, kernel_, ranges);
  if (is_store_if(s, ranges)) {
    const std::string around = begin_stores(simplify(s->condition, ranges), why, ranges);
    stmt(s->body, places_.assuming(ranges, s->condition), told);
    guard_ = around;
    return;
  }
  open_guard(places_.value(s->condition, ranges), why);
  stmt(s->body, places_.assuming(ranges, s->condition), told);
  if (s->else_body != nullptr) {
    text_.open_else();
    stmt(s->else_body, places_.assuming(ranges, simplify(unary(UnaryOp::kNot, s->condition), ranges)), told);
  }
  text_.close();
}

void KernelPrinter::open_guard(const std::string& condition, const std::string& why) {
  text_.open(str("if (", condition, ")"), with_c_names(why));
}

void KernelPrinter::store(const StmtNode& s, const RangeMap& ranges) {
  const std::string target = places_.element(s.buffer, s.indices, ranges);
  // x = x + y is how the IR says it; x += y is what people write.
  const Expr& v = s.value;
  if (v->kind == ExprKind::kBinary && v->binary_op == BinaryOp::kAdd &&
      v->operands[0]->kind == ExprKind::kLoad && equal(v->operands[0], load(s.buffer, s.indices)))
    return text_.line(str(target, " += ", places_.value(v->operands[1], ranges), ";"));
  const Expr named_value = places_.named(simplify(v, ranges), ranges);
  const std::optional<std::string> loaded = guarded_load(named_value, ranges);
  text_.line(stored(target, loaded ? *loaded : expr_text_.value(named_value, ranges)));
}

// The text has no scope of its own for an allocation: its name stays taken until the braces around it end.
void KernelPrinter::allocate(const Stmt& s, const RangeMap& ranges) {
  const Buffer& b = s->buffer;
  const std::string name = names_.declare(b);
  const std::string size = b->elements() == 1 ? "" : str("[", b->elements(), "]");
  // Small elements lie together in registers, for matrix units and for vectors.
  const bool together = dtype_bytes(b->dtype) < 4 && b->elements() > 1;
  const char* const aligned = lies_in_words(*b) ? "__align__(16) " : together ? "__align__(4) " : "";
  text_.line(str(aligned, c_type(b->dtype), " ", name, size, ";  // ",
                 b->elements() == 1 ? "one" : describe_shape(*b), ", in registers"));
  stmt(s->body, ranges, false);
}

void KernelPrinter::intrinsic(const StmtNode& s, const RangeMap& ranges) {
  const Intrinsic* i = find_intrinsic(s.name);
  CHECK(i != nullptr) << "intrinsic " << s.name << " is not registered";
  std::string text = i->cuda, operands;
  for (size_t n = s.operands.size(); n-- > 0;) {  // from the last: $1 is a prefix of $10
    const Expr& operand = s.operands[n];
    const IntrinsicOperand& o = i->operands[n];
    const std::string place = str("$", n);
    const bool in_memory = o.place == IntrinsicOperand::Place::kShared && o.unit_place == nullptr;
    for (int64_t run = in_memory ? o.registers - o.run : 0; run > 0; run -= o.run)
      text = replaced(std::move(text), str(place, ":", run),
                      str("(&", places_.element(operand->buffer, of_lane(o, operand, run), ranges), ")"));
    const std::vector<Expr> first = of_lane(o, operand, 0);
    text = replaced(std::move(text), str("*", place), places_.element(operand->buffer, first, ranges));
    // Of several places those of all iterations would take too many registers.
    const std::string at = in_memory && o.registers > o.run
                               ? "&" + places_.element(operand->buffer, first, ranges)
                           : *o.unit_address != '\0' ? unit_tile(o, operand, ranges)
                                                     : places_.address(operand->buffer, first, ranges);
    text = replaced(std::move(text), place, str("(", at, ")"));
    operands = str(places_.element(operand->buffer, operand->operands, ranges), operands.empty() ? "" : ", ",
                   operands);
  }
  text_.comment(str(s.name, " of ", operands, ": ", i->threads, " threads together"));
  text_.line(text);
}

// Where a lane goes for its element `reg` of an operand.
std::vector<Expr> KernelPrinter::of_lane(const IntrinsicOperand& o, const Expr& operand, int64_t reg) const {
  if (o.place != IntrinsicOperand::Place::kShared || o.unit_place != nullptr) return operand->operands;
  // lower/gpu.h: a warp or a warpgroup lies along threadIdx.x.
  return in_buffer(operand->operands, o.layout(Expr(kernel_.thread_vars[0]), Expr(reg)));
}

void KernelPrinter::barrier(const Stmt& s) {
  if (fences_tiles_)
    text_.line(
        "asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\");  // what this thread wrote is "
        "there for tensor cores");
  CHECK(s->scope == MemoryScope::kShared || s->scope == MemoryScope::kRegister) << "a barrier of a cluster";
  text_.line(str(s->scope == MemoryScope::kShared ? "__syncthreads();" : "__syncwarp();", "  // ",
                 with_c_names(barrier_comments_.at(s.get()))));
}

}  // namespace tuner::cuda
