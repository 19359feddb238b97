// Virtual threads: a loop that every thread does whole moves inside serial loops, and past what does not
// depend on it (copies into shared memory, which are then done once):
//
//   virtual v in 0..2:                      for k:
//     allocate acc[4]                         tile = copy(k)
//     for k:                                  unrolled v in 0..2: acc[v, ...] += use(tile, v)
//       tile = copy(k)              ->
//       acc[...] += use(tile, v)
//
// Iterations are independent (bind checked that), so any order is right once each has registers of its own.
#include <algorithm>
#include <set>

#include "compiler_core/ir/visitor.h"
#include "compiler_core/lower/gpu_passes.h"

namespace tuner::gpu {
namespace {

class Distribution {
 public:
  // `axes`: of the thread loops around, a bit each.
  Distribution(const Stmt& loop, unsigned axes) : loop_(loop), axes_(axes) {
    find_dependent();
    for (const Buffer& b : allocated_) {
      if (!dependent_.contains(b)) continue;
      auto expanded = std::make_shared<BufferNode>(*b);
      expanded->shape.insert(expanded->shape.begin(), loop_->extent);
      expanded_[b] = std::move(expanded);
    }
  }

  Stmt run() { return distribute(loop_->body, {}, axes_); }

 private:
  bool depends(const Expr& e) const {
    bool found = false;
    tuner::visit(e, [&](const Expr& part) {
      found |= part->kind == ExprKind::kVar && part->var == loop_->var;
      found |= part->kind == ExprKind::kLoad && dependent_.contains(part->buffer);
    });
    return found;
  }
  // Does, or would do, something else in another iteration.
  bool depends(const Stmt& s) const {
    bool found = false;
    tuner::visit(s, [&](const Stmt& child) {
      own_exprs(*child, [&](const Expr& e) { found |= depends(e); });
      found |= child->kind == StmtKind::kStore && dependent_.contains(child->buffer);
    });
    return found;
  }

  // Buffers of the loop whose contents differ between iterations: computed from the variable, or from such.
  void find_dependent() {
    tuner::visit(loop_->body, [&](const Stmt& s) {
      if (s->kind == StmtKind::kAllocate) allocated_.push_back(s->buffer);
    });
    for (size_t before = SIZE_MAX; before != dependent_.size();) {
      before = dependent_.size();
      mark(loop_->body, false, axes_);
    }
  }
  void mark(const Stmt& s, bool guarded, unsigned axes) {
    if (s == nullptr) return;
    if (s->kind == StmtKind::kIf) guarded |= depends(s->condition);
    if (is_cooperative(s, axes)) guarded = false;
    axes |= axis_bit(s);
    if (s->kind == StmtKind::kStore) {
      bool found = guarded && s->buffer->scope != MemoryScope::kShared;
      own_exprs(*s, [&](const Expr& e) { found |= depends(e); });
      const bool own = std::find(allocated_.begin(), allocated_.end(), s->buffer) != allocated_.end();
      if (found && own) dependent_.insert(s->buffer);
    }
    mark(s->body, guarded, axes);
    mark(s->else_body, guarded, axes);
    for (const Stmt& child : s->stmts) mark(child, guarded, axes);
  }

  static unsigned axis_bit(const Stmt& s) {
    const int axis = s->kind == StmtKind::kFor ? thread_axis(s->loop) : -1;
    return axis < 0 ? 0u : 1u << axis;
  }
  // Work of the whole block: compute_at made it in bounds without the guards of one iteration.
  static bool is_cooperative(const Stmt& s, unsigned axes) { return (axis_bit(s) & axes) != 0; }

  static bool stores_shared_only(const Stmt& s) {
    bool shared = true;
    tuner::visit(s, [&](const Stmt& child) {
      if (child->kind == StmtKind::kStore) shared &= child->buffer->scope == MemoryScope::kShared;
    });
    return shared;
  }

  // Small enough to be repeated as it is: nothing below that should be done once, or that holds registers.
  bool is_leaf(const Stmt& s) const {
    bool leaf = true;
    tuner::visit(s, [&](const Stmt& child) {
      if (child->kind == StmtKind::kAllocate) leaf = false;
      if (child->kind == StmtKind::kFor && child->extent > 1 && child->loop != LoopKind::kUnrolled &&
          child->loop != LoopKind::kVectorized && child->loop != LoopKind::kVectorRows &&
          child->loop != LoopKind::kDot)
        leaf = false;
      if (child->kind == StmtKind::kStore && !depends(child)) leaf = false;
    });
    return leaf;
  }

  // `guards` are those that depend on the variable and stand around, `axes` the thread loops around.
  Stmt distribute(const Stmt& s, const std::vector<Expr>& guards, unsigned axes) {
    if (s == nullptr) return s;
    if (!depends(s) && (guards.empty() || stores_shared_only(s) || is_cooperative(s, axes))) return s;
    axes |= axis_bit(s);
    if (s->kind == StmtKind::kAllocate) {
      const auto found = expanded_.find(s->buffer);
      return make_allocate(found == expanded_.end() ? s->buffer : found->second,
                           distribute(s->body, guards, axes));
    }
    if (s->kind == StmtKind::kSeq) {
      std::vector<Stmt> stmts;
      for (const Stmt& child : s->stmts) stmts.push_back(distribute(child, guards, axes));
      return make_seq(std::move(stmts));
    }
    if (is_leaf(s) || s->kind == StmtKind::kStore || s->kind == StmtKind::kIntrinsic)
      return repeated(s, guards);
    if (s->kind == StmtKind::kIf && depends(s->condition)) {
      std::vector<Expr> inside = guards, otherwise = guards;
      inside.push_back(s->condition);
      otherwise.push_back(unary(UnaryOp::kNot, s->condition));
      Stmt body = distribute(s->body, inside, axes);
      return s->else_body == nullptr ? body : make_seq({body, distribute(s->else_body, otherwise, axes)});
    }
    return map_children(
        s, [](const Expr& e) { return e; },
        [&](const Stmt& child) { return distribute(child, guards, axes); });
  }

  Stmt repeated(const Stmt& s, const std::vector<Expr>& guards) {
    const Var v = make_var(loop_->var->name);
    Stmt body = guards.empty() ? s : make_if(conjunction(guards), s);
    body = own_registers(substitute(body, {{loop_->var, v}}), v);
    return make_for(v, loop_->extent, std::move(body), AxisKind::kSpatial, LoopKind::kUnrolled);
  }

  Expr own_registers(const Expr& e, const Var& v) {
    const Expr mapped = map_children(e, [&](const Expr& operand) { return own_registers(operand, v); });
    const auto found = e->kind == ExprKind::kLoad ? expanded_.find(e->buffer) : expanded_.end();
    if (found == expanded_.end()) return mapped;
    std::vector<Expr> indices = mapped->operands;
    indices.insert(indices.begin(), Expr(v));
    return load(found->second, std::move(indices));
  }
  Stmt own_registers(const Stmt& s, const Var& v) {
    Stmt mapped = map_children(
        s, [&](const Expr& e) { return own_registers(e, v); },
        [&](const Stmt& child) { return own_registers(child, v); });
    const auto found = s->kind == StmtKind::kStore ? expanded_.find(s->buffer) : expanded_.end();
    if (found == expanded_.end()) return mapped;
    auto node = std::make_shared<StmtNode>(*mapped);
    node->buffer = found->second;
    node->indices.insert(node->indices.begin(), Expr(v));
    return node;
  }

  const Stmt loop_;
  const unsigned axes_;
  std::vector<Buffer> allocated_;
  std::set<Buffer> dependent_;
  std::map<Buffer, Buffer> expanded_;
};

}  // namespace

namespace {
Stmt inject(const Stmt& s, unsigned axes) {
  if (s == nullptr) return s;
  const int axis = s->kind == StmtKind::kFor ? thread_axis(s->loop) : -1;
  const unsigned inside = axis < 0 ? axes : axes | 1u << axis;
  Stmt result = map_children(
      s, [](const Expr& e) { return e; }, [&](const Stmt& child) { return inject(child, inside); });
  if (result == nullptr || result->kind != StmtKind::kFor || result->loop != LoopKind::kVirtualThread)
    return result;
  if (result->extent == 1) return substitute(result->body, {{result->var, 0}});
  return Distribution(result, axes).run();
}
}  // namespace

Stmt inject_virtual_threads(const Stmt& body) { return inject(body, 0); }

}  // namespace tuner::gpu
