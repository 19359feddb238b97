#include "templates/fragment_stages.h"

#include "compiler_core/ir/visitor.h"

namespace tuner::fragment {
namespace {

// Nodes of an expression that may stand in its reader once more than needed. The compiler finds most of them
// again, in time that grows with their number.
constexpr int64_t kMostCopied = 1024;

bool is_expensive(const Expr& e) {
  bool found = false;
  visit(e, [&](const Expr& at) {
    const bool cheap = at->kind != ExprKind::kUnary || at->unary_op == UnaryOp::kNeg ||
                       at->unary_op == UnaryOp::kNot || at->unary_op == UnaryOp::kAbs ||
                       at->unary_op == UnaryOp::kFloor;
    const bool divides = at->kind == ExprKind::kBinary && is_float(at->dtype) &&
                         (at->binary_op == BinaryOp::kDiv || at->binary_op == BinaryOp::kPow);
    found = found || !cheap || divides;
  });
  return found;
}

void find_stages(const Stmt& s, double runs, std::vector<Stage>& stages) {
  if (s == nullptr) return;
  if (s->kind == StmtKind::kStore) stages.push_back({s->buffer, s.get(), runs});
  if (s->kind == StmtKind::kFor) runs *= static_cast<double>(s->extent);
  find_stages(s->body, runs, stages);
  for (const Stmt& child : s->stmts) find_stages(child, runs, stages);
}

bool depends_on(const Expr& e, const Var& var) {
  bool found = false;
  visit(e, [&](const Expr& at) { found = found || (at->kind == ExprKind::kVar && at->var == var); });
  return found;
}

}  // namespace

std::vector<Stage> stages_of(const Program& program) {
  std::vector<Stage> stages;
  find_stages(program.body, 1, stages);
  return stages;
}

void put_inside(Schedule& s, bool all) {
  const Program before = s.program();
  for (const Stage& stage : stages_of(before)) {
    if (stage.buffer->role != BufferRole::kIntermediate || stage.is_sum()) continue;
    double reads = 0;
    int64_t copies = 0, nodes = 0;
    for (const Stage& reader : stages_of(s.program()))
      visit(reader.store->value, [&](const Expr& e) {
        if (reader.buffer == stage.buffer) ++nodes;
        if (e->kind != ExprKind::kLoad || e->buffer != stage.buffer) return;
        ++copies;
        reads += reader.runs;
      });
    if ((copies - 1) * nodes > kMostCopied) continue;
    const bool once = reads <= 1.5 * static_cast<double>(stage.buffer->elements());
    if (all || once || !is_expensive(stage.store->value))
      attempt(s, [&](Schedule& copy) { copy.inline_compute({stage.buffer}); });
  }
}

int along(const StmtNode& store, const Var& var) {
  int count = 0;
  visit(store.value, [&](const Expr& e) {
    if (e->kind != ExprKind::kLoad || e->operands.empty()) return;
    bool jumps = false;
    for (size_t d = 0; d + 1 < e->operands.size(); ++d) jumps = jumps || depends_on(e->operands[d], var);
    if (jumps)
      --count;
    else if (depends_on(e->operands.back(), var))
      ++count;
  });
  return count;
}

}  // namespace tuner::fragment
