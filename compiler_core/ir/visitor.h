// Walks and rebuilds Programs. A rewrite handles the nodes it needs and calls map_children for the rest.
// Nodes without a changed child are returned unchanged, so subtrees stay shared.
#pragma once

#include <utility>
#include <vector>

#include "compiler_core/ir/stmt.h"

namespace tuner {

// Calls f(const Expr&) for e and everything below it, parents first.
template <class F>
void visit(const Expr& e, const F& f) {
  if (!e.defined()) return;
  f(e);
  for (const Expr& operand : e->operands) visit(operand, f);
}

// Calls f(const Stmt&) for s and every statement below it, parents first, in the order they run.
template <class F>
void visit(const Stmt& s, const F& f) {
  if (s == nullptr) return;
  f(s);
  if (s->body != nullptr) visit(s->body, f);
  if (s->else_body != nullptr) visit(s->else_body, f);
  for (const Stmt& child : s->stmts) visit(child, f);
}

// Calls f(const Expr&) for each whole expression of this one statement, not of those below it.
template <class F>
void own_exprs(const StmtNode& s, const F& f) {
  if (s.condition.defined()) f(s.condition);
  for (const Expr& index : s.indices) f(index);
  if (s.value.defined()) f(s.value);
  if (s.init.defined()) f(s.init);
  if (s.first.defined()) f(s.first);
  for (const Expr& operand : s.operands) f(operand);
}

// Calls f(const Expr&) for every expression node at or below s.
template <class F>
void visit_exprs(const Stmt& s, const F& f) {
  visit(s, [&](const Stmt& child) { own_exprs(*child, [&](const Expr& e) { visit(e, f); }); });
}

// True if some part of `e` loads an element of a buffer, of whatever scope.
inline bool reads_memory(const Expr& e) {
  bool found = false;
  visit(e, [&](const Expr& part) { found |= part->kind == ExprKind::kLoad; });
  return found;
}

// Returns e with its operands replaced by f(operand).
template <class F>
Expr map_children(const Expr& e, const F& f) {
  std::vector<Expr> operands;
  bool changed = false;
  for (size_t i = 0; i < e->operands.size(); ++i) {
    Expr mapped = f(e->operands[i]);
    if (!changed && !mapped.same_as(e->operands[i])) {
      changed = true;
      operands.reserve(e->operands.size());
      operands.assign(e->operands.begin(), e->operands.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (changed) operands.push_back(std::move(mapped));
  }
  if (!changed) return e;
  auto node = std::make_shared<ExprNode>(*e);
  node->operands = std::move(operands);
  return Expr(std::shared_ptr<const ExprNode>(std::move(node)));
}

// Returns s with each own expression replaced by fe(expression) and each child statement by fs(child). If fs
// returns null, the child disappears, and with it a loop, guard or allocation that has nothing left to run
// (the result is then null).
template <class FE, class FS>
Stmt map_children(const Stmt& s, const FE& fe, const FS& fs) {
  // Rewrites pass many nodes that have only children. These are not copied just to find that nothing changed.
  if (s->kind == StmtKind::kFor || s->kind == StmtKind::kAllocate) {
    Stmt body = fs(s->body);
    return body == nullptr ? nullptr : with_body(s, std::move(body));
  }
  if (s->kind == StmtKind::kSeq) {
    std::vector<Stmt> stmts;
    stmts.reserve(s->stmts.size());
    for (const Stmt& child : s->stmts) stmts.push_back(fs(child));
    return stmts == s->stmts ? s : make_seq(std::move(stmts));
  }
  auto node = std::make_shared<StmtNode>(*s);
  bool changed = false;
  const auto map_expr = [&](Expr& e) {
    if (!e.defined()) return;
    Expr mapped = fe(e);
    changed |= !mapped.same_as(e);
    e = std::move(mapped);
  };
  const auto map_stmt = [&](Stmt& child) {
    if (child == nullptr) return;
    Stmt mapped = fs(child);
    changed |= mapped != child;
    child = std::move(mapped);
  };
  map_expr(node->condition);
  for (Expr& index : node->indices) map_expr(index);
  map_expr(node->value);
  map_expr(node->init);
  map_expr(node->first);
  for (Expr& operand : node->operands) map_expr(operand);
  map_stmt(node->body);
  map_stmt(node->else_body);
  if (!changed) return s;
  if (s->body != nullptr && node->body == nullptr) {
    if (node->else_body == nullptr) return nullptr;
    return make_if(unary(UnaryOp::kNot, node->condition), node->else_body);
  }
  return node;
}

}  // namespace tuner
