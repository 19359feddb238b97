// skip_zeros: terms of a sum that a select makes 0 become terms that are not added; of a maximum those it
// makes -inf, of a minimum inf.
#include <algorithm>
#include <limits>

#include "compiler_core/schedule/rewrite.h"

namespace tuner {

using namespace rewrite;

namespace {

// Where a maximum or minimum is not what it starts with: under `conditions`.
Expr wanted_value(const Expr& e, ReduceOp op, std::vector<Expr>& conditions) {
  const double start = op == ReduceOp::kMax ? -std::numeric_limits<double>::infinity()
                                            : std::numeric_limits<double>::infinity();
  if (e->kind != ExprKind::kSelect) return e;
  const Expr& otherwise = e->operands[2];
  if (otherwise->kind != ExprKind::kFloatImm || otherwise->float_value != start) return e;
  for (Expr& condition : conjuncts(e->operands[0])) conditions.push_back(std::move(condition));
  return wanted_value(e->operands[1], op, conditions);
}

// The value of `e` where none of its factors is made 0 by a select; when that is goes to `conditions`.
Expr nonzero_value(const Expr& e, std::vector<Expr>& conditions) {
  if (e->kind == ExprKind::kSelect && is_zero(e->operands[2])) {
    for (Expr& condition : conjuncts(e->operands[0])) conditions.push_back(std::move(condition));
    return nonzero_value(e->operands[1], conditions);
  }
  const bool keeps_zero =
      e->kind == ExprKind::kCast || (e->kind == ExprKind::kBinary && e->binary_op == BinaryOp::kMul);
  if (!keeps_zero) return e;
  return map_children(e, [&](const Expr& operand) { return nonzero_value(operand, conditions); });
}

}  // namespace

void Schedule::skip_zeros(const Tensor& t) {
  if (refused()) return;
  const Buffer buffer = resolve(t);
  const std::string call = str("skip_zeros(", buffer == nullptr ? "(none)" : buffer->name, ")");
  apply(call, [&]() -> Status {
    if (buffer == nullptr) return invalid_config("the tensor handle is empty");
    const std::optional<Stage> stage = find_stage(program_.body, buffer);
    if (!stage.has_value()) return invalid_config(buffer->name, " is not computed in this Program");
    const StmtNode& store = stage->store();
    if (store.reduce == ReduceOp::kNone) return invalid_config(buffer->name, " is not a reduction");
    if (store.first.defined())
      return invalid_config("the first term of ", buffer->name,
                            " also initialises it; decompose_reduction first");
    // The loops and guards directly around the store.
    size_t top = stage->path.size() - 1;
    const auto nested = [](const Stmt& s) {
      return s->kind == StmtKind::kFor || (s->kind == StmtKind::kIf && s->else_body == nullptr);
    };
    while (top > stage->own && nested(stage->path[top - 1])) --top;
    std::vector<Stmt> loops;
    std::vector<Expr> guards;
    for (size_t i = top; i + 1 < stage->path.size(); ++i) {
      const Stmt& s = stage->path[i];
      if (s->kind == StmtKind::kFor)
        loops.push_back(s);
      else
        for (Expr& e : conjuncts(s->condition)) guards.push_back(std::move(e));
    }
    const RangeMap ranges = ranges_at(stage->path);
    std::vector<Expr> conditions;
    auto update = std::make_shared<StmtNode>(store);
    update->value = store.reduce == ReduceOp::kSum ? nonzero_value(store.value, conditions)
                                                   : wanted_value(store.value, store.reduce, conditions);
    for (const Expr& condition : conditions)
      for (Expr& part : conjuncts(simplify(condition, ranges))) {
        const bool known = part->kind == ExprKind::kIntImm && part->int_value != 0;
        const bool there =
            std::any_of(guards.begin(), guards.end(), [&](const Expr& g) { return equal(g, part); });
        if (!known && !there) guards.push_back(std::move(part));
      }
    program_.body = replace_at(prefix(stage->path, top), nest(loops, guards, std::move(update)));
    record(call);
    return Status::ok();
  });
}

}  // namespace tuner
