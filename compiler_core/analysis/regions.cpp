#include "compiler_core/analysis/regions.h"

#include <algorithm>

#include "compiler_core/arith/meaning.h"
#include "compiler_core/base/int_math.h"
#include "compiler_core/ir/visitor.h"

namespace tuner {
namespace {

// outer + [min, max]: the values of one index over the inner loops.
struct Interval {
  LinearForm outer;  // without a constant
  int64_t min = 0, max = 0;
};

class Access {
 public:
  Access(const Stmt& s, const RangeMap& outer) : outer_(outer), all_(outer) {
    visit(s, [&](const Stmt& child) {
      if (child->kind != StmtKind::kFor) return;
      all_.bind(child->var, child->extent);
      inner_.push_back(child->var.get());
    });
  }

  std::optional<Interval> interval(const Expr& index) const { return interval(linear_form(index, all_)); }

 private:
  bool has_inner(const Expr& e) const {
    if (e->kind == ExprKind::kVar)
      return std::find(inner_.begin(), inner_.end(), e->var.get()) != inner_.end();
    return std::any_of(e->operands.begin(), e->operands.end(),
                       [&](const Expr& operand) { return has_inner(operand); });
  }

  std::optional<Interval> interval(const LinearForm& form) const {
    Interval result{.outer = {}, .min = form.constant, .max = form.constant};
    for (const auto& [atom, coefficient] : form.terms) {
      if (!has_inner(atom)) {
        result.outer.terms.emplace_back(atom, coefficient);
        continue;
      }
      const auto bounds = const_bounds(atom, all_);
      if (!bounds.has_value() || has_outer(atom)) {
        // (outer + [a, b]) // c + constant
        if (const auto quotient = divided(atom);
            quotient.has_value() && coefficient == 1 && form.terms.size() == 1)
          return Interval{quotient->outer, quotient->min + form.constant, quotient->max + form.constant};
      }
      if (!bounds.has_value()) return std::nullopt;
      const auto [low, high] = *bounds;
      result.min += std::min(low * coefficient, high * coefficient);
      result.max += std::max(low * coefficient, high * coefficient);
    }
    return result;
  }

  bool has_outer(const Expr& e) const {
    bool found = false;
    visit(e, [&](const Expr& part) { found |= part->kind == ExprKind::kVar && !has_inner(part); });
    return found;
  }

  // x // c where x = outer + [a, b]: (outer + a) // c + [0, (b - a + c - 1) // c].
  std::optional<Interval> divided(const Expr& e) const {
    int64_t c = 0;
    if (e->kind != ExprKind::kBinary || e->binary_op != BinaryOp::kFloorDiv ||
        !is_const_int(e->operands[1], &c) || c <= 0)
      return std::nullopt;
    const std::optional<Interval> x = interval(linear_form(e->operands[0], all_));
    if (!x.has_value()) return std::nullopt;
    LinearForm start = x->outer;
    start.constant = x->min;
    return Interval{linear_form(floor_div(to_expr(start), c), outer_), 0, ceil_div(x->max - x->min, c)};
  }

  const RangeMap& outer_;
  RangeMap all_;
  std::vector<const VarNode*> inner_;
};

// One dimension of a box as accesses are added to it.
struct Dimension {
  bool whole = false;
  std::optional<Interval> box;

  void add(const std::optional<Interval>& more, const RangeMap& outer) {
    if (!more.has_value()) whole = true;
    if (whole) return;
    if (!box.has_value()) {
      box = more;
      return;
    }
    const LinearForm apart = linear_form(to_expr(more->outer) - to_expr(box->outer), outer);
    if (!apart.terms.empty()) {
      whole = true;
      return;
    }
    box->min = std::min(box->min, more->min + apart.constant);
    box->max = std::max(box->max, more->max + apart.constant);
  }
};

class Collector {
 public:
  Collector(const Stmt& s, const Buffer& buffer, const RangeMap& outer)
      : buffer_(buffer), outer_(outer), access_(s, outer), dimensions_(buffer->shape.size()) {}

  void add(const std::vector<Expr>& indices) {
    found_ = true;
    for (size_t d = 0; d < indices.size(); ++d) dimensions_[d].add(access_.interval(indices[d]), outer_);
  }

  std::optional<Region> region() const {
    if (!found_) return std::nullopt;
    Region region;
    for (size_t d = 0; d < dimensions_.size(); ++d) {
      const std::optional<Interval>& box = dimensions_[d].box;
      const bool whole = dimensions_[d].whole || box->max - box->min + 1 >= buffer_->shape[d];
      LinearForm start = whole ? LinearForm{} : box->outer;
      if (!whole) start.constant += box->min;
      region.min.push_back(simplify(to_expr(start), outer_));
      region.extent.push_back(whole ? buffer_->shape[d] : box->max - box->min + 1);
      const bool cut =
          whole && !dimensions_[d].whole && box->outer.terms.empty() && box->min + box->outer.constant == 0;
      region.reached.push_back(cut ? box->max - box->min + 1 : region.extent.back());
    }
    return region;
  }

 private:
  const Buffer& buffer_;
  const RangeMap& outer_;
  Access access_;
  std::vector<Dimension> dimensions_;
  bool found_ = false;
};

}  // namespace

std::optional<Region> region_read(const Stmt& tiled, const Buffer& buffer, const RangeMap& outer) {
  const Stmt s = with_meanings(tiled);
  Collector collector(s, buffer, outer);
  visit_exprs(s, [&](const Expr& e) {
    if (e->kind == ExprKind::kLoad && e->buffer == buffer) collector.add(e->operands);
  });
  return collector.region();
}

std::optional<Region> region_written(const Stmt& tiled, const Buffer& buffer, const RangeMap& outer) {
  const Stmt s = with_meanings(tiled);
  Collector collector(s, buffer, outer);
  visit(s, [&](const Stmt& child) {
    if (child->kind == StmtKind::kStore && child->buffer == buffer) collector.add(child->indices);
  });
  return collector.region();
}

}  // namespace tuner
