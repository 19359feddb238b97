// ResidualEstimate: estimates how many different residual constraints a set of decided knobs leaves. It
// examines the form of the constraints and the values of their parts, not assignments. The error is within a
// factor of about ten, which is enough to tell good orders from bad ones (knob_order.h).
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "templates/space/int_expr.h"
#include "templates/space/knob.h"

namespace tuner {

class ResidualEstimate {
 public:
  using Set = uint64_t;  // a set of knobs: bit i is the i-th member

  // All arguments must outlive this. `constraints` read members only.
  ResidualEstimate(const std::vector<KnobInfo>& knobs, const std::vector<int>& members,
                   const std::vector<const IntExprNode*>& constraints);

  // Returns the natural log of the number of residuals after `decided`.
  double log_states(Set decided);
  // Returns the natural log of how many candidates of member `m`, the next one, `decided` allows.
  double log_allowed(Set decided, size_t m) const;

 private:
  struct Constraint {
    const IntExprNode* expr;
    Set reads;
    bool is_bound;                               // <= or <
    double log_share = 0;                        // share of all assignments that satisfy it
    std::unordered_map<Set, double> log_states;  // key: its decided knobs
  };
  // The values that a part may take, or an upper bound on their number.
  struct Values {
    std::vector<int64_t> listed;  // ascending; empty: too many to list
    double log_count = 0;
    IntRange range{0, 0};
  };
  struct Term {
    const IntExprNode* expr;
    bool minus;
  };
  // A sum (product) of terms in two parts: the terms over decided knobs form one value, the others are left.
  struct Parted {
    double log_shapes = 0;  // number of forms that the other terms may take
    Values value;
  };

  const std::vector<int64_t>& candidates(size_t m) const {
    return knobs_[static_cast<size_t>(members_[m])].candidates;
  }
  Set reads(const IntExprNode& e);
  double log_assignments(Set of) const;
  void draw_shares();
  double log_states_of(Constraint& c, Set decided);
  double log_shapes(const IntExprNode& e, Set decided);
  Parted parted(const std::vector<Term>& terms, bool product, Set decided);
  const Values& values_of(const IntExprNode& e);
  void list_values(const IntExprNode& e, Set of, size_t m, std::vector<int64_t>& at,
                   std::vector<int64_t>& out);
  static Values listed(std::vector<int64_t> values);
  static Values combined(IntOp op, const Values& a, const Values& b);

  const std::vector<KnobInfo>& knobs_;
  const std::vector<int>& members_;
  std::vector<Set> bit_of_;  // by position in knobs_
  std::vector<double> log_width_;
  std::vector<Constraint> constraints_;
  std::unordered_map<const IntExprNode*, Set> reads_;
  std::unordered_map<const IntExprNode*, Values> values_;
};

}  // namespace tuner
