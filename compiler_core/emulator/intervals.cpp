#include "compiler_core/emulator/intervals.h"

#include "compiler_core/base/status.h"
#include "compiler_core/ir/intrinsic.h"
#include "compiler_core/ir/visitor.h"

namespace tuner::emulation {
namespace {

bool has_barrier(const Stmt& s) {
  bool found = false;
  visit(s, [&](const Stmt& inner) { found = found || inner->kind == StmtKind::kBarrier; });
  return found;
}

}  // namespace

Intervals::Intervals(const GpuKernel& kernel) {
  const Stmt& body = kernel.body;
  visit(body, [&](const Stmt& s) {
    if (!is_async(*s, "copy")) return;
    visit(s->body, [&](const Stmt& store) {
      if (store->kind == StmtKind::kStore) copied_.insert(store->buffer.get());
    });
  });
  walk(body, fresh());
  contended_.resize(parent_.size());
  std::vector<std::set<const BufferNode*>> read(parent_.size()), stored(parent_.size());
  for (size_t i = 0; i < parent_.size(); ++i) {
    const auto r = static_cast<size_t>(root(static_cast<int>(i)));
    read[r].insert(read_[i].begin(), read_[i].end());
    stored[r].insert(stored_[i].begin(), stored_[i].end());
  }
  for (size_t i = 0; i < parent_.size(); ++i) {
    const std::set<const BufferNode*> themselves = stored[i];
    for (const Buffer& a : kernel.shared)
      for (const Buffer& b : kernel.shared)
        if (themselves.contains(a.get()) && lie_on_each_other(kernel, a, b)) stored[i].insert(b.get());
    for (const BufferNode* b : read[i])
      if (stored[i].contains(b)) contended_[i].insert(b);
  }
}

const std::set<const BufferNode*>& Intervals::contended(const Stmt& s) const {
  const auto found = where_.find(s.get());
  CHECK(found != where_.end()) << "not a statement of the kernel: " << to_text(s);
  return contended_[static_cast<size_t>(root(found->second))];
}

int Intervals::walk(const Stmt& s, int from) {
  if (s == nullptr) return from;
  if (!has_barrier(s)) {
    note(s, from);
    return from;
  }
  switch (s->kind) {
    case StmtKind::kBarrier:
      return fresh();
    case StmtKind::kSeq:
      for (const Stmt& child : s->stmts) from = walk(child, from);
      return from;
    case StmtKind::kFor: {
      const int end = walk(s->body, from);
      // The end of an iteration and the start of the next.
      return s->extent > 1 ? unite(from, end) : end;
    }
    case StmtKind::kIf: {
      own_exprs(*s, [&](const Expr& e) {
        visit(e, [&](const Expr& inner) {
          if (inner->kind == ExprKind::kLoad) read_[static_cast<size_t>(from)].insert(inner->buffer.get());
        });
      });
      const int then_end = walk(s->body, from);
      return unite(then_end, walk(s->else_body, from));
    }
    default:
      return walk(s->body, from);
  }
}

void Intervals::note(const Stmt& s, int interval) {
  visit(s, [&](const Stmt& inner) {
    const auto [known, added] = where_.emplace(inner.get(), interval);
    if (!added) unite(known->second, interval);  // a shared subtree that stands in both
    if (inner->kind == StmtKind::kStore) stored_[static_cast<size_t>(interval)].insert(inner->buffer.get());
    if (is_async(*inner, "init"))
      stored_[static_cast<size_t>(interval)].insert(inner->operands[0]->buffer.get());
    if (is_async(*inner, "fetch"))
      stored_[static_cast<size_t>(interval)].insert(inner->operands[1]->buffer.get());
    if (is_async(*inner, "wait"))
      stored_[static_cast<size_t>(interval)].insert(copied_.begin(), copied_.end());
    const Intrinsic* const i = inner->kind == StmtKind::kIntrinsic ? find_intrinsic(inner->name) : nullptr;
    for (size_t o = 0; i != nullptr && o < i->operands.size(); ++o)
      if (i->operands[o].access != IntrinsicOperand::Access::kRead)
        stored_[static_cast<size_t>(interval)].insert(inner->operands[o]->buffer.get());
  });
  visit_exprs(s, [&](const Expr& e) {
    if (e->kind == ExprKind::kLoad) read_[static_cast<size_t>(interval)].insert(e->buffer.get());
  });
}

int Intervals::fresh() {
  parent_.push_back(static_cast<int>(parent_.size()));
  read_.emplace_back();
  stored_.emplace_back();
  return parent_.back();
}

int Intervals::root(int interval) const {
  while (parent_[static_cast<size_t>(interval)] != interval)
    interval = parent_[static_cast<size_t>(interval)];
  return interval;
}

int Intervals::unite(int a, int b) {
  a = root(a);
  parent_[static_cast<size_t>(root(b))] = a;
  return a;
}

}  // namespace tuner::emulation
