#include <algorithm>
#include <optional>
#include <set>

#include "compiler_core/codegen_cuda/index_value.h"
#include "compiler_core/codegen_cuda/sass/issue_floor.h"
#include "compiler_core/ir/visitor.h"

namespace tuner::sass {
namespace {

// Points at which a guard is evaluated, at most: it takes some 0.1 us each.
constexpr int64_t kMostPoints = 4096;

bool is_product(const Expr& e) {
  return e->dtype == DType::kFloat32 && e->kind == ExprKind::kBinary && e->binary_op == BinaryOp::kMul;
}

double multiply_adds_of(const Expr& value) {
  double count = 0;
  visit(value, [&](const Expr& e) {
    if (e->dtype != DType::kFloat32 || e->kind != ExprKind::kBinary) return;
    const bool sum = e->binary_op == BinaryOp::kAdd || e->binary_op == BinaryOp::kSub;
    if (sum && (is_product(e->operands[0]) || is_product(e->operands[1]))) count += 1;
  });
  return count;
}

class Counter {
 public:
  explicit Counter(const GpuKernel& kernel) {
    for (size_t d = 0; d < 3; ++d)
      if (kernel.block_vars[d] != nullptr) known_.push_back({kernel.block_vars[d], kernel.grid[d]});
  }

  void walk(const Stmt& s, double times) {
    if (s == nullptr) return;
    if (s->kind == StmtKind::kIf) return walk_guarded(*s, times);
    if (s->kind == StmtKind::kStore) counts_.multiply_adds += multiply_adds_of(s->value) * times;
    if (s->kind == StmtKind::kBarrier && s->scope == MemoryScope::kShared) counts_.barriers += times;
    if (s->kind == StmtKind::kFor) {
      times *= static_cast<double>(s->extent);
      known_.push_back({s->var, s->extent});
    }
    walk(s->body, times);
    for (const Stmt& child : s->stmts) walk(child, times);
    if (s->kind == StmtKind::kFor) known_.pop_back();
  }

  const LoweredCounts& counts() const { return counts_; }

 private:
  struct Known {
    Var var;
    int64_t extent;
  };

  void walk_guarded(const StmtNode& s, double times) {
    counts_.has_guards = true;
    walk_branch(s.condition, s.body, times);
    walk_branch(unary(UnaryOp::kNot, s.condition), s.else_body, times);
  }

  // All guards around hold at this share of the points; each of them at its own would count some twice.
  void walk_branch(const Expr& condition, const Stmt& body, double times) {
    if (body == nullptr) return;
    guards_.push_back(condition);
    if (const std::optional<double> share = share_of_guards()) {
      const double before = std::exchange(share_, *share);
      walk(body, before > 0 ? times / before * *share : 0);
      share_ = before;
    }
    guards_.pop_back();
  }

  // Nothing when a guard depends on the thread or on data, or on more than can be looked at.
  std::optional<double> share_of_guards() const {
    std::set<const VarNode*> used;
    bool known = true;
    for (const Expr& guard : guards_)
      visit(guard, [&](const Expr& e) {
        if (e->kind == ExprKind::kLoad) known = false;
        if (e->kind == ExprKind::kVar) used.insert(e->var.get());
      });
    cuda::VarValues values;
    std::vector<int64_t> extents;
    int64_t points = 1;
    for (const Known& k : known_) {
      if (used.erase(k.var.get()) == 0) continue;
      values.emplace_back(k.var.get(), 0);
      extents.push_back(k.extent);
      points = points > kMostPoints ? points : points * k.extent;
    }
    if (!known || !used.empty() || points < 1 || points > kMostPoints) return std::nullopt;
    int64_t held = 0;
    for (int64_t point = 0; point < points; ++point) {
      int64_t rest = point;
      for (size_t v = 0; v < values.size(); ++v) {
        values[v].second = rest % extents[v];
        rest /= extents[v];
      }
      held += std::ranges::all_of(guards_, [&](const Expr& g) { return cuda::index_value(g, values) != 0; });
    }
    return static_cast<double>(held) / static_cast<double>(points);
  }

  std::vector<Known> known_;  // variables that do not depend on the thread
  std::vector<Expr> guards_;
  double share_ = 1;  // of the guards around
  LoweredCounts counts_;
};

}  // namespace

LoweredCounts lowered_counts(const GpuKernel& kernel) {
  Counter counter(kernel);
  counter.walk(kernel.body, 1);
  return counter.counts();
}

}  // namespace tuner::sass
