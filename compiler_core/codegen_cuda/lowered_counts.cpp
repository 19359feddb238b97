#include <algorithm>
#include <optional>

#include "compiler_core/codegen_cuda/index_value.h"
#include "compiler_core/codegen_cuda/issue_floor.h"
#include "compiler_core/codegen_cuda/shared_words.h"
#include "compiler_core/codegen_cuda/warp_work.h"
#include "compiler_core/ir/visitor.h"

namespace tuner::sass {
namespace {

// Points at which a guard is evaluated, at most: it takes some 0.05 us each, and a guard of the whole block
// is evaluated for every block.
constexpr int64_t kMostPoints = int64_t{1} << 16;

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
  explicit Counter(const GpuKernel& kernel) : kernel_(kernel) {
    for (size_t d = 0; d < 3; ++d)
      if (kernel.block_vars[d] != nullptr) known_.push_back({kernel.block_vars[d], kernel.grid[d]});
    block_vars_ = known_.size();
  }

  void walk(const Stmt& s, double times) {
    if (s == nullptr) return;
    if (s->kind == StmtKind::kIf) {
      walk_guarded(s->condition, s->body, times);
      return walk_guarded(unary(UnaryOp::kNot, s->condition), s->else_body, times);
    }
    if (s->kind == StmtKind::kStore) {
      count(counts_.multiply_adds, multiply_adds_of(s->value) * times);
      add_loads(s->value);
      if (in_every_turn()) round_->add(s->buffer, s->indices, /*is_store=*/true, inside_);
    }
    if (s->kind == StmtKind::kIntrinsic) count_tiles(*s, times);
    if (s->kind == StmtKind::kBarrier && s->scope == MemoryScope::kShared) count(counts_.barriers, times);
    if (s->kind == StmtKind::kFor && s->loop == LoopKind::kDot) return count(counts_.dots, times);
    if (s->kind == StmtKind::kFor) return walk_loop(*s, times * static_cast<double>(s->extent));
    walk(s->body, times);
    for (const Stmt& child : s->stmts) walk(child, times);
  }

  LoweredCounts counts() const {
    LoweredCounts counts = counts_;
    counts.active_blocks = block_share_.value_or(1);
    return counts;
  }

 private:
  struct Known {
    Var var;
    int64_t extent;
  };
  // Guards that hold together at some share of the points of their variables.
  struct Guards {
    std::vector<Expr> all;
    double share = 1;
  };

  void walk_loop(const StmtNode& s, double times) {
    bool has_barrier = false;
    visit(s.body, [&](const Stmt& child) {
      has_barrier |= child->kind == StmtKind::kBarrier && child->scope == MemoryScope::kShared;
    });
    known_.push_back({s.var, s.extent});
    (has_barrier ? rounds_ : inside_).push_back({s.var, s.extent});
    if (has_barrier)
      walk_round(s, times);
    else
      walk(s.body, times);
    (has_barrier ? rounds_ : inside_).pop_back();
    known_.pop_back();
  }

  // Accesses to shared memory between the barriers of two turns.
  void walk_round(const StmtNode& s, double times) {
    std::optional<cuda::SharedRound> around = std::move(round_);
    const size_t guards_around = guards_of_round_;
    round_.emplace(kernel_, rounds_);
    guards_of_round_ = of_block_.all.size();
    walk(s.body, times);
    const bool surely = within_.all.empty() && block_share_.value_or(of_block_.share) == of_block_.share;
    if (surely) counts_.shared_passes += round_->least_passes() * times;
    round_ = std::move(around);
    guards_of_round_ = guards_around;
  }

  // No guard stands around but what stands around the round, too.
  bool in_every_turn() const {
    return round_.has_value() && within_.all.empty() && of_block_.all.size() == guards_of_round_;
  }
  // Not what a condition selects.
  void add_loads(const Expr& e) {
    if (!in_every_turn() || e->kind == ExprKind::kSelect) return;
    if (e->kind == ExprKind::kLoad) return round_->add(e->buffer, e->operands, /*is_store=*/false, inside_);
    for (const Expr& operand : e->operands) add_loads(operand);
  }

  void count_tiles(const StmtNode& s, double times) {
    const Intrinsic* const intrinsic = find_intrinsic(s.name);
    if (intrinsic == nullptr) return;
    const cuda::TileProducts products = cuda::tile_products(*intrinsic);
    count(counts_.tiles, products.instructions * times);
    count(counts_.halves, products.halves * times);
    count(counts_.bytes, products.bytes * times);
    count(counts_.grouped, products.grouped * times);
  }

  void count(double& sum, double pieces) {
    if (pieces == 0) return;
    sum += pieces * within_.share;
    counts_.blocks_differ |= within_uses_blocks_ || block_share_.value_or(of_block_.share) != of_block_.share;
    block_share_ = of_block_.share;
  }

  // A guard of blocks alone, outside of all others, decides which blocks have work; others decide how much.
  // One of threads or data is taken for never true.
  void walk_guarded(const Expr& condition, const Stmt& body, double times) {
    if (body == nullptr) return;
    const bool blocks_only = within_.all.empty() && uses_only(condition, block_vars_);
    Guards& guards = blocks_only ? of_block_ : within_;
    const Guards before = guards;
    const bool before_uses = within_uses_blocks_;
    guards.all.push_back(condition);
    const std::optional<double> share = share_of(guards.all);
    guards.share = share.value_or(0);
    if (!blocks_only) within_uses_blocks_ |= uses_blocks(condition);
    if (guards.share > 0) walk(body, times);
    within_uses_blocks_ = before_uses;
    guards = before;
  }

  bool uses_blocks(const Expr& e) const {
    return std::any_of(known_.begin(), known_.begin() + static_cast<std::ptrdiff_t>(block_vars_),
                       [&](const Known& k) { return uses_var(e, k.var); });
  }
  // True if all variables are among the first `n` that are known, and nothing is loaded.
  bool uses_only(const Expr& whole, size_t n) const {
    bool only = true;
    visit(whole, [&](const Expr& e) {
      if (e->kind == ExprKind::kLoad) only = false;
      if (e->kind != ExprKind::kVar) return;
      const auto end = known_.begin() + static_cast<std::ptrdiff_t>(n);
      only = only && std::any_of(known_.begin(), end, [&](const Known& k) { return k.var == e->var; });
    });
    return only;
  }

  // Nothing when a guard depends on the thread or on data, or on more than can be looked at.
  std::optional<double> share_of(const std::vector<Expr>& guards) const {
    cuda::VarValues values;
    std::vector<int64_t> extents;
    int64_t points = 1;
    for (const Known& k : known_) {
      if (std::ranges::none_of(guards, [&](const Expr& g) { return uses_var(g, k.var); })) continue;
      values.emplace_back(k.var.get(), 0);
      extents.push_back(k.extent);
      points = points > kMostPoints ? points : points * k.extent;
    }
    const bool known =
        std::ranges::all_of(guards, [&](const Expr& g) { return uses_only(g, known_.size()); });
    if (!known || points < 1 || points > kMostPoints) return std::nullopt;
    int64_t held = 0;
    cuda::for_each_point(values, 0, extents, [&] {
      held += std::ranges::all_of(guards, [&](const Expr& g) { return cuda::index_value(g, values) != 0; });
    });
    return static_cast<double>(held) / static_cast<double>(points);
  }

  const GpuKernel& kernel_;
  std::vector<Known> known_;  // variables that do not depend on the thread; those of blocks first
  size_t block_vars_ = 0;
  Guards of_block_, within_;
  bool within_uses_blocks_ = false;
  std::optional<double> block_share_;                     // of what has been counted
  std::vector<cuda::SharedRound::Loop> rounds_, inside_;  // loops around: with barriers, and the others
  std::optional<cuda::SharedRound> round_;                // of the innermost loop with a barrier
  size_t guards_of_round_ = 0;                            // of blocks, around it
  LoweredCounts counts_;
};

}  // namespace

LoweredCounts lowered_counts(const GpuKernel& kernel) {
  Counter counter(kernel);
  counter.walk(kernel.body, 1);
  return counter.counts();
}

}  // namespace tuner::sass
