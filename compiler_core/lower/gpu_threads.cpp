// Block and thread loops become indices; registers become private.
#include <algorithm>

#include "compiler_core/base/int_math.h"
#include "compiler_core/ir/visitor.h"
#include "compiler_core/lower/gpu_passes.h"

namespace tuner::gpu {

int thread_axis(LoopKind kind) {
  return kind >= LoopKind::kThreadX && kind <= LoopKind::kThreadZ
             ? static_cast<int>(kind) - static_cast<int>(LoopKind::kThreadX)
             : -1;
}
int block_axis(LoopKind kind) {
  return kind >= LoopKind::kBlockX && kind <= LoopKind::kBlockZ
             ? static_cast<int>(kind) - static_cast<int>(LoopKind::kBlockX)
             : -1;
}

Extents thread_extents(const Stmt& body) {
  Extents extents{1, 1, 1};
  visit(body, [&](const Stmt& s) {
    if (s->kind != StmtKind::kFor || thread_axis(s->loop) < 0) return;
    int64_t& extent = extents[static_cast<size_t>(thread_axis(s->loop))];
    extent = std::max(extent, s->extent);
  });
  return extents;
}

namespace {

class Binder {
 public:
  explicit Binder(GpuKernel& kernel) : kernel_(kernel) {}

  Stmt bind(const Stmt& s) {
    if (s == nullptr || !status_.is_ok()) return s;
    switch (s->kind) {
      case StmtKind::kFor:
        if (block_axis(s->loop) >= 0) return bind_block(s);
        if (thread_axis(s->loop) >= 0) return bind_thread(s);
        if (s->loop == LoopKind::kClusterX || s->loop == LoopKind::kClusterY)
          return refuse(s, "loop ", s->var->name,
                        " is bound to a cluster axis, which no lowering serves yet");
        if (s->loop == LoopKind::kParallel)
          return refuse(s, "loop ", s->var->name, " is parallel; on a GPU bind it to blocks or threads");
        break;
      case StmtKind::kAllocate:
        if (s->buffer->scope == MemoryScope::kGlobal)
          return refuse(s, s->buffer->name,
                        " would be global memory of one block; give it another scope, or compute it at the "
                        "root");
        allocated_at_[s->buffer] = threads_.size();
        break;
      case StmtKind::kStore:
        return by_one_thread(s);
      default:
        break;
    }
    const bool serial = s->kind == StmtKind::kFor && s->extent > 1;
    if (serial) serial_.push_back(s->var);
    Stmt result = map_children(
        s, [](const Expr& e) { return e; }, [&](const Stmt& child) { return bind(child); });
    if (serial) serial_.pop_back();
    return result;
  }

  const Status& status() const { return status_; }

 private:
  template <class... Args>
  Stmt refuse(const Stmt& s, const Args&... args) {
    if (status_.is_ok()) status_ = invalid_config(args...);
    return s;
  }

  Stmt bind_block(const Stmt& loop) {
    const auto d = static_cast<size_t>(block_axis(loop->loop));
    if (!serial_.empty())
      return refuse(loop, "block axis ", loop->var->name, " stands inside serial loop ", serial_.back()->name,
                    "; reorder it outside");
    if (kernel_.block_vars[d] != nullptr)
      return refuse(loop, loop_kind_name(loop->loop), " is bound twice in the kernel of ", loop->var->name);
    static constexpr const char* kNames[] = {"bx", "by", "bz"};
    kernel_.block_vars[d] = make_var(kNames[d]);
    kernel_.grid[d] = loop->extent;
    return bind(substitute(loop->body, {{loop->var, kernel_.block_vars[d]}}));
  }

  Stmt bind_thread(const Stmt& loop) {
    const auto d = static_cast<size_t>(thread_axis(loop->loop));
    const Var& thread = thread_var(d);
    threads_.push_back(d);
    Stmt body = bind(substitute(loop->body, {{loop->var, thread}}));
    threads_.pop_back();
    if (body == nullptr || loop->extent == kernel_.block[d]) return body;
    return make_if(Expr(thread) < loop->extent, std::move(body));
  }

  const Var& thread_var(size_t d) {
    static constexpr const char* kNames[] = {"tx", "ty", "tz"};
    if (kernel_.thread_vars[d] == nullptr) kernel_.thread_vars[d] = make_var(kNames[d]);
    return kernel_.thread_vars[d];
  }

  // Memory that others see, stored where the threads of an axis do the same work: one of them does it.
  Stmt by_one_thread(const Stmt& store) {
    if (store->buffer->scope == MemoryScope::kRegister) return store;
    const auto allocated = allocated_at_.find(store->buffer);
    const size_t since = allocated == allocated_at_.end() ? 0 : allocated->second;
    std::vector<Expr> guards;
    for (size_t d = 0; d < 3; ++d) {
      if (kernel_.block[d] == 1) continue;
      const bool shared_out = std::find(threads_.begin() + static_cast<std::ptrdiff_t>(since), threads_.end(),
                                        d) != threads_.end();
      const bool by_index = kernel_.thread_vars[d] != nullptr &&
                            std::any_of(store->indices.begin(), store->indices.end(), [&](const Expr& index) {
                              return uses_var(index, kernel_.thread_vars[d]);
                            });
      if (!shared_out && !by_index) guards.push_back(binary(BinaryOp::kEq, thread_var(d), 0));
    }
    return guards.empty() ? store : make_if(conjunction(guards), store);
  }

  GpuKernel& kernel_;
  std::vector<size_t> threads_;            // axes of the thread loops around, outermost first
  std::map<Buffer, size_t> allocated_at_;  // how many thread loops stood around an allocation
  std::vector<Var> serial_;
  Status status_;
};

// How a dimension is shared out: element (q * threads + t) * scale + r belongs to thread t of an axis.
struct Share {
  size_t axis = 0;
  int64_t scale = 0;  // 0: not shared out
};

class Privatizer {
 public:
  explicit Privatizer(const GpuKernel& kernel) : kernel_(kernel) {}

  void look(const Stmt& s, const RangeMap& ranges) {
    if (s == nullptr) return;
    RangeMap inside = ranges;
    if (s->kind == StmtKind::kFor) inside.bind(s->var, s->extent);
    if (s->kind == StmtKind::kStore) note(s->buffer, s->indices, ranges);
    own_exprs(*s, [&](const Expr& whole) {
      visit(whole, [&](const Expr& e) {
        if (e->kind == ExprKind::kLoad) note(e->buffer, e->operands, ranges);
      });
    });
    look(s->body, inside);
    look(s->else_body, inside);
    for (const Stmt& child : s->stmts) look(child, inside);
  }

  void decide() {
    for (const auto& [buffer, shares] : shares_) {
      auto node = std::make_shared<BufferNode>(*buffer);
      bool is_private = false;
      for (size_t d = 0; d < shares.size(); ++d) {
        if (shares[d].scale == 0) continue;
        const int64_t period = shares[d].scale * kernel_.block[shares[d].axis];
        node->shape[d] = ceil_div(buffer->shape[d], period) * shares[d].scale;
        is_private = true;
      }
      if (is_private) private_[buffer] = std::move(node);
    }
  }

  Stmt rebuild(const Stmt& s) const {
    Stmt mapped = map_children(
        s, [&](const Expr& e) { return rebuild(e); }, [&](const Stmt& child) { return rebuild(child); });
    const auto found = mapped->buffer == nullptr ? private_.end() : private_.find(s->buffer);
    if (found == private_.end()) return mapped;
    auto node = std::make_shared<StmtNode>(*mapped);
    node->buffer = found->second;
    if (s->kind == StmtKind::kStore) node->indices = own_part(s->buffer, mapped->indices);
    return node;
  }

 private:
  // How `index` shares out its dimension; scale 0 when it does not.
  Share share_of(const Expr& index, const RangeMap& ranges) const {
    const LinearForm form = linear_form(index, ranges);
    for (size_t axis = 0; axis < 3; ++axis)
      for (const auto& [term, coefficient] : form.terms)
        if (is_thread(term, axis) && coefficient > 0 && fits(form, {axis, coefficient}, ranges))
          return {axis, coefficient};
    return {};
  }

  bool is_thread(const Expr& term, size_t axis) const {
    return term->kind == ExprKind::kVar && term->var == kernel_.thread_vars[axis];
  }

  // The rest of the index is multiples of the period, and something in [0, scale).
  bool fits(const LinearForm& form, const Share& share, const RangeMap& ranges) const {
    const int64_t period = share.scale * kernel_.block[share.axis];
    if (form.constant < 0) return false;
    int64_t low = form.constant % period, high = low;
    for (const auto& [term, coefficient] : form.terms) {
      if (is_thread(term, share.axis)) continue;
      if (uses_var(term, kernel_.thread_vars[share.axis])) return false;
      if (coefficient % period == 0) continue;
      const auto bounds = const_bounds(term, ranges);
      if (!bounds.has_value()) return false;
      low += std::min(bounds->first * coefficient, bounds->second * coefficient);
      high += std::max(bounds->first * coefficient, bounds->second * coefficient);
    }
    return low >= 0 && high < share.scale;
  }

  void note(const Buffer& buffer, const std::vector<Expr>& indices, const RangeMap& ranges) {
    if (buffer->scope != MemoryScope::kRegister) return;
    const auto [found, is_new] = shares_.try_emplace(buffer, indices.size());
    for (size_t d = 0; d < indices.size(); ++d) {
      const Share share = share_of(indices[d], ranges);
      Share& known = found->second[d];
      if (is_new)
        known = share;
      else if (known.scale != share.scale || known.axis != share.axis)
        known = {};
    }
  }

  std::vector<Expr> own_part(const Buffer& buffer, std::vector<Expr> indices) const {
    const std::vector<Share>& shares = shares_.at(buffer);
    for (size_t d = 0; d < indices.size(); ++d)
      if (shares[d].scale != 0) indices[d] = own_part(linear_form(indices[d]), shares[d]);
    return indices;
  }
  // q * scale + r.
  Expr own_part(const LinearForm& form, const Share& share) const {
    const int64_t threads = kernel_.block[share.axis], period = share.scale * threads;
    LinearForm own;
    own.constant = form.constant / period * share.scale + form.constant % period;
    for (const auto& [term, coefficient] : form.terms) {
      if (is_thread(term, share.axis)) continue;
      own.terms.emplace_back(term, coefficient % period == 0 ? coefficient / threads : coefficient);
    }
    return to_expr(own);
  }

  Expr rebuild(const Expr& e) const {
    const Expr mapped = map_children(e, [&](const Expr& operand) { return rebuild(operand); });
    const auto found = e->kind == ExprKind::kLoad ? private_.find(e->buffer) : private_.end();
    return found == private_.end() ? mapped : load(found->second, own_part(e->buffer, mapped->operands));
  }

  const GpuKernel& kernel_;
  std::map<Buffer, std::vector<Share>> shares_;
  std::map<Buffer, Buffer> private_;
};

}  // namespace

Result<Stmt> bind_axes(const Stmt& body, GpuKernel& kernel) {
  kernel.block = thread_extents(body);
  Binder binder(kernel);
  Stmt result = binder.bind(body);
  RETURN_IF_ERROR(binder.status());
  return result;
}

Stmt privatize_registers(const Stmt& body, const GpuKernel& kernel) {
  Privatizer pass(kernel);
  pass.look(body, kernel_ranges(kernel));
  pass.decide();
  return pass.rebuild(body);
}

Stmt unroll_register_loops(const Stmt& s) {
  if (s == nullptr) return s;
  Stmt result = map_children(
      s, [](const Expr& e) { return e; }, unroll_register_loops);
  if (result->kind != StmtKind::kFor || result->loop != LoopKind::kSerial) return result;
  bool indexes_registers = false;
  const auto look = [&](const Buffer& buffer, const std::vector<Expr>& indices) {
    if (buffer->scope != MemoryScope::kRegister) return;
    for (const Expr& index : indices) indexes_registers |= uses_var(index, result->var);
  };
  visit(result->body, [&](const Stmt& child) {
    if (child->kind == StmtKind::kStore) look(child->buffer, child->indices);
  });
  visit_exprs(result->body, [&](const Expr& e) {
    if (e->kind == ExprKind::kLoad) look(e->buffer, e->operands);
  });
  if (!indexes_registers) return result;
  return make_for(result->var, result->extent, result->body, result->axis, LoopKind::kUnrolled);
}

}  // namespace tuner::gpu
