#include "compiler_core/codegen_cuda/step_masks.h"

#include <algorithm>

#include "compiler_core/arith/simplify.h"
#include "compiler_core/codegen_cuda/index_names.h"
#include "compiler_core/ir/visitor.h"

namespace tuner::cuda {
namespace {

constexpr size_t kMostKinds = 32;     // bits of a register
constexpr int64_t kMostSteps = 1024;  // of a table
constexpr int64_t kMostRounds = 16;   // registers

bool uses_any(const Expr& e, const std::vector<std::pair<Var, int64_t>>& vars) {
  return std::ranges::any_of(vars, [&](const auto& v) { return uses_var(e, v.first); });
}
// Nothing but these variables.
bool uses_only(const Expr& e, const std::vector<std::pair<Var, int64_t>>& vars) {
  bool only = true;
  visit(e, [&](const Expr& part) {
    only &= part->kind != ExprKind::kLoad;
    if (part->kind == ExprKind::kVar)
      only &= std::ranges::any_of(vars, [&](const auto& v) { return v.first == part->var; });
  });
  return only;
}

class Masks {
 public:
  Masks(const GpuKernel& kernel, std::vector<StepMask>& masks)
      : ranges_(kernel_ranges(kernel)), masks_(masks) {}

  Stmt rewritten(const Stmt& s) {
    if (s == nullptr) return s;
    const Masks outside = *this;
    Stmt result = s;
    if (s->kind == StmtKind::kFor) enter(s);
    if (s->kind == StmtKind::kIf && uses_only(s->condition, steps_)) guards_.push_back(s->condition);
    in_copy_ |= is_async(*s, "copy");
    if (s->kind == StmtKind::kStore && in_copy_ && !steps_.empty() && rounds_ != nullptr) {
      if (const Expr value = masked(s->value); !equal(value, s->value))
        result = make_store(s->buffer, s->indices, value);
    } else {
      result = map_children(
          s, [](const Expr& e) { return e; }, [&](const Stmt& child) { return rewritten(child); });
    }
    leave(outside);
    return result;
  }

 private:
  void enter(const Stmt& loop) {
    ranges_.bind(loop->var, loop->extent);
    if (in_copy_) {
      if (loop->loop == LoopKind::kUnrolled && loop->extent <= kMostRounds) rounds_ = loop;
      if (loop->loop == LoopKind::kVectorized) lane_ = loop->var;
      return;
    }
    if (!prints_unrolled(*loop) && before_ == nullptr) before_ = loop->var.get();
    if (before_ != nullptr) steps_.emplace_back(loop->var, loop->extent);
  }
  void leave(const Masks& outside) {
    ranges_ = outside.ranges_, steps_ = outside.steps_, guards_ = outside.guards_, rounds_ = outside.rounds_,
    lane_ = outside.lane_, before_ = outside.before_, in_copy_ = outside.in_copy_;
  }

  // A select with a load, under selects that leave zeros: the conditions that move with the steps as bits.
  Expr masked(const Expr& value) {
    if (value->kind != ExprKind::kSelect) return value;
    const Expr inner = masked(value->operands[1]);
    std::vector<Expr> left, moving;
    for (const Expr& c : conjuncts(value->operands[0])) {
      const bool asks =
          uses_any(c, steps_) && !uses_only(c, steps_) && (lane_ == nullptr || !uses_var(c, lane_));
      (asks ? moving : left).push_back(c);
    }
    if (!moving.empty() && inner->kind == ExprKind::kLoad) {
      if (const Var bits = mask_of(conjunction(moving), inner->buffer->name); bits != nullptr) {
        left.push_back(Expr(0) < Expr(bits));
        return select(conjunction(left), inner, value->operands[2]);
      }
    }
    return equal(inner, value->operands[1]) ? value : select(value->operands[0], inner, value->operands[2]);
  }

  Var mask_of(const Expr& condition, const std::string& source) {
    int64_t count = 1;
    for (const auto& [var, extent] : steps_)
      if ((count *= extent) > kMostSteps) return nullptr;
    StepMask mask{.name = source + "_inside", .over = rounds_, .before = before_, .steps = steps_};
    for (int64_t step = 0; step < count; ++step) {
      int64_t rest = step;
      VarMap at;
      for (auto s = steps_.rbegin(); s != steps_.rend(); ++s) {
        at.emplace(s->first, Expr(rest % s->second));
        rest /= s->second;
      }
      // A step that copies nothing is of any kind.
      const bool idle = std::ranges::any_of(guards_, [&](const Expr& guard) {
        int64_t holds = 1;
        return is_const_int(simplify(substitute(guard, at), ranges_), &holds) && holds == 0;
      });
      if (idle) {
        mask.kind_of_step.push_back(0);
        continue;
      }
      const Expr kind = simplify(substitute(condition, at), ranges_);
      const auto known = std::ranges::find_if(mask.kinds, [&](const Expr& e) { return equal(e, kind); });
      mask.kind_of_step.push_back(known - mask.kinds.begin());
      if (known == mask.kinds.end()) mask.kinds.push_back(kind);
      if (mask.kinds.size() > kMostKinds) return nullptr;
    }
    mask.var = make_var(mask.name);
    masks_.push_back(mask);
    return mask.var;
  }

  RangeMap ranges_;
  std::vector<StepMask>& masks_;
  std::vector<std::pair<Var, int64_t>> steps_;  // the loops around, from the first serial one
  std::vector<Expr> guards_;                    // of steps
  Stmt rounds_;
  Var lane_;
  const VarNode* before_ = nullptr;
  bool in_copy_ = false;
};

}  // namespace

Stmt with_step_masks(const Stmt& body, const GpuKernel& kernel, std::vector<StepMask>& masks) {
  return Masks(kernel, masks).rewritten(body);
}

}  // namespace tuner::cuda
