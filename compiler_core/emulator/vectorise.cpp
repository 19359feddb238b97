#include "compiler_core/emulator/vectorise.h"

#include "compiler_core/arith/simplify.h"
#include "compiler_core/ir/visitor.h"

namespace tuner::emulation {
namespace {

constexpr int64_t kMostLanes = 64;  // more only makes the code longer

// Coefficient of `var` in an index in which it stands at most as a term of its own.
std::optional<int64_t> stride_of(const Expr& index, const Var& var) {
  if (!uses_var(index, var)) return 0;
  int64_t stride = 0;
  for (const auto& [term, coefficient] : linear_form(index).terms) {
    if (term->kind == ExprKind::kVar && term->var == var)
      stride = coefficient;
    else if (uses_var(term, var))
      return std::nullopt;
  }
  return stride;
}

// 0: the same element in every iteration; 1: neighbours; nothing: something else.
std::optional<int64_t> element_stride(const std::vector<Expr>& indices, const Var& var) {
  for (size_t d = 0; d + 1 < indices.size(); ++d)
    if (uses_var(indices[d], var)) return std::nullopt;
  if (indices.empty()) return 0;
  const auto stride = stride_of(indices.back(), var);
  return stride == 0 || stride == 1 ? stride : std::nullopt;
}

bool equal_indices(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  for (size_t d = 0; d < a.size(); ++d)
    if (!equal(a[d], b[d])) return false;
  return true;
}

// Every iteration may evaluate `e` beside the others.
bool lanes_agree(const Expr& e, const Var& var, const StmtNode& store) {
  if (e->kind == ExprKind::kVar) return e->var != var;
  // A select must leave memory alone in the branch it does not take.
  if (e->kind == ExprKind::kSelect) return !uses_var(e, var);
  if (e->kind == ExprKind::kLoad) {
    if (dtype_bytes(e->buffer->dtype) != 4) return false;
    if (e->buffer == store.buffer && !equal_indices(e->operands, store.indices)) return false;
    return element_stride(e->operands, var).has_value();
  }
  for (const Expr& operand : e->operands)
    if (!lanes_agree(operand, var, store)) return false;
  return true;
}

bool can_be_vector(const StmtNode& loop) {
  const bool is_power_of_two = (loop.extent & (loop.extent - 1)) == 0;
  if (loop.loop != LoopKind::kSerial || loop.extent < 2 || loop.extent > kMostLanes || !is_power_of_two)
    return false;
  const StmtNode& store = *loop.body;
  return store.kind == StmtKind::kStore && dtype_bytes(store.buffer->dtype) == 4 &&
         element_stride(store.indices, loop.var) == 1 && lanes_agree(store.value, loop.var, store);
}

}  // namespace

Stmt vectorise_innermost(const Stmt& s) {
  if (s == nullptr) return s;
  if (s->kind == StmtKind::kFor && can_be_vector(*s))
    return make_for(s->var, s->extent, s->body, s->axis, LoopKind::kVectorized);
  return map_children(
      s, [](const Expr& e) { return e; }, vectorise_innermost);
}

}  // namespace tuner::emulation
