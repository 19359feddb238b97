#include "compiler_core/codegen_cuda/step_masks.h"

#include <algorithm>

#include "compiler_core/arith/simplify.h"
#include "compiler_core/codegen_cuda/printed_body.h"
#include "compiler_core/ir/visitor.h"

namespace tuner::cuda {
namespace {

constexpr size_t kMostKinds = 32;  // bits of a register

// Whether a variable of `e` satisfies `wanted`.
template <class Wanted>
bool has_variable(const Expr& e, const Wanted& wanted) {
  bool found = false;
  visit(e, [&](const Expr& part) { found |= part->kind == ExprKind::kVar && wanted(part->var); });
  return found;
}

class Masks {
 public:
  Masks(const GpuKernel& kernel, std::vector<StepMask>& masks)
      : ranges_(kernel_ranges(kernel)), masks_(masks) {
    for (const auto* vars : {&kernel.block_vars, &kernel.thread_vars})
      for (const Var& var : *vars)
        if (var != nullptr) threads_.push_back(var);
  }

  Stmt rewritten(const Stmt& s) {
    if (s == nullptr) return s;
    const Masks outside = *this;
    Stmt result = s;
    if (s->kind == StmtKind::kFor) enter(s);
    in_copy_ |= is_async(*s, "copy");
    if (s->kind == StmtKind::kStore) {
      const bool may_pay = in_copy_ && !steps_.empty() && rounds_ != nullptr;
      if (const Expr value = may_pay ? masked(s->value) : s->value; !equal(value, s->value))
        result = make_store(s->buffer, s->indices, value);
    } else if (s->kind == StmtKind::kIf) {
      const Stmt otherwise = rewritten(s->else_body);
      if (of_step_alone(s->condition)) guards_.push_back(s->condition);
      result = make_if(s->condition, rewritten(s->body), otherwise);
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
    if (loop->extent == 1) return;  // printed without its variable
    if (in_copy_) {
      if (loop->loop == LoopKind::kUnrolled && loop->extent <= kMostRounds) rounds_ = loop;
      return;
    }
    if (!prints_unrolled(*loop) && before_ == nullptr) before_ = loop->var.get();
    if (before_ != nullptr) steps_.emplace_back(loop->var, loop->extent);
  }
  void leave(const Masks& outside) {
    ranges_ = outside.ranges_, steps_ = outside.steps_, guards_ = outside.guards_, rounds_ = outside.rounds_,
    before_ = outside.before_, in_copy_ = outside.in_copy_;
  }

  bool is_step(const Var& var) const {
    return std::ranges::any_of(steps_, [&](const auto& s) { return s.first == var; });
  }
  bool of_step_alone(const Expr& e) const {
    return !reads_memory(e) && !has_variable(e, [&](const Var& v) { return !is_step(v); });
  }
  // It moves with the steps, and all else it asks for is known before them.
  bool asks_each_step(const Expr& e) const {
    const auto is_known = [&](const Var& v) {
      return is_step(v) || v == rounds_->var || std::ranges::find(threads_, v) != threads_.end();
    };
    return !reads_memory(e) && !of_step_alone(e) &&
           has_variable(e, [&](const Var& v) { return is_step(v); }) &&
           !has_variable(e, [&](const Var& v) { return !is_known(v); });
  }

  // A select with a load, under selects that leave zeros: the conditions that move with the steps as bits.
  Expr masked(const Expr& value) {
    if (value->kind != ExprKind::kSelect) return value;
    const Expr inner = masked(value->operands[1]);
    std::vector<Expr> left, moving;
    for (const Expr& c : conjuncts(value->operands[0])) (asks_each_step(c) ? moving : left).push_back(c);
    if (!moving.empty() && inner->kind == ExprKind::kLoad) {
      if (const Var bits = mask_of(conjunction(moving), inner->buffer->name); bits != nullptr) {
        left.push_back(Expr(0) < Expr(bits));
        return select(conjunction(left), inner, value->operands[2]);
      }
    }
    return equal(inner, value->operands[1]) ? value : select(value->operands[0], inner, value->operands[2]);
  }

  Var mask_of(const Expr& condition, const std::string& source) {
    const std::optional<int64_t> count = step_count(steps_);
    if (!count) return nullptr;
    StepMask mask{.name = source + "_inside", .over = rounds_, .before = before_, .steps = steps_};
    for (int64_t step = 0; step < *count; ++step) {
      const VarMap at = step_values(steps_, step);
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
  std::vector<Var> threads_;  // of the kernel, and its blocks
  Steps steps_;               // the loops around, from the first serial one
  std::vector<Expr> guards_;  // of steps
  Stmt rounds_;
  const VarNode* before_ = nullptr;
  bool in_copy_ = false;
};

}  // namespace

Stmt with_step_masks(const Stmt& body, const GpuKernel& kernel, std::vector<StepMask>& masks) {
  return Masks(kernel, masks).rewritten(body);
}

}  // namespace tuner::cuda
