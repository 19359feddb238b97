// Units that work by themselves (wgmma): runs of their statements, waits for them, what they ask of shared
// memory.
#include <algorithm>

#include "compiler_core/codegen_cuda/kernel_printer.h"
#include "compiler_core/codegen_cuda/printed_body.h"
#include "compiler_core/ir/visitor.h"

namespace tuner::cuda {

int64_t shared_alignment(const Stmt& body) {
  int64_t bytes = 16;
  constexpr int64_t kOfFetches = 1024;  // after which all layouts of copies begin anew
  if (fetches_by_itself(body)) bytes = kOfFetches;
  visit(body, [&](const Stmt& s) {
    const Intrinsic* const i = s->kind == StmtKind::kIntrinsic ? find_intrinsic(s->name) : nullptr;
    for (size_t o = 0; i != nullptr && o < i->operands.size(); ++o)
      if (i->operands[o].unit_place != nullptr) bytes = std::max(bytes, i->operands[o].unit_alignment);
  });
  return bytes;
}

bool threads_write_tiles(const Stmt& body) {
  std::set<const BufferNode*> tiles;
  visit(body, [&](const Stmt& s) {
    const Intrinsic* const i = s->kind == StmtKind::kIntrinsic ? find_intrinsic(s->name) : nullptr;
    for (size_t o = 0; i != nullptr && o < i->operands.size(); ++o)
      if (i->operands[o].unit_place != nullptr) tiles.insert(s->operands[o]->buffer.get());
  });
  bool found = false;
  visit(body,
        [&](const Stmt& s) { found |= s->kind == StmtKind::kStore && tiles.contains(s->buffer.get()); });
  return found;
}

bool is_unit_run(const Stmt& s) {
  switch (s->kind) {
    case StmtKind::kIntrinsic: {
      const Intrinsic* const i = find_intrinsic(s->name);
      return i != nullptr && !i->cuda_begin.empty();
    }
    case StmtKind::kFor:
      return (s->extent == 1 || prints_unrolled(*s)) && is_unit_run(s->body);
    case StmtKind::kSeq:
      return std::ranges::all_of(s->stmts, is_unit_run);
    default:
      return false;
  }
}

bool only_lands(const Stmt& s) {
  bool any = false, others = false;
  visit(s, [&](const Stmt& child) {
    const Intrinsic* const i = child->kind == StmtKind::kIntrinsic ? find_intrinsic(child->name) : nullptr;
    const bool lands = i != nullptr && i->lands();
    any |= lands;
    others |= !lands && child->kind != StmtKind::kFor && child->kind != StmtKind::kSeq;
  });
  return any && !others;
}

// Statements of a unit that works by itself, with nothing between.
void KernelPrinter::unit_run(const Stmt& s, const RangeMap& ranges, bool told) {
  const Intrinsic* unit = nullptr;
  visit(s, [&](const Stmt& child) {
    if (child->kind == StmtKind::kIntrinsic) unit = find_intrinsic(child->name);
  });
  text_.line(unit->cuda_begin);
  in_run_ = true;
  stmt(s, ranges, told);
  in_run_ = false;
  text_.line(unit->cuda_end);
}

}  // namespace tuner::cuda
