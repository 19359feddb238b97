// parallel, vectorize, vectorize_rows, unroll, bind: how a loop runs.
#include <algorithm>

#include "compiler_core/arith/meaning.h"
#include "compiler_core/schedule/rewrite.h"

namespace tuner {

using namespace rewrite;

namespace {

bool is_thread_axis(LoopKind kind) { return kind >= LoopKind::kBlockX; }

bool has_loop_below(const Stmt& loop) {
  bool found = false;
  // A dot product is one operation of each lane, whatever its loop; a tile intrinsic is loops.
  visit(loop->body, [&](const Stmt& s) {
    found |= (s->kind == StmtKind::kFor && s->loop != LoopKind::kDot) || is_tile_intrinsic(*s);
  });
  return found;
}

// A reduce axis: its lanes are combined and then added to the one element, which starts elsewhere.
Status check_lane_reduction(const Stmt& loop) {
  const StmtNode* s = loop->body.get();
  while (s->kind == StmtKind::kIf && s->else_body == nullptr) s = s->body.get();
  if (s->kind != StmtKind::kStore || s->reduce == ReduceOp::kNone)
    return invalid_config("a reduce axis around more than one reduction");
  if (s->first.defined())
    return invalid_config("a reduce axis whose iterations may start ", s->buffer->name,
                          "; decompose_reduction first");
  return Status::ok();
}

Status check_vectorized(const Stmt& loop) {
  if (has_loop_below(loop)) return invalid_config("not innermost; reorder it inside first");
  return loop->axis == AxisKind::kReduce ? check_lane_reduction(loop) : Status::ok();
}

// True when the guards let at most one iteration through: an axis of extent 1 split into tiles.
bool one_iteration_only(const Path& path, const std::vector<Expr>& guards) {
  constexpr int64_t kMaxTried = 4096;
  const Stmt& loop = path.back();
  RangeMap inside = ranges_at(path);
  visit(loop->body, [&](const Stmt& s) {
    if (s->kind == StmtKind::kFor) inside.bind(s->var, s->extent);
  });
  int64_t passing = 0;
  for (int64_t i = 0; i < loop->extent && i < kMaxTried && passing < 2; ++i)
    passing += std::none_of(guards.begin(), guards.end(), [&](const Expr& guard) {
      const Expr here = simplify(substitute(guard, {{loop->var, Expr(i)}}), inside);
      return here->kind == ExprKind::kIntImm && here->int_value == 0;
    });
  return passing < 2 && loop->extent <= kMaxTried;
}

// Iterations that store the same elements would race. `guards` and `own` stand between the loop and s.
Status check_stores(const Path& path, const Stmt& s, std::vector<Expr> guards, std::vector<Buffer> own) {
  if (s == nullptr) return Status::ok();
  const Stmt& loop = path.back();
  if (is_tile_intrinsic(*s)) return check_stores(path, meaning_of(*s), std::move(guards), std::move(own));
  if (s->kind == StmtKind::kAllocate) own.push_back(s->buffer);
  if (s->kind == StmtKind::kStore && std::find(own.begin(), own.end(), s->buffer) == own.end()) {
    const bool by_index = std::any_of(s->indices.begin(), s->indices.end(),
                                      [&](const Expr& index) { return uses_var(index, loop->var); });
    if (!by_index && !one_iteration_only(path, guards))
      return invalid_config("every iteration would store the same elements of ", s->buffer->name);
  }
  RETURN_IF_ERROR(check_stores(path, s->else_body, guards, own));
  if (s->kind == StmtKind::kIf && uses_var(s->condition, loop->var)) guards.push_back(s->condition);
  RETURN_IF_ERROR(check_stores(path, s->body, guards, own));
  for (const Stmt& child : s->stmts) RETURN_IF_ERROR(check_stores(path, child, guards, own));
  return Status::ok();
}

Status check_independent(const Path& path) {
  return path.back()->extent > 1 ? check_stores(path, path.back()->body, {}, {}) : Status::ok();
}

// The loops directly below s, through guards, are vectorized.
bool is_around_vectors(const Stmt& s) {
  switch (s->kind) {
    case StmtKind::kFor:
      return s->loop == LoopKind::kVectorized;
    case StmtKind::kIf:
      return is_around_vectors(s->body) && (s->else_body == nullptr || is_around_vectors(s->else_body));
    case StmtKind::kSeq:
      return std::all_of(s->stmts.begin(), s->stmts.end(), is_around_vectors);
    default:
      return false;
  }
}

Status check_vector_rows(const Path& path) {
  constexpr int64_t kMaxRows = 16;  // all are written out, and a vector has no more lanes to transpose into
  const Stmt& loop = path.back();
  if (loop->axis == AxisKind::kReduce)
    return invalid_config("a reduce axis; its iterations add to the same element");
  if (loop->extent > kMaxRows)
    return invalid_config("has ", loop->extent, " iterations; at most ", kMaxRows, ", split it");
  if (!is_around_vectors(loop->body)) return invalid_config("not directly around a vectorized loop");
  bool stores_only = true;
  visit(loop->body, [&](const Stmt& s) { stores_only &= s->kind != StmtKind::kAllocate; });
  if (!stores_only) return invalid_config("a stage is computed inside; only stores may be");
  return check_independent(path);
}

Status check_parallel(const Path& path) {
  const Stmt& loop = path.back();
  if (loop->axis == AxisKind::kReduce)
    return invalid_config("a reduce axis; its iterations add to the same element");
  for (size_t i = 0; i + 1 < path.size(); ++i)
    if (path[i]->kind == StmtKind::kFor)
      return invalid_config("inside loop ", path[i]->var->name, "; only an outermost loop may be parallel");
  return check_independent(path);
}

bool is_block_axis(LoopKind kind) {
  return kind == LoopKind::kBlockX || kind == LoopKind::kBlockY || kind == LoopKind::kBlockZ ||
         kind == LoopKind::kClusterX || kind == LoopKind::kClusterY;
}

// A reduce axis over threads: warps are combined by butterflies, so powers of two up to a warp, then whole
// warps.
Status check_cross_thread(const Stmt& loop, LoopKind kind) {
  if (kind != LoopKind::kThreadX)
    return invalid_config("a reduce axis; only ", loop_kind_name(LoopKind::kThreadX),
                          " can reduce across threads");
  const int64_t n = loop->extent;
  const bool in_warp = n <= 32 && (n & (n - 1)) == 0, whole_warps = n % 32 == 0 && n <= 1024;
  if (in_warp || whole_warps) return Status::ok();
  return invalid_config("a reduce axis of extent ", n,
                        "; across threads it must be a power of two up to 32 or a multiple of 32 up to 1024");
}

bool uses_below(const Stmt& s, const Var& var) {
  bool found = false;
  visit_exprs(s, [&](const Expr& e) { found |= e->kind == ExprKind::kVar && e->var == var; });
  return found;
}

Status check_bound(const Path& path, LoopKind kind) {
  const Stmt& loop = path.back();
  if (!is_thread_axis(kind)) return invalid_config(loop_kind_name(kind), " is not a thread axis");
  if (loop->axis == AxisKind::kReduce) return check_cross_thread(loop, kind);
  RETURN_IF_ERROR(check_independent(path));
  if (kind == LoopKind::kVirtualThread) return Status::ok();
  Status status;
  const auto compare = [&](const Stmt& outer, const Stmt& inner) {
    const Stmt& other = outer->var == loop->var ? inner : outer;
    if (other->kind != StmtKind::kFor || other->loop != kind || other->var == loop->var) return;
    // Two loops over the same threads: the inner one is cooperative, so its work is that of no single thread.
    const bool cooperative = !is_block_axis(kind) && !uses_below(inner, outer->var);
    if (!cooperative)
      status = invalid_config(other->var->name, " on the same path is bound to ", loop_kind_name(kind),
                              " already");
  };
  for (const Stmt& s : path) compare(s, loop);
  visit(loop->body, [&](const Stmt& s) { compare(loop, s); });
  return status;
}

Stmt of_kind(const Stmt& loop, LoopKind kind) {
  return make_for(loop->var, loop->extent, loop->body, loop->axis, kind);
}

}  // namespace

Status Schedule::annotate(const Axis& axis, LoopKind kind) {
  if (axis.var == nullptr) return invalid_config("the axis handle is empty");
  const Path path = find_loop(program_.body, axis.var);
  if (path.empty()) return invalid_config("not an axis of the Program (split, fused or never there)");
  if (path.back()->loop != LoopKind::kSerial)
    return invalid_config("is ", loop_kind_name(path.back()->loop), " already");
  RETURN_IF_ERROR(check_no_step(path.back()));
  if (kind == LoopKind::kVectorized) RETURN_IF_ERROR(check_vectorized(path.back()));
  if (kind == LoopKind::kVectorRows) RETURN_IF_ERROR(check_vector_rows(path));
  if (kind == LoopKind::kParallel) RETURN_IF_ERROR(check_parallel(path));
  if (is_thread_axis(kind)) RETURN_IF_ERROR(check_bound(path, kind));
  program_.body = replace_at(path, of_kind(path.back(), kind));
  const Var* other = twin(axis.var);
  if (other == nullptr || kind == LoopKind::kParallel) return Status::ok();
  const Path twin_path = find_loop(program_.body, *other);
  if (twin_path.empty() || twin_path.back()->loop != LoopKind::kSerial) return Status::ok();
  if (kind == LoopKind::kVectorized && has_loop_below(twin_path.back())) return Status::ok();
  if (kind == LoopKind::kVectorRows && !is_around_vectors(twin_path.back()->body)) return Status::ok();
  program_.body = replace_at(twin_path, of_kind(twin_path.back(), kind));
  return Status::ok();
}

namespace {
std::string call_text(std::string_view name, const Program& program, const Axis& axis) {
  return str(name, "(", label(program.body, axis.var), ")");
}
}  // namespace

void Schedule::parallel(Axis axis) {
  if (refused()) return;
  const std::string call = call_text("parallel", program_, axis);
  apply(call, [&] { return annotate(axis, LoopKind::kParallel); });
  if (!refused()) record(call);
}

void Schedule::vectorize(Axis axis) {
  if (refused()) return;
  const std::string call = call_text("vectorize", program_, axis);
  apply(call, [&] { return annotate(axis, LoopKind::kVectorized); });
  if (!refused()) record(call);
}

void Schedule::vectorize_rows(Axis axis) {
  if (refused()) return;
  const std::string call = call_text("vectorize_rows", program_, axis);
  apply(call, [&] { return annotate(axis, LoopKind::kVectorRows); });
  if (!refused()) record(call);
}

void Schedule::unroll(Axis axis) {
  if (refused()) return;
  const std::string call = call_text("unroll", program_, axis);
  apply(call, [&] { return annotate(axis, LoopKind::kUnrolled); });
  if (!refused()) record(call);
}

void Schedule::bind(Axis axis, LoopKind thread_axis) {
  if (refused()) return;
  const std::string call =
      str("bind(", label(program_.body, axis.var), ", ", loop_kind_name(thread_axis), ")");
  apply(call, [&] {
    if (!is_thread_axis(thread_axis))
      return invalid_config(loop_kind_name(thread_axis), " is not a thread axis");
    return annotate(axis, thread_axis);
  });
  if (!refused()) record(call);
}

}  // namespace tuner
