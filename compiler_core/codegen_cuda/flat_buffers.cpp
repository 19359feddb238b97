#include "compiler_core/codegen_cuda/flat_buffers.h"

#include "compiler_core/codegen_cuda/printed_body.h"
#include "compiler_core/ir/layout.h"
#include "compiler_core/ir/visitor.h"

namespace tuner::cuda {

int divisions(const LinearForm& form) {
  int found = 0;
  for (const auto& [term, factor] : form.terms)
    visit(term, [&](const Expr& e) {
      found += e->kind == ExprKind::kBinary &&
               (e->binary_op == BinaryOp::kFloorDiv || e->binary_op == BinaryOp::kFloorMod);
    });
  return found;
}

std::set<const BufferNode*> flat_buffers(const Stmt& body, const RangeMap& ranges,
                                         const std::vector<Buffer>& shared) {
  std::set<const BufferNode*> flat;
  std::set<const BufferNode*> harder;  // some access has more divisions as an offset
  bool in_serial = false, in_copy = false;
  const auto look = [&](const Buffer& b, const std::vector<Expr>& indices, const RangeMap& inside) {
    if (b->scope == MemoryScope::kRegister || indices.size() < 2) return;
    int apart = 0;
    for (const Expr& index : indices) apart += divisions(linear_form(index, inside));
    const int together = divisions(linear_form(storage_offset(*b, indices), inside));
    // Of a copy that goes on from step to step, what stands still of the offset is one register.
    if (together < apart || (in_copy && together == apart && apart > 0 && b->scope == MemoryScope::kGlobal))
      flat.insert(b.get());
    if (together > apart) harder.insert(b.get());
  };
  const auto walk = [&](const auto& self, const Stmt& s, const RangeMap& outside) -> void {
    if (s == nullptr) return;
    RangeMap inside = outside;
    const bool was_serial = in_serial, was_copy = in_copy;
    if (s->kind == StmtKind::kFor) inside.bind(s->var, s->extent);
    in_serial |= s->kind == StmtKind::kFor && !prints_unrolled(*s);
    in_copy |= in_serial && is_async(*s, "copy");
    if (s->kind == StmtKind::kStore) look(s->buffer, s->indices, outside);
    own_exprs(*s, [&](const Expr& whole) {
      visit(whole, [&](const Expr& e) {
        if (e->kind == ExprKind::kLoad) look(e->buffer, e->operands, outside);
      });
    });
    self(self, s->body, inside);
    self(self, s->else_body, inside);
    for (const Stmt& child : s->stmts) self(self, child, inside);
    in_serial = was_serial, in_copy = was_copy;
  };
  walk(walk, body, ranges);
  std::erase_if(flat, [&](const BufferNode* b) { return harder.contains(b); });
  for (const Buffer& b : shared)
    if (reorders_rows(*b)) flat.insert(b.get());
  return flat;
}

}  // namespace tuner::cuda
