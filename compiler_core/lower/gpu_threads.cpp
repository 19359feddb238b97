// Block and thread loops become indices; registers become private.
#include <algorithm>

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

RangeMap kernel_ranges(const GpuKernel& kernel) {
  RangeMap ranges;
  for (size_t d = 0; d < 3; ++d) {
    if (kernel.block_vars[d] != nullptr) ranges.bind(kernel.block_vars[d], kernel.grid[d]);
    if (kernel.thread_vars[d] != nullptr) ranges.bind(kernel.thread_vars[d], kernel.block[d]);
  }
  return ranges;
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

// Dimensions of register buffers that are always indexed by one thread's own index.
class Privatizer {
 public:
  explicit Privatizer(const GpuKernel& kernel) : kernel_(kernel) {}

  void look(const Stmt& body) {
    visit(body, [&](const Stmt& s) {
      if (s->kind == StmtKind::kStore) note(s->buffer, s->indices);
      own_exprs(*s, [&](const Expr& whole) {
        visit(whole, [&](const Expr& e) {
          if (e->kind == ExprKind::kLoad) note(e->buffer, e->operands);
        });
      });
    });
    for (const auto& [buffer, keep] : keep_) {
      if (std::find(keep.begin(), keep.end(), false) == keep.end()) continue;
      auto node = std::make_shared<BufferNode>(*buffer);
      node->shape.clear();
      for (size_t d = 0; d < keep.size(); ++d)
        if (keep[d]) node->shape.push_back(buffer->shape[d]);
      if (node->shape.empty()) node->shape.push_back(1);
      private_[buffer] = std::move(node);
    }
  }

  Stmt rebuild(const Stmt& s) const {
    Stmt mapped = map_children(
        s, [&](const Expr& e) { return rebuild(e); }, [&](const Stmt& child) { return rebuild(child); });
    const auto found = mapped->buffer == nullptr ? private_.end() : private_.find(s->buffer);
    if (found == private_.end()) return mapped;
    auto node = std::make_shared<StmtNode>(*mapped);
    node->buffer = found->second;
    if (s->kind == StmtKind::kStore) node->indices = kept(s->buffer, mapped->indices);
    return node;
  }

 private:
  bool is_own_index(const Expr& index, int64_t extent) const {
    for (size_t d = 0; d < 3; ++d)
      if (kernel_.thread_vars[d] != nullptr && index->kind == ExprKind::kVar &&
          index->var == kernel_.thread_vars[d] && extent <= kernel_.block[d])
        return true;
    return false;
  }
  void note(const Buffer& buffer, const std::vector<Expr>& indices) {
    if (buffer->scope != MemoryScope::kRegister) return;
    auto& keep = keep_.try_emplace(buffer, indices.size(), false).first->second;
    for (size_t d = 0; d < indices.size(); ++d)
      if (!is_own_index(indices[d], buffer->shape[d])) keep[d] = true;
  }
  std::vector<Expr> kept(const Buffer& buffer, const std::vector<Expr>& indices) const {
    const std::vector<bool>& keep = keep_.at(buffer);
    std::vector<Expr> result;
    for (size_t d = 0; d < indices.size(); ++d)
      if (keep[d]) result.push_back(indices[d]);
    if (result.empty()) result.emplace_back(0);
    return result;
  }
  Expr rebuild(const Expr& e) const {
    const Expr mapped = map_children(e, [&](const Expr& operand) { return rebuild(operand); });
    const auto found = e->kind == ExprKind::kLoad ? private_.find(e->buffer) : private_.end();
    return found == private_.end() ? mapped : load(found->second, kept(e->buffer, mapped->operands));
  }

  const GpuKernel& kernel_;
  std::map<Buffer, std::vector<bool>> keep_;
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
  pass.look(body);
  return pass.rebuild(body);
}

}  // namespace tuner::gpu
