// lower_reductions: `x (op)= v, starting at init when first` becomes
//
//   if (first) x = init
//   x = x (op) v
//
// A vectorised reduce axis keeps its reduction: its lanes add to one element, and the code generator combines
// them.
#include "compiler_core/ir/visitor.h"
#include "compiler_core/lower/lower.h"

namespace tuner {
namespace {

Expr combine(ReduceOp op, Expr accumulated, Expr value) {
  switch (op) {
    case ReduceOp::kSum:
      return accumulated + value;
    case ReduceOp::kMax:
      return max(accumulated, value);
    case ReduceOp::kMin:
      return min(accumulated, value);
    case ReduceOp::kNone:
      break;
  }
  CHECK(false) << "a reduction needs an operator";
  return value;
}

Stmt lower_stmt(const Stmt& s) {
  if (s == nullptr) return s;
  if (s->kind == StmtKind::kFor && s->loop == LoopKind::kVectorized && s->axis == AxisKind::kReduce) return s;
  if (s->kind != StmtKind::kStore || s->reduce == ReduceOp::kNone)
    return map_children(
        s, [](const Expr& e) { return e; }, lower_stmt);
  Stmt update = make_store(s->buffer, s->indices, combine(s->reduce, load(s->buffer, s->indices), s->value));
  if (!s->first.defined()) return update;
  return make_seq({make_if(s->first, make_store(s->buffer, s->indices, s->init)), update});
}

}  // namespace

Program lower_reductions(const Program& program) {
  Program result = program;
  result.body = lower_stmt(program.body);
  return result;
}

}  // namespace tuner
