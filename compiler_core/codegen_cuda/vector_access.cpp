#include "compiler_core/codegen_cuda/vector_access.h"

#include <algorithm>

#include "compiler_core/ir/layout.h"

namespace tuner::cuda {
namespace {

bool is_lane(const Expr& e, const Var& lane) { return e->kind == ExprKind::kVar && e->var == lane; }

// (e < 0) for all lanes or for none: e = multiple of `lanes` + lane, lane in [0, lanes). A constant that is
// not a multiple would put the border between two lanes.
bool sign_is_same(const LinearForm& e, const Var& lane, int64_t lanes, const RangeMap& ranges) {
  LinearForm rest{.constant = e.constant};
  bool has_lane = false;
  for (const auto& [term, factor] : e.terms) {
    if (is_lane(term, lane)) {
      if (factor != 1) return false;
      has_lane = true;
      continue;
    }
    if (uses_var(term, lane)) return false;
    rest.terms.emplace_back(term, factor);
  }
  return !has_lane || divisible(to_expr(rest), lanes, ranges);
}

LinearForm difference(const Expr& a, const Expr& b, int64_t constant, const RangeMap& ranges) {
  LinearForm form = linear_form(a - b, ranges);
  form.constant += constant;
  return form;
}

bool comparison_is_same(const Expr& e, const Var& lane, int64_t lanes, const RangeMap& ranges) {
  const Expr &a = e->operands[0], &b = e->operands[1];
  if (a->dtype != DType::kInt64) return false;
  switch (e->binary_op) {
    case BinaryOp::kLt:  // a - b < 0
    case BinaryOp::kGe:  // not
      return sign_is_same(difference(a, b, 0, ranges), lane, lanes, ranges);
    case BinaryOp::kLe:  // a - b - 1 < 0
    case BinaryOp::kGt:
      return sign_is_same(difference(a, b, -1, ranges), lane, lanes, ranges);
    default:
      return false;
  }
}

}  // namespace

LaneAccess lane_access(const Buffer& buffer, const std::vector<Expr>& indices, const Var& lane, int64_t lanes,
                       const RangeMap& ranges) {
  if (std::none_of(indices.begin(), indices.end(), [&](const Expr& i) { return uses_var(i, lane); }))
    return LaneAccess::kSame;
  // The vector types that there are, and what has addresses.
  if (dtype_bytes(buffer->dtype) > 4 || buffer->dtype == DType::kBool) return LaneAccess::kScattered;
  const bool in_memory = buffer->scope == MemoryScope::kGlobal || buffer->scope == MemoryScope::kShared;
  if (!in_memory && !lies_in_words(*buffer)) return LaneAccess::kScattered;
  const LinearForm offset = linear_form(storage_offset(*buffer, indices), ranges);
  LinearForm first{.constant = offset.constant};
  int64_t step = 0;
  for (const auto& [term, factor] : offset.terms) {
    if (is_lane(term, lane))
      step = factor;
    else if (uses_var(term, lane))
      return LaneAccess::kScattered;
    else
      first.terms.emplace_back(term, factor);
  }
  if (step == 0) return LaneAccess::kSame;
  return step == 1 && divisible(to_expr(first), lanes, ranges) ? LaneAccess::kVector : LaneAccess::kScattered;
}

bool lies_in_words(const BufferNode& buffer) {
  return buffer.scope == MemoryScope::kRegister && dtype_bytes(buffer.dtype) == 1 &&
         buffer.dtype != DType::kBool && buffer.elements() > 1;
}

bool same_for_all_lanes(const Expr& condition, const Var& lane, int64_t lanes, const RangeMap& ranges) {
  const auto is_same = [&](const Expr& e) { return same_for_all_lanes(e, lane, lanes, ranges); };
  if (!uses_var(condition, lane)) return true;
  if (condition->kind == ExprKind::kUnary && condition->unary_op == UnaryOp::kNot)
    return is_same(condition->operands[0]);
  if (condition->kind != ExprKind::kBinary) return false;
  if (condition->binary_op == BinaryOp::kAnd || condition->binary_op == BinaryOp::kOr)
    return is_same(condition->operands[0]) && is_same(condition->operands[1]);
  return comparison_is_same(condition, lane, lanes, ranges);
}

}  // namespace tuner::cuda
