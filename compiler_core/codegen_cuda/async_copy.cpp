#include "compiler_core/codegen_cuda/async_copy.h"

#include "compiler_core/codegen_cuda/vector_access.h"
#include "compiler_core/ir/visitor.h"

namespace tuner::cuda {
namespace {

Status check_below(const Stmt& s, RangeMap ranges, const Var& lane, int64_t lanes, bool copies) {
  if (s == nullptr) return Status::ok();
  Var inner_lane = lane;
  if (s->kind == StmtKind::kFor) {
    ranges.bind(s->var, s->extent);
    if (copies && s->loop == LoopKind::kVectorized) inner_lane = s->var, lanes = s->extent;
  }
  if (copies && s->kind == StmtKind::kStore) return async_vector(*s, lane, lanes, ranges).status();
  if (copies && s->kind == StmtKind::kIf && lane != nullptr &&
      !same_for_all_lanes(s->condition, lane, lanes, ranges))
    return invalid_config("an asynchronous copy is guarded by ", to_text(s->condition),
                          ", which the elements of a vector decide differently");
  RangeMap otherwise = ranges;
  if (s->kind == StmtKind::kIf) {
    ranges.assume(s->condition);
    otherwise.assume(simplify(unary(UnaryOp::kNot, s->condition), otherwise));
  }
  copies |= is_async(*s, "copy");
  RETURN_IF_ERROR(check_below(s->body, ranges, inner_lane, lanes, copies));
  RETURN_IF_ERROR(check_below(s->else_body, otherwise, lane, lanes, copies));
  for (const Stmt& child : s->stmts) RETURN_IF_ERROR(check_below(child, ranges, lane, lanes, copies));
  return Status::ok();
}

}  // namespace

Result<AsyncVector> async_vector(const StmtNode& store, const Var& lane, int64_t lanes,
                                 const RangeMap& ranges) {
  const auto refused = [&](const auto&... why) {
    return invalid_config("the asynchronous copy to ", store.buffer->name, " ", why...);
  };
  AsyncVector result;
  Expr value = store.value;
  while (value->kind == ExprKind::kSelect && is_zero(value->operands[2])) {
    const Expr& own = value->operands[0];
    if (lane != nullptr && !same_for_all_lanes(own, lane, lanes, ranges))
      return refused("asks for each element by itself whether ", to_text(own));
    result.condition = result.condition.defined() ? result.condition && own : own;
    value = value->operands[1];
  }
  if (value->kind != ExprKind::kLoad || value->buffer->scope != MemoryScope::kGlobal ||
      value->dtype != store.buffer->dtype)
    return refused("computes ", to_text(store.value), "; expected what lies in global memory, or zeros");
  const auto is_vector = [&](const Buffer& buffer, const std::vector<Expr>& indices) {
    return lane == nullptr || lane_access(buffer, indices, lane, lanes, ranges) == LaneAccess::kVector;
  };
  result.bytes = lanes * dtype_bytes(store.buffer->dtype);
  if (result.bytes != 4 && result.bytes != 8 && result.bytes != 16)
    return refused("copies ", result.bytes, " bytes at a time; expected 4, 8 or 16 (vectorize)");
  if (!is_vector(store.buffer, store.indices) || !is_vector(value->buffer, value->operands))
    return refused("copies ", lanes,
                   " elements at a time, which are not shown to lie side by side and aligned");
  const auto first = [&](const Expr& e) {
    return lane == nullptr ? e : simplify(substitute(e, {{lane, Expr(0)}}), ranges);
  };
  std::vector<Expr> at;
  for (const Expr& index : value->operands) at.push_back(first(index));
  result.load = load(value->buffer, std::move(at));
  if (!result.condition.defined()) return result;
  result.condition = first(result.condition);
  const bool always = result.condition->kind == ExprKind::kIntImm && result.condition->int_value != 0;
  if (always) result.condition = Expr();
  return result;
}

Status check_async_copies(const GpuKernel& kernel) {
  return check_below(kernel.body, kernel_ranges(kernel), nullptr, 1, false);
}

}  // namespace tuner::cuda
