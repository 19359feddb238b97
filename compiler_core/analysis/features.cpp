#include "compiler_core/analysis/features.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>

#include "compiler_core/arith/meaning.h"
#include "compiler_core/ir/visitor.h"

namespace tuner {
namespace {

constexpr size_t kLevels = 6;    // serial loops around the hot statement that are described, innermost first
constexpr size_t kOperands = 2;  // loads of the hot statement that are described one by one
constexpr int64_t kLineBytes = 64;

struct Loop {
  const VarNode* var;
  int64_t extent;
  LoopKind kind;
  AxisKind axis;
};

// A store with the loops around it, outermost first.
struct Nest {
  const StmtNode* store = nullptr;
  std::vector<Loop> loops;
  int guards = 0;
  double runs = 1;
};

// Values of loop variables at one point; few, so a list is fastest.
using Point = std::vector<std::pair<const VarNode*, int64_t>>;

double value_at(const Expr& e, const Point& point) {
  switch (e->kind) {
    case ExprKind::kIntImm:
      return static_cast<double>(e->int_value);
    case ExprKind::kVar:
      for (const auto& [var, value] : point)
        if (var == e->var.get()) return static_cast<double>(value);
      return 0;
    case ExprKind::kBinary: {
      const double a = value_at(e->operands[0], point), b = value_at(e->operands[1], point);
      switch (e->binary_op) {
        case BinaryOp::kAdd:
          return a + b;
        case BinaryOp::kSub:
          return a - b;
        case BinaryOp::kMul:
          return a * b;
        case BinaryOp::kFloorDiv:
          return b == 0 ? 0 : std::floor(a / b);
        case BinaryOp::kFloorMod:
          return b == 0 ? 0 : a - b * std::floor(a / b);
        case BinaryOp::kMin:
          return std::min(a, b);
        case BinaryOp::kMax:
        case BinaryOp::kAtLeast:
          return std::max(a, b);
        default:
          return 0;
      }
    }
    case ExprKind::kSelect:
      return value_at(e->operands[1], point);
    case ExprKind::kCast:
      return value_at(e->operands[0], point);
    default:
      return 0;
  }
}

// One access of the hot statement: how far each loop around moves each of its indices. Exact for affine
// indices.
struct HotAccess {
  const BufferNode* buffer;
  std::vector<std::vector<double>> span;  // [loop][dimension]: |index at the loop's end - index at 0|

  HotAccess(const BufferNode* b, const std::vector<Expr>& indices, const std::vector<Loop>& loops)
      : buffer(b) {
    for (const Loop& loop : loops) {
      const Point end = {{loop.var, loop.extent - 1}};
      std::vector<double>& row = span.emplace_back();
      for (const Expr& index : indices) row.push_back(std::abs(value_at(index, end) - value_at(index, {})));
    }
  }

  bool moves(size_t loop) const {
    return std::any_of(span[loop].begin(), span[loop].end(), [](double s) { return s > 0; });
  }

  // Bytes of the cache lines touched by the loops from `first` inwards.
  double footprint(size_t first) const {
    double bytes = 1;
    for (size_t d = 0; d < buffer->shape.size(); ++d) {
      double width = 1;
      for (size_t l = first; l < span.size(); ++l) width += span[l][d];
      width = std::min(width, static_cast<double>(buffer->shape[d]));
      if (d + 1 == buffer->shape.size())
        width = std::ceil(width * static_cast<double>(dtype_bytes(buffer->dtype)) / kLineBytes) * kLineBytes;
      bytes *= width;
    }
    return buffer->shape.empty() ? static_cast<double>(dtype_bytes(buffer->dtype)) : bytes;
  }

  // Elements between neighbours along this loop: 1 contiguous, 0 the same element.
  double stride(size_t loop, int64_t extent) const {
    double elements = 0, pitch = 1;
    for (size_t d = buffer->shape.size(); d-- > 0;) {
      elements += span[loop][d] * pitch;
      pitch *= static_cast<double>(buffer->shape[d]);
    }
    return extent > 1 ? elements / static_cast<double>(extent - 1) : 0;
  }
};

struct Survey {
  std::vector<Nest> nests;
  double allocated_bytes = 0, register_bytes = 0;
  int loops = 0;

  void walk(const Stmt& s, Nest& around) {
    if (s == nullptr) return;
    switch (s->kind) {
      case StmtKind::kFor: {
        ++loops;
        around.loops.push_back({s->var.get(), s->extent, s->loop, s->axis});
        const double runs = around.runs;
        around.runs *= static_cast<double>(s->extent);
        walk(s->body, around);
        around.runs = runs;
        around.loops.pop_back();
        return;
      }
      case StmtKind::kIf:
        ++around.guards;
        walk(s->body, around);
        --around.guards;
        walk(s->else_body, around);
        return;
      case StmtKind::kStore: {
        Nest nest = around;
        nest.store = s.get();
        nests.push_back(std::move(nest));
        return;
      }
      case StmtKind::kAllocate: {
        double bytes = static_cast<double>(dtype_bytes(s->buffer->dtype));
        for (const int64_t extent : s->buffer->shape) bytes *= static_cast<double>(extent);
        (s->buffer->scope == MemoryScope::kGlobal ? allocated_bytes : register_bytes) += bytes;
        walk(s->body, around);
        return;
      }
      default:
        walk(s->body, around);
        for (const Stmt& child : s->stmts) walk(child, around);
    }
  }

  const Nest* hottest() const {
    const Nest* best = nullptr;
    for (const Nest& n : nests) {
      const bool reduces = n.store->reduce != ReduceOp::kNone;
      const bool best_reduces = best != nullptr && best->store->reduce != ReduceOp::kNone;
      if (best == nullptr || (reduces != best_reduces ? reduces : n.runs > best->runs)) best = &n;
    }
    return best;
  }
};

// Names and values side by side, so that they cannot drift apart.
class Sheet {
 public:
  void add(std::string name, double value) {
    names.push_back(std::move(name));
    values.push_back(static_cast<float>(value));
  }
  void add_log(std::string name, double value) {
    add("log2(" + std::move(name) + ")", std::log2(1 + std::max(value, 0.0)));
  }

  std::vector<std::string> names;
  std::vector<float> values;
};

bool is_written_out(LoopKind kind) { return kind == LoopKind::kUnrolled || kind == LoopKind::kVectorRows; }
bool runs_as_loop(LoopKind kind) {
  return kind != LoopKind::kVectorized && kind != LoopKind::kDot && !is_written_out(kind);
}

// The statement that runs most, as one iteration of its serial loops.
struct Body {
  const Nest* nest;  // null: the Program stores nothing
  std::vector<Loop> loops;
  std::vector<HotAccess> loads;
  double lanes = 1, unrolled_spatial = 1, unrolled_reduce = 1, parallel = 1;
  double group =
      1;  // elements of a lane that one dot product takes lie side by side: the next lane is as many further
  double vector_loads = 0, scalar_loads = 0, strided_loads = 0;  // as many as there are different addresses

  double multiplies() const { return unrolled_spatial * unrolled_reduce; }
};

void count_loops(Body& body) {
  for (const Loop& l : body.loops) {
    const auto extent = static_cast<double>(l.extent);
    if (l.kind == LoopKind::kVectorized) body.lanes *= extent;
    if (is_written_out(l.kind))
      (l.axis == AxisKind::kSpatial ? body.unrolled_spatial : body.unrolled_reduce) *= extent;
    if (l.kind == LoopKind::kParallel) body.parallel *= extent;
    if (l.kind == LoopKind::kDot) body.group *= extent;
  }
}

void count_loads(Body& body) {
  const std::vector<Loop>& loops = body.loops;
  for (const HotAccess& a : body.loads) {
    double n = 1;
    bool along_lanes = false, strided = false;
    for (size_t l = 0; l < loops.size(); ++l) {
      if (is_written_out(loops[l].kind) && a.moves(l)) n *= static_cast<double>(loops[l].extent);
      if (loops[l].kind != LoopKind::kVectorized || !a.moves(l)) continue;
      along_lanes = true;
      strided = a.stride(l, loops[l].extent) > body.group;
    }
    (strided ? body.strided_loads : along_lanes ? body.vector_loads : body.scalar_loads) += n;
  }
}

Body body_of(const Nest* hot) {
  Body body{.nest = hot};
  if (hot == nullptr) return body;
  body.loops = hot->loops;
  visit(hot->store->value, [&](const Expr& e) {
    if (e->kind == ExprKind::kLoad && e->buffer->scope == MemoryScope::kGlobal)
      body.loads.emplace_back(e->buffer.get(), e->operands, body.loops);
  });
  count_loops(body);
  count_loads(body);
  return body;
}

void add_body(const Body& body, Sheet& sheet) {
  const double loads = body.vector_loads + body.scalar_loads + body.strided_loads;
  sheet.add_log("runs", body.nest != nullptr ? body.nest->runs : 0);
  sheet.add_log("lanes", body.lanes);
  sheet.add_log("accumulators", body.unrolled_spatial);
  sheet.add_log("unrolled_reduce", body.unrolled_reduce);
  sheet.add_log("multiplies_in_body", body.multiplies());
  sheet.add_log("vector_loads_in_body", body.vector_loads);
  sheet.add_log("scalar_loads_in_body", body.scalar_loads);
  sheet.add_log("strided_loads_in_body", body.strided_loads);
  sheet.add("multiplies_per_load", body.multiplies() / std::max(loads, 1.0));
  sheet.add_log("parallel_iterations", body.parallel);
  sheet.add("guards", body.nest != nullptr ? body.nest->guards : 0);
}

// Serial loops from the inside out; level 0 is the body of unrolled and vectorized loops.
void add_levels(const Body& body, Sheet& sheet) {
  constexpr double kFlops = 2;
  const std::vector<Loop>& loops = body.loops;
  std::vector<size_t> serial;
  for (size_t l = loops.size(); l-- > 0;)
    if (runs_as_loop(loops[l].kind) && loops[l].extent > 1) serial.push_back(l);
  double inner_runs = body.multiplies() * body.lanes;
  for (size_t level = 0; level < kLevels; ++level) {
    const bool there = level < serial.size();
    const std::string of = "loop" + std::to_string(level) + ".";
    const size_t first = there ? serial[level] : 0;
    double bytes = 0;
    for (const HotAccess& a : body.loads) bytes += a.footprint(first);
    if (there) inner_runs *= static_cast<double>(loops[first].extent);
    sheet.add_log(of + "extent", there ? static_cast<double>(loops[first].extent) : 0);
    sheet.add(of + "reduces", there && loops[first].axis == AxisKind::kReduce ? 1 : 0);
    sheet.add_log(of + "bytes", bytes);
    sheet.add_log(of + "flops_per_byte", kFlops * inner_runs / std::max(bytes, 1.0));
  }
  for (size_t i = 0; i < kOperands; ++i)
    for (size_t level = 0; level < 3; ++level) {
      const bool there = i < body.loads.size() && level < serial.size();
      sheet.add_log("operand" + std::to_string(i) + ".loop" + std::to_string(level) + ".bytes",
                    there ? body.loads[i].footprint(serial[level]) : 0);
    }
}

// The rest of the Program: copies, the write-out, buffers.
void add_rest(const Survey& all, const Nest* hot, Sheet& sheet) {
  double other_runs = 0, scatter = 0;
  for (const Nest& n : all.nests) {
    if (&n == hot) continue;
    double vector = 1;
    for (const Loop& l : n.loops)
      if (l.kind == LoopKind::kVectorized) vector = static_cast<double>(l.extent);
    other_runs += n.runs / vector;
    if (!is_result(n.store->buffer->role)) continue;
    const HotAccess out(n.store->buffer.get(), n.store->indices, n.loops);
    for (size_t l = 0; l < n.loops.size(); ++l)
      if (n.loops[l].kind == LoopKind::kVectorized) scatter = out.stride(l, n.loops[l].extent);
  }
  sheet.add_log("other_runs", other_runs);
  sheet.add_log("output_stride", scatter);
  sheet.add_log("workspace_bytes", all.allocated_bytes);
  sheet.add_log("tile_bytes", all.register_bytes);
  sheet.add("stores", static_cast<double>(all.nests.size()));
  sheet.add("loops", all.loops);
}

Sheet survey(const Program& program) {
  Survey all;
  Nest top;
  const Stmt body_of_loops = with_meanings(program.body);
  all.walk(body_of_loops, top);
  const Nest* const hot = all.hottest();
  const Body body = body_of(hot);
  Sheet sheet;
  add_body(body, sheet);
  add_levels(body, sheet);
  add_rest(all, hot, sheet);
  sheet.add("packs_ahead", program.packing != nullptr ? 1 : 0);
  return sheet;
}

}  // namespace

std::vector<float> program_features(const Program& program) { return survey(program).values; }

const std::vector<std::string>& program_feature_names() {
  static const std::vector<std::string> names = survey(Program{}).names;
  return names;
}

}  // namespace tuner
