#include "templates/space/residual_estimate.h"

#include <algorithm>
#include <cmath>

namespace tuner {
namespace {

constexpr size_t kMostListed = 256;  // values of one part

double log_span(IntRange r) { return std::log(static_cast<double>(r.hi) - static_cast<double>(r.lo) + 1); }

bool is_sum(IntOp op) { return op == IntOp::kAdd || op == IntOp::kSub; }

template <class Terms>
void flatten(const IntExprNode& e, bool product, bool minus, Terms& out) {
  if (product ? e.op == IntOp::kMul : is_sum(e.op)) {
    flatten(*e.a, product, minus, out);
    flatten(*e.b, product, minus != (e.op == IntOp::kSub), out);
  } else {
    out.push_back({&e, minus});
  }
}

}  // namespace

ResidualEstimate::ResidualEstimate(const std::vector<KnobInfo>& knobs, const std::vector<int>& members,
                                   const std::vector<const IntExprNode*>& constraints)
    : knobs_(knobs), members_(members), bit_of_(knobs.size(), 0) {
  for (size_t m = 0; m < members.size(); ++m) {
    bit_of_[static_cast<size_t>(members[m])] = Set{1} << m;
    log_width_.push_back(std::log(static_cast<double>(candidates(m).size())));
  }
  for (const IntExprNode* e : constraints)
    constraints_.push_back({e, reads(*e), e->op == IntOp::kLe || e->op == IntOp::kLt, 0, {}});
  draw_shares();
}

void ResidualEstimate::draw_shares() {
  constexpr int kDraws = 256;
  std::vector<int> held(constraints_.size(), 0);
  std::vector<int64_t> values(knobs_.size(), 0);
  uint64_t state = 1;
  for (int i = 0; i < kDraws; ++i) {
    for (size_t m = 0; m < members_.size(); ++m) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      values[static_cast<size_t>(members_[m])] = candidates(m)[(state >> 33) % candidates(m).size()];
    }
    for (size_t c = 0; c < held.size(); ++c) held[c] += evaluate(*constraints_[c].expr, values) != 0 ? 1 : 0;
  }
  for (size_t c = 0; c < held.size(); ++c)
    constraints_[c].log_share = std::log((held[c] + 0.5) / (kDraws + 1));
}

ResidualEstimate::Set ResidualEstimate::reads(const IntExprNode& e) {
  if (e.op == IntOp::kConst) return 0;
  if (e.op == IntOp::kKnob) return bit_of_[static_cast<size_t>(e.value)];
  if (const auto known = reads_.find(&e); known != reads_.end()) return known->second;
  const Set both = reads(*e.a) | reads(*e.b);
  return reads_.emplace(&e, both).first->second;
}

// Of the assignments of these knobs, those that satisfy what reads no others.
double ResidualEstimate::log_assignments(Set of) const {
  double log = 0;
  for (size_t m = 0; m < members_.size(); ++m)
    if ((of >> m & 1) != 0) log += log_width_[m];
  for (const Constraint& c : constraints_)
    if ((c.reads & ~of) == 0) log += c.log_share;
  return std::max(log, 0.0);
}

double ResidualEstimate::log_allowed(Set decided, size_t m) const {
  double log = log_width_[m];
  for (const Constraint& c : constraints_)
    if ((c.reads & ~decided) == Set{1} << m) log += c.log_share;
  return std::max(log, 0.0);
}

double ResidualEstimate::log_states(Set decided) {
  struct Half {
    Set by;
    double log_states;
  };
  std::vector<Half> halves;
  for (Constraint& c : constraints_) {
    const Set left = c.reads & ~decided;
    if (left == 0 || left == c.reads) continue;
    double states = log_states_of(c, decided);
    // A bound of one knob cuts what the other constraints leave of it.
    if ((left & (left - 1)) == 0 && c.is_bound) {
      double others = log_width_[static_cast<size_t>(__builtin_ctzll(left))];
      for (const Constraint& other : constraints_)
        if (!other.is_bound && other.reads != left && (other.reads & ~decided) == left)
          others += other.log_share;
      states = std::min(states, std::log1p(std::exp(std::max(others, 0.0))));
    }
    halves.push_back({c.reads & decided, states});
  }
  // Each constraint has its own states, or follows from the values of some knobs: choose those knobs
  // greedily.
  const auto log_total = [&](Set known) {
    double log = log_assignments(known);
    for (const Half& h : halves)
      if ((h.by & ~known) != 0) log += h.log_states;
    return log;
  };
  Set known = 0;
  double least = log_total(known);
  while (true) {
    Set next = known;
    for (const Half& h : halves) {
      if ((h.by & ~known) == 0) continue;
      if (const double log = log_total(known | h.by); log < least) {
        least = log;
        next = known | h.by;
      }
    }
    if (next == known) break;
    known = next;
  }
  return std::min(least, log_total(decided));
}

double ResidualEstimate::log_states_of(Constraint& c, Set decided) {
  const auto [known, fresh] = c.log_states.emplace(c.reads & decided, 0.0);
  if (!fresh) return known->second;
  const IntExprNode& e = *c.expr;
  if (!c.is_bound && e.op != IntOp::kEq && e.op != IntOp::kNe) return known->second = log_shapes(e, decided);
  // A comparison tells no more values apart than what is left has, and one.
  const Set left = c.reads & ~decided;
  double log_left = 0;
  for (size_t m = 0; m < members_.size(); ++m)
    if ((left >> m & 1) != 0) log_left += log_width_[m];
  const double log_thresholds = std::log1p(std::exp(log_left));
  const bool right_is_constant = e.b->op == IntOp::kConst;
  const bool product = e.a->op == IntOp::kMul && right_is_constant;
  std::vector<Term> terms;
  flatten(*e.a, product, false, terms);
  if (!product) flatten(*e.b, false, true, terms);
  const Parted p = parted(terms, product, decided);
  double log_values = p.value.log_count;
  // Values above an upper bound are all alike, as far as nothing is negative.
  if (right_is_constant && c.is_bound && p.value.range.lo >= 0) {
    const std::vector<int64_t>& values = p.value.listed;
    const auto below = static_cast<double>(
        values.empty() ? std::max<int64_t>(e.b->value, 1)
                       : std::upper_bound(values.begin(), values.end(), e.b->value) - values.begin());
    log_values = std::min(log_values, std::log1p(below));
  }
  double log = p.log_shapes + std::min(log_values, log_thresholds);
  if (c.is_bound && (left & (left - 1)) == 0) log = std::min(log, log_thresholds);
  return known->second = log;
}

// How many functions of the knobs that are left `e` may become.
double ResidualEstimate::log_shapes(const IntExprNode& e, Set decided) {
  const Set all = reads(e);
  if ((all & decided) == 0) return 0;
  if ((all & ~decided) == 0) return values_of(e).log_count;
  const bool remainder = e.op == IntOp::kMod && e.b->op == IntOp::kConst && e.b->value > 0;
  const IntExprNode& flat = remainder ? *e.a : e;
  if (is_sum(flat.op) || flat.op == IntOp::kMul) {
    std::vector<Term> terms;
    flatten(flat, flat.op == IntOp::kMul, false, terms);
    const Parted p = parted(terms, flat.op == IntOp::kMul, decided);
    const double log_values = p.value.log_count;
    return p.log_shapes +
           (remainder ? std::min(log_values, std::log(static_cast<double>(e.b->value))) : log_values);
  }
  return log_shapes(*e.a, decided) + log_shapes(*e.b, decided);
}

ResidualEstimate::Parted ResidualEstimate::parted(const std::vector<Term>& terms, bool product, Set decided) {
  Parted out;
  out.value = listed({product ? 1 : 0});
  for (const Term& t : terms) {
    const Set all = reads(*t.expr);
    if ((all & ~decided) != 0)
      out.log_shapes += log_shapes(*t.expr, decided);
    else
      out.value = combined(product   ? IntOp::kMul
                           : t.minus ? IntOp::kSub
                                     : IntOp::kAdd,
                           out.value, values_of(*t.expr));
  }
  return out;
}

ResidualEstimate::Values ResidualEstimate::listed(std::vector<int64_t> values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  Values v{{}, std::log(static_cast<double>(values.size())), {values.front(), values.back()}};
  if (values.size() <= kMostListed) v.listed = std::move(values);
  return v;
}

ResidualEstimate::Values ResidualEstimate::combined(IntOp op, const Values& a, const Values& b) {
  if (!a.listed.empty() && !b.listed.empty() && a.listed.size() * b.listed.size() <= 4 * kMostListed) {
    std::vector<int64_t> values;
    for (const int64_t x : a.listed)
      for (const int64_t y : b.listed) values.push_back(apply(op, x, y));
    return listed(std::move(values));
  }
  const IntRange range = apply(op, a.range, b.range);
  return {{}, std::min(a.log_count + b.log_count, log_span(range)), range};
}

const ResidualEstimate::Values& ResidualEstimate::values_of(const IntExprNode& e) {
  if (const auto known = values_.find(&e); known != values_.end()) return known->second;
  Values v;
  if (e.op == IntOp::kConst) {
    v = listed({e.value});
  } else if (e.op == IntOp::kKnob) {
    v = listed(knobs_[static_cast<size_t>(e.value)].candidates);
  } else {
    // Both sides read a knob: pair by pair their values would be too many.
    constexpr double kMostAssignments = 4096;
    const Set all = reads(e);
    double assignments = 1;
    for (size_t m = 0; m < members_.size(); ++m)
      if ((all >> m & 1) != 0) assignments *= static_cast<double>(candidates(m).size());
    if ((reads(*e.a) & reads(*e.b)) != 0 && assignments <= kMostAssignments) {
      std::vector<int64_t> at(knobs_.size(), 0), values;
      list_values(e, all, 0, at, values);
      v = listed(std::move(values));
    } else {
      v = combined(e.op, values_of(*e.a), values_of(*e.b));
    }
  }
  return values_.emplace(&e, std::move(v)).first->second;
}

void ResidualEstimate::list_values(const IntExprNode& e, Set of, size_t m, std::vector<int64_t>& at,
                                   std::vector<int64_t>& out) {
  if (m == members_.size()) return out.push_back(evaluate(e, at));
  if ((of >> m & 1) == 0) return list_values(e, of, m + 1, at, out);
  for (const int64_t candidate : candidates(m)) {
    at[static_cast<size_t>(members_[m])] = candidate;
    list_values(e, of, m + 1, at, out);
  }
}

}  // namespace tuner
