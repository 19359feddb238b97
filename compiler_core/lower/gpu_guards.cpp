// Guards of threads, and loops that are none.
#include <algorithm>
#include <set>

#include "compiler_core/ir/visitor.h"
#include "compiler_core/lower/gpu_passes.h"

namespace tuner::gpu {

Stmt drop_single_iterations(const Stmt& s) {
  if (s == nullptr) return s;
  const bool bound = s->kind == StmtKind::kFor && (thread_axis(s->loop) >= 0 || block_axis(s->loop) >= 0);
  if (s->kind == StmtKind::kFor && s->extent == 1 && !bound)
    return drop_single_iterations(substitute(s->body, {{s->var, 0}}));
  return map_children(
      s, [](const Expr& e) { return e; }, drop_single_iterations);
}

namespace {

using Buffers = std::set<Buffer>;

// True for a load from global memory, under a select or not.
bool is_global_load(const Expr& e) {
  if (e->kind == ExprKind::kSelect) return is_global_load(e->operands[1]);
  return e->kind == ExprKind::kLoad && e->buffer->scope == MemoryScope::kGlobal;
}

// Registers that hold nothing but what is on its way from global to shared memory (double buffers).
Buffers ways_to_shared(const Stmt& body) {
  Buffers ways, others;
  visit(body, [&](const Stmt& s) {
    if (s->kind != StmtKind::kStore) return;
    if (s->buffer->scope == MemoryScope::kRegister && !is_global_load(s->value)) others.insert(s->buffer);
    if (s->buffer->scope == MemoryScope::kShared && s->value->kind == ExprKind::kLoad &&
        s->value->buffer->scope == MemoryScope::kRegister)
      ways.insert(s->value->buffer);
  });
  for (const Buffer& b : others) ways.erase(b);
  return ways;
}

// What stands below: copies to shared memory and intrinsics, which all threads must come by, and the rest.
struct Contents {
  bool collective = false, other = false;
};
Contents contents(const Stmt& s, const Buffers& ways) {
  Contents found;
  visit(s, [&](const Stmt& child) {
    if (child->kind == StmtKind::kIntrinsic) found.collective = true;
    if (child->kind != StmtKind::kStore) return;
    const bool is_copy = child->buffer->scope == MemoryScope::kShared || ways.contains(child->buffer);
    (is_copy ? found.collective : found.other) = true;
  });
  return found;
}

// A register set to a constant: no harm in any thread, and an intrinsic may read it in all of them.
bool sets_constant(const Stmt& s) {
  return s->kind == StmtKind::kStore && s->buffer->scope == MemoryScope::kRegister &&
         s->reduce == ReduceOp::kNone && s->value->kind == ExprKind::kFloatImm;
}

// `guard` around what is not for all threads.
Stmt guarded(const Stmt& s, const Expr& guard, const Buffers& ways) {
  const Contents found = contents(s, ways);
  if (!found.other || sets_constant(s)) return s;
  if (!found.collective) return make_if(guard, s);
  return map_children(
      s, [](const Expr& e) { return e; }, [&](const Stmt& child) { return guarded(child, guard, ways); });
}

Stmt sink(const Stmt& s, const GpuKernel& kernel, const Buffers& ways) {
  if (s == nullptr) return s;
  Stmt result = map_children(
      s, [](const Expr& e) { return e; }, [&](const Stmt& child) { return sink(child, kernel, ways); });
  if (result == nullptr || result->kind != StmtKind::kIf || result->else_body != nullptr ||
      !asks_for_thread(result->condition, kernel))
    return result;
  const Contents found = contents(result->body, ways);
  return found.collective && found.other ? guarded(result->body, result->condition, ways) : result;
}

}  // namespace

Stmt sink_thread_guards(const Stmt& s, const GpuKernel& kernel) { return sink(s, kernel, ways_to_shared(s)); }

Stmt merge_equal_guards(const Stmt& s) {
  if (s == nullptr) return s;
  Stmt result = map_children(
      s, [](const Expr& e) { return e; }, merge_equal_guards);
  if (result == nullptr || result->kind != StmtKind::kSeq) return result;
  std::vector<Stmt> merged;
  const auto plain_guard = [](const Stmt& g) {
    bool loads = false;
    if (g->kind == StmtKind::kIf)
      visit(g->condition, [&](const Expr& e) { loads |= e->kind == ExprKind::kLoad; });
    return g->kind == StmtKind::kIf && g->else_body == nullptr && !loads;
  };
  for (const Stmt& child : result->stmts) {
    if (!merged.empty() && plain_guard(child) && plain_guard(merged.back()) &&
        equal(child->condition, merged.back()->condition))
      merged.back() = make_if(child->condition, make_seq({merged.back()->body, child->body}));
    else
      merged.push_back(child);
  }
  return merged.size() == result->stmts.size() ? result : make_seq(std::move(merged));
}

}  // namespace tuner::gpu
