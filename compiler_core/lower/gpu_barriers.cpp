// Barriers: between two accesses to the same shared element by different threads, one of them a write.
//
// Statements are walked in order with the accesses since the last barrier at hand. Before a statement whose
// first accesses conflict with these a barrier is put; a loop whose last accesses conflict with the first
// ones of its next iteration ends in one. Conflicts are assumed unless disproved by one of
//   - different elements in every iteration: the stages of a double buffer, k % 2 and (k + 1) % 2; ranges
//   apart
//   - the same thread: each element belongs to the thread whose index it names (k * threads + tx)
//   - one store against itself: a stage stores each of its elements once
//   - a copy by TMA and what comes after it: that waits at a barrier of its own (await), which the emulator
//     checks
// Buffers that lie on each other (gpu_shared.cpp) conflict wherever one is stored. Behind every wait for
// asynchronous copies stands a barrier, whatever conflicts.
// Whether schedule and proofs are right is checked by another mind: the emulator's race detector.
#include <algorithm>

#include "compiler_core/ir/intrinsic.h"
#include "compiler_core/ir/visitor.h"
#include "compiler_core/lower/gpu_passes.h"

namespace tuner::gpu {
namespace {

constexpr int64_t kMaxIterations = 4096;  // compared one by one

struct Access {
  Buffer buffer;
  bool write = false;
  std::vector<Expr> indices;  // an undefined one may be anything
  const StmtNode* statement = nullptr;
  bool by_first_thread = false;  // alone
  bool fetched = false;          // by the copy engine
};

// What a statement does to shared memory: before its first barrier, after its last one.
struct Summary {
  std::vector<Access> head, tail;
  bool barrier = false;  // all threads pass one on every way through

  void then(const Summary& next) {
    if (!barrier) head.insert(head.end(), next.head.begin(), next.head.end());
    if (next.barrier)
      tail = next.tail;
    else
      tail.insert(tail.end(), next.tail.begin(), next.tail.end());
    barrier |= next.barrier;
  }
};

// The value of an expression of one variable and constants; none when it holds anything else.
std::optional<int64_t> value_at(const Expr& e, const Var& var, int64_t value) {
  const Expr result = simplify(substitute(e, {{var, Expr(value)}}));
  int64_t number = 0;
  return is_const_int(result, &number) ? std::optional(number) : std::nullopt;
}

class Barriers {
 public:
  explicit Barriers(const GpuKernel& kernel) : kernel_(kernel), ranges_(kernel_ranges(kernel)) {}

  struct Done {
    Stmt stmt;
    Summary summary;
  };

  Done visit(const Stmt& s) {
    if (s == nullptr) return {s, {}};
    switch (s->kind) {
      case StmtKind::kSeq:
        return sequence(s);
      case StmtKind::kFor:
        return loop(s);
      case StmtKind::kIf:
        return guard(s);
      case StmtKind::kAllocate: {
        Done body = visit(s->body);
        return {with_body(s, body.stmt), std::move(body.summary)};
      }
      case StmtKind::kBarrier:
        return {s, {.barrier = true}};
      case StmtKind::kAsync:
        return async(s);
      default:
        return {s, summary_of(*s)};
    }
  }
  const Status& status() const { return status_; }

 private:
  static Summary summary_of(const StmtNode& s) {
    Summary summary;
    own_exprs(s, [&](const Expr& whole) {
      tuner::visit(whole, [&](const Expr& e) {
        if (e->kind == ExprKind::kLoad && e->buffer->scope == MemoryScope::kShared)
          summary.head.push_back({e->buffer, false, e->operands, &s});
      });
    });
    if (s.kind == StmtKind::kStore && s.buffer->scope == MemoryScope::kShared)
      summary.head.push_back({s.buffer, true, s.indices, &s});
    if (s.kind == StmtKind::kIntrinsic) widen_tiles(s, summary.head);
    summary.tail = summary.head;
    return summary;
  }

  // An operand is the first element of a tile, anywhere in which a lane may go.
  static void widen_tiles(const StmtNode& s, std::vector<Access>& accesses) {
    const Intrinsic* const intrinsic = find_intrinsic(s.name);
    for (size_t o = 0; intrinsic != nullptr && o < intrinsic->operands.size(); ++o) {
      if (intrinsic->operands[o].place != IntrinsicOperand::Place::kShared) continue;
      const Buffer& buffer = s.operands[o]->buffer;
      for (Access& access : accesses) {
        if (access.buffer != buffer) continue;
        access.write = intrinsic->operands[o].access != IntrinsicOperand::Access::kRead;
        const size_t tile = intrinsic->operands[o].shape.size();
        for (size_t d = access.indices.size() - tile; d < access.indices.size(); ++d)
          access.indices[d] = Expr();
      }
    }
  }

  Done sequence(const Stmt& s) {
    std::vector<Stmt> stmts;
    Summary all;
    for (const Stmt& child : s->stmts) {
      Done done = visit(child);
      if (const Access* why = conflict(all.tail, done.summary.head, nullptr)) {
        stmts.push_back(barrier(*why));
        all.then({.barrier = true});
      }
      all.then(done.summary);
      stmts.push_back(std::move(done.stmt));
    }
    return {make_seq(std::move(stmts)), std::move(all)};
  }

  Done loop(const Stmt& s) {
    const RangeMap outside = ranges_;
    ranges_.bind(s->var, s->extent);
    loops_.emplace_back(s->var, s->extent);
    Done body = visit(s->body);
    Summary summary = body.summary;
    Stmt stmt = body.stmt;
    if (s->extent > 1) {
      // Without a barrier inside, any two iterations may meet; with one, only neighbours.
      const Access* why = conflict(summary.tail, summary.head, s.get(), summary.barrier);
      if (why != nullptr) {
        stmt = make_seq({stmt, barrier(*why)});
        summary.then({.barrier = true});
      }
    }
    ranges_ = outside;
    loops_.pop_back();
    // Seen from outside: the first accesses are those of iteration 0, the last ones those of the last.
    for (Access& a : summary.head)
      leave(a, s->var, summary.barrier ? std::optional<int64_t>(0) : std::nullopt);
    for (Access& a : summary.tail)
      leave(a, s->var, summary.barrier ? std::optional(s->extent - 1) : std::nullopt);
    return {with_body(s, std::move(stmt)), std::move(summary)};
  }

  static void leave(Access& a, const Var& var, std::optional<int64_t> iteration) {
    for (Expr& index : a.indices)
      if (index.defined() && uses_var(index, var))
        index = iteration.has_value() ? substitute(index, {{var, Expr(*iteration)}}) : Expr();
  }

  // A copy stores from its start to the wait that covers it: what follows the start must not meet it before,
  // and what follows the wait must not before the barrier there, because a wait is for the copies of its own
  // thread only.
  Done async(const Stmt& s) {
    if (is_async(*s, "wait")) {
      if (!guards_.empty() && status_.is_ok())
        status_ = invalid_config("kernel ", kernel_.name, ": a wait for copies stands under the guard ",
                                 to_text(guards_.back()), ", which not all threads of the block pass");
      return {make_seq({s, make_barrier(MemoryScope::kShared)}), {.barrier = true}};
    }
    if (is_async(*s, "init") || is_async(*s, "expect") || is_async(*s, "fetch") || is_async(*s, "await"))
      return {s, by_engine(*s)};
    if (s->body == nullptr) return {s, {}};
    Done body = visit(s->body);
    return {with_body(s, body.stmt), std::move(body.summary)};
  }

  // Barriers that copies arrive at are begun once; everything else about them may happen at the same time. A
  // fetch writes its tile.
  Summary by_engine(const StmtNode& s) const {
    const bool first = is_first_thread();
    Summary summary;
    summary.head.push_back({.buffer = s.operands[0]->buffer,
                            .write = s.name == "init",
                            .indices = {Expr()},
                            .statement = &s,
                            .by_first_thread = first});
    if (s.name == "fetch") {
      const Expr& to = s.operands[1];
      std::vector<Expr> indices(to->operands.size());
      indices[0] = to->operands[0];  // the stage; beyond, anywhere in the tile
      summary.head.push_back({.buffer = to->buffer,
                              .write = true,
                              .indices = std::move(indices),
                              .statement = &s,
                              .by_first_thread = first,
                              .fetched = true});
    }
    summary.tail = summary.head;
    return summary;
  }

  // Whether the guards around let one thread of the block through, that with index 0 in every dimension.
  bool is_first_thread() const {
    for (size_t d = 0; d < 3; ++d) {
      if (kernel_.block[d] == 1) continue;
      const Expr first = simplify(binary(BinaryOp::kEq, Expr(kernel_.thread_vars[d]), 0));
      const bool found = std::ranges::any_of(guards_, [&](const Expr& guard) {
        return std::ranges::any_of(conjuncts(guard), [&](const Expr& part) { return equal(part, first); });
      });
      if (!found) return false;
    }
    return true;
  }

  Done guard(const Stmt& s) {
    Summary condition = summary_of(*s);
    const bool differs = thread_dependent(s->condition);
    if (differs) guards_.push_back(s->condition);
    Done body = visit(s->body), otherwise = visit(s->else_body);
    if (differs) guards_.pop_back();
    // Either way may be taken: everything counts as before and as after.
    Summary summary = std::move(condition);
    for (const Summary* part : {&body.summary, &otherwise.summary})
      for (const auto* accesses : {&part->head, &part->tail}) {
        summary.head.insert(summary.head.end(), accesses->begin(), accesses->end());
        summary.tail.insert(summary.tail.end(), accesses->begin(), accesses->end());
      }
    return {make_if(s->condition, body.stmt, otherwise.stmt), std::move(summary)};
  }

  bool thread_dependent(const Expr& condition) const {
    bool found = false;
    tuner::visit(condition, [&](const Expr& e) {
      found |= e->kind == ExprKind::kLoad;
      for (const Var& thread : kernel_.thread_vars)
        found |= thread != nullptr && e->kind == ExprKind::kVar && e->var == thread;
    });
    return found;
  }

  Stmt barrier(const Access& why) {
    if (!guards_.empty() && status_.is_ok())
      status_ = invalid_config("kernel ", kernel_.name, ": a barrier for ", why.buffer->name,
                               " would stand under the guard ", to_text(guards_.back()),
                               ", which not all threads of the block pass");
    return make_barrier(MemoryScope::kShared);
  }

  // The access of `later` that conflicts with one of `earlier`; null when none does. With `around`, `later`
  // happens in an iteration of that loop after that of `earlier`, the very next one with `neighbours_only`.
  const Access* conflict(const std::vector<Access>& earlier, const std::vector<Access>& later,
                         const StmtNode* around, bool neighbours_only = false) const {
    for (const Access& b : later)
      for (const Access& a : earlier)
        if ((a.write || b.write) && meet(a, b, around, neighbours_only)) return &b;
    return nullptr;
  }

  bool meet(const Access& a, const Access& b, const StmtNode* around, bool neighbours_only) const {
    if (a.fetched || (a.by_first_thread && b.by_first_thread)) return false;
    if (a.buffer != b.buffer) return lie_on_each_other(kernel_, a.buffer, b.buffer);
    return !(a.write && b.write && a.statement == b.statement) && !apart(a, b, around, neighbours_only) &&
           !same_thread(a, b);
  }

  // No element is touched by both.
  bool apart(const Access& a, const Access& b, const StmtNode* around, bool neighbours_only) const {
    for (size_t d = 0; d < a.indices.size(); ++d)
      if (!a.indices[d].defined() || !b.indices[d].defined())
        continue;
      else if (around == nullptr ? never_equal(a.indices[d], b.indices[d])
                                 : never_equal_later(a.indices[d], b.indices[d], *around, neighbours_only))
        return true;
    return false;
  }

  bool never_equal(const Expr& a, const Expr& b) const {
    int64_t difference = 0;
    // A thread variable is not the same in two threads, so differences only count without them.
    const bool of_thread = thread_dependent(a) || thread_dependent(b);
    if (!of_thread && is_const_int(simplify(a - b, ranges_), &difference) && difference != 0) return true;
    const auto of_a = const_bounds(a, ranges_), of_b = const_bounds(b, ranges_);
    if (of_a.has_value() && of_b.has_value() && (of_a->second < of_b->first || of_b->second < of_a->first))
      return true;
    for (const auto& [var, extent] : loops_)
      if (uses_var(a, var) || uses_var(b, var)) return differ(a, b, var, extent, 0);
    return false;
  }

  // a in one iteration, b in a later one.
  bool never_equal_later(const Expr& a, const Expr& b, const StmtNode& around, bool neighbours_only) const {
    if (!uses_var(a, around.var) && !uses_var(b, around.var)) return never_equal(a, b);
    for (int64_t distance = 1; distance < (neighbours_only ? 2 : around.extent); ++distance)
      if (distance > 64 || !differ(a, b, around.var, around.extent, distance)) return false;
    return true;
  }

  // a(i) != b(i + distance) for every i, by trying each.
  static bool differ(const Expr& a, const Expr& b, const Var& var, int64_t extent, int64_t distance) {
    if (extent > kMaxIterations) return false;
    for (int64_t i = 0; i + distance < extent; ++i) {
      const auto at_a = value_at(a, var, i), at_b = value_at(b, var, i + distance);
      if (!at_a.has_value() || !at_b.has_value() || *at_a == *at_b) return false;
    }
    return true;
  }

  // Each element both touch is touched by one thread only, the same one.
  bool same_thread(const Access& a, const Access& b) const {
    for (size_t axis = 0; axis < 3; ++axis) {
      if (kernel_.block[axis] == 1) continue;
      bool proved = false;
      for (size_t d = 0; d < a.indices.size() && !proved; ++d) {
        const auto scale_a = owner_scale(a.indices[d], axis), scale_b = owner_scale(b.indices[d], axis);
        proved = scale_a.has_value() && scale_a == scale_b;
      }
      if (!proved) return false;
    }
    return true;
  }

  // The scale s with which an index names thread t of an axis with n threads: index = s*t + multiples of s*n
  // + something in [0, s). Then t = index / s % n.
  std::optional<int64_t> owner_scale(const Expr& index, size_t axis) const {
    const Var& thread = kernel_.thread_vars[axis];
    if (thread == nullptr || !index.defined()) return std::nullopt;
    const LinearForm form = linear_form(index, ranges_);
    int64_t scale = 0;
    for (const auto& [term, coefficient] : form.terms)
      if (term->kind == ExprKind::kVar && term->var == thread) scale = coefficient;
    if (scale <= 0) return std::nullopt;
    const int64_t period = scale * kernel_.block[axis];
    int64_t low = form.constant % period, high = low;
    for (const auto& [term, coefficient] : form.terms) {
      if ((term->kind == ExprKind::kVar && term->var == thread) || coefficient % period == 0) continue;
      const auto bounds = const_bounds(term, ranges_);
      if (!bounds.has_value() || uses_var(term, thread)) return std::nullopt;
      low += std::min(bounds->first * coefficient, bounds->second * coefficient);
      high += std::max(bounds->first * coefficient, bounds->second * coefficient);
    }
    return low >= 0 && high < scale ? std::optional(scale) : std::nullopt;
  }

  const GpuKernel& kernel_;
  RangeMap ranges_;
  std::vector<std::pair<Var, int64_t>> loops_;
  std::vector<Expr> guards_;  // that depend on the thread
  Status status_;
};

}  // namespace

Result<Stmt> insert_barriers(const Stmt& body, const GpuKernel& kernel) {
  Barriers pass(kernel);
  Stmt result = pass.visit(body).stmt;
  RETURN_IF_ERROR(pass.status());
  return result;
}

}  // namespace tuner::gpu
