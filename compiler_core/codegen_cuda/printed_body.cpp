#include "compiler_core/codegen_cuda/printed_body.h"

#include "compiler_core/arith/simplify.h"
#include "compiler_core/ir/visitor.h"

namespace tuner::cuda {
namespace {

bool indexes_registers(const StmtNode& loop) {
  bool found = false;
  const auto in_access = [&](const Buffer& buffer, const std::vector<Expr>& indices) {
    if (buffer->scope != MemoryScope::kRegister) return;
    for (const Expr& index : indices) found |= uses_var(index, loop.var);
  };
  visit(loop.body, [&](const Stmt& s) {
    if (s->kind == StmtKind::kStore) in_access(s->buffer, s->indices);
    own_exprs(*s, [&](const Expr& e) {
      visit(e, [&](const Expr& part) {
        if (part->kind == ExprKind::kLoad) in_access(part->buffer, part->operands);
      });
    });
  });
  return found;
}

// Every barrier a node of its own, so that each may be spoken of.
Stmt with_own_barriers(const Stmt& s) {
  if (s->kind == StmtKind::kBarrier) return make_barrier(s->scope);
  return map_children(
      s, [](const Expr& e) { return e; }, with_own_barriers);
}

}  // namespace

Stmt simplified_body(const GpuKernel& kernel) {
  const Stmt body = simplify(kernel.body, kernel_ranges(kernel));
  return body == nullptr ? make_seq({}) : with_own_barriers(body);
}

bool prints_unrolled(const StmtNode& loop) {
  return loop.loop == LoopKind::kUnrolled || loop.loop == LoopKind::kVectorized ||
         loop.loop == LoopKind::kDot || indexes_registers(loop);
}

}  // namespace tuner::cuda
