// ResidualEstimate: how many different residual constraints a set of decided knobs is likely to leave. Looks
// at the form of the constraints and at the values that their parts can take, not at assignments; the error
// is within a factor of ten or so, which is enough to tell good orders from bad ones (knob_order.h).
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "templates/space/int_expr.h"
#include "templates/space/knob.h"

namespace tuner {

class ResidualEstimate {
 public:
  using Set = uint64_t;  // of knobs: bit i is the i-th member

  // All arguments outlive this. `constraints` read members only.
  ResidualEstimate(const std::vector<KnobInfo>& knobs, const std::vector<int>& members,
                   const std::vector<const IntExprNode*>& constraints);

  // Natural log of the number of residuals once `decided` is.
  double log_states(Set decided);
  // Natural log of how many candidates of member `m`, the next one, `decided` allows.
  double log_allowed(Set decided, size_t m) const;

 private:
  struct Constraint {
    const IntExprNode* expr;
    Set reads;
    bool is_bound;                               // <= or <
    double log_share = 0;                        // of all assignments, those that satisfy it
    std::unordered_map<Set, double> log_states;  // by those of its knobs that are decided
  };
  // The values a part may take, or how many there are at most.
  struct Values {
    std::vector<int64_t> listed;  // ascending; empty: too many
    double log_count = 0;
    IntRange range{0, 0};
  };
  struct Term {
    const IntExprNode* expr;
    bool minus;
  };
  // Of terms added up (multiplied): those over decided knobs are one value beside what is left.
  struct Parted {
    double log_shapes = 0;  // forms that the other terms may take
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
