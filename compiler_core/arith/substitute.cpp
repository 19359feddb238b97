#include "compiler_core/arith/simplify.h"
#include "compiler_core/ir/visitor.h"

namespace tuner {
namespace {

// The same node over new operands, through its maker, so that constants fold.
Expr rebuild(const Expr& old, const Expr& mapped) {
  if (mapped.same_as(old)) return old;
  const std::vector<Expr>& operands = mapped->operands;
  switch (old->kind) {
    case ExprKind::kBinary:
      return binary(old->binary_op, operands[0], operands[1]);
    case ExprKind::kUnary:
      return unary(old->unary_op, operands[0]);
    case ExprKind::kSelect:
      return select(operands[0], operands[1], operands[2]);
    default:
      return mapped;
  }
}

Expr replace_loads(const Expr& e, const BufferMap& buffers) {
  const Expr mapped = map_children(e, [&](const Expr& operand) { return replace_loads(operand, buffers); });
  if (e->kind != ExprKind::kLoad) return mapped;
  const auto found = buffers.find(e->buffer);
  return found == buffers.end() ? mapped : load(found->second, mapped->operands);
}

}  // namespace

Expr substitute(const Expr& e, const VarMap& values) {
  if (!e.defined()) return e;
  if (e->kind == ExprKind::kVar) {
    const auto found = values.find(e->var);
    return found == values.end() ? e : found->second;
  }
  if (e->operands.empty()) return e;
  return rebuild(e, map_children(e, [&](const Expr& operand) { return substitute(operand, values); }));
}

Stmt substitute(const Stmt& s, const VarMap& values) {
  return map_children(
      s, [&](const Expr& e) { return substitute(e, values); },
      [&](const Stmt& child) { return substitute(child, values); });
}

Stmt replace_buffers(const Stmt& s, const BufferMap& buffers) {
  Stmt mapped = map_children(
      s, [&](const Expr& e) { return replace_loads(e, buffers); },
      [&](const Stmt& child) { return replace_buffers(child, buffers); });
  const auto found = mapped->buffer == nullptr ? buffers.end() : buffers.find(mapped->buffer);
  if (found == buffers.end()) return mapped;
  auto node = std::make_shared<StmtNode>(*mapped);
  node->buffer = found->second;
  return node;
}

bool uses_var(const Expr& e, const Var& var) {
  if (!e.defined()) return false;
  if (e->kind == ExprKind::kVar) return e->var == var;
  for (const Expr& operand : e->operands)
    if (uses_var(operand, var)) return true;
  return false;
}

std::vector<Expr> conjuncts(const Expr& condition) {
  if (condition->kind == ExprKind::kBinary && condition->binary_op == BinaryOp::kAnd) {
    std::vector<Expr> all = conjuncts(condition->operands[0]);
    for (Expr& e : conjuncts(condition->operands[1])) all.push_back(std::move(e));
    return all;
  }
  if (condition->kind == ExprKind::kIntImm && condition->int_value != 0) return {};
  return {condition};
}

Expr conjunction(const std::vector<Expr>& conditions) {
  Expr all = bool_imm(true);
  for (const Expr& e : conditions) all = all && e;
  return all;
}

}  // namespace tuner
