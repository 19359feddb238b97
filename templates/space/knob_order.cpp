#include "templates/space/knob_order.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "templates/space/residual_estimate.h"

namespace tuner {
namespace {

// Splits conjunctions: what is decided early should be checked early.
void collect_conjuncts(const IntExprNode& e, std::vector<const IntExprNode*>& out) {
  if (e.op != IntOp::kAnd) return out.push_back(&e);
  collect_conjuncts(*e.a, out);
  collect_conjuncts(*e.b, out);
}

}  // namespace

// From every knob on, the order of least decisions by a rough estimate: of a constraint that is half decided
// at most as many states can be told apart as either side has assignments.
std::vector<int> likely_order(const std::vector<KnobInfo>& knobs, const std::vector<int>& members,
                              const std::vector<IntExpr>& constraints) {
  if (members.size() < 3) return members;
  std::vector<const IntExprNode*> parts;
  for (const IntExpr& c : constraints) collect_conjuncts(*c.node(), parts);
  std::vector<std::vector<bool>> reads;
  for (const IntExprNode* part : parts) collect_knobs(*part, reads.emplace_back(knobs.size(), false));
  const auto log_states = [&](const std::vector<bool>& decided) {
    double states = 0, prefixes = 0;
    const auto log_width = [&](int m) {
      return std::log(static_cast<double>(knobs[static_cast<size_t>(m)].candidates.size()));
    };
    for (const std::vector<bool>& read : reads) {
      double before = 0, after = 0;
      for (const int m : members)
        if (read[static_cast<size_t>(m)]) (decided[static_cast<size_t>(m)] ? before : after) += log_width(m);
      states += std::min(before, after);
    }
    for (const int m : members)
      if (decided[static_cast<size_t>(m)]) prefixes += log_width(m);
    return std::min(states, prefixes);
  };
  double fewest = std::numeric_limits<double>::infinity();
  std::vector<int> best;
  for (const int start : members) {
    std::vector<int> order;
    std::vector<bool> decided(knobs.size(), false);
    double decisions = 0, states = 0;
    int next = start;
    while (true) {
      decisions += std::exp(states) * static_cast<double>(knobs[static_cast<size_t>(next)].candidates.size());
      order.push_back(next);
      decided[static_cast<size_t>(next)] = true;
      states = log_states(decided);
      if (order.size() == members.size()) break;
      double least = std::numeric_limits<double>::infinity();
      for (const int m : members) {
        if (decided[static_cast<size_t>(m)]) continue;
        decided[static_cast<size_t>(m)] = true;
        if (const double after = log_states(decided); after < least) {
          least = after;
          next = m;
        }
        decided[static_cast<size_t>(m)] = false;
      }
    }
    if (decisions < fewest) {
      fewest = decisions;
      best = std::move(order);
    }
  }
  return best;
}

std::vector<int> cheapest_order(const std::vector<KnobInfo>& knobs, const std::vector<int>& members,
                                const std::vector<IntExpr>& constraints) {
  using Set = ResidualEstimate::Set;
  if (members.size() >= 8 * sizeof(Set)) return likely_order(knobs, members, constraints);
  std::vector<const IntExprNode*> parts;
  for (const IntExpr& c : constraints) collect_conjuncts(*c.node(), parts);
  ResidualEstimate estimate(knobs, members, parts);
  // The cheapest way to each set of decided knobs, set by set of one knob more: exact up to nine knobs,
  // beyond that the best sets of each size.
  constexpr size_t kMostSets = 256;
  struct Way {
    double decisions = std::numeric_limits<double>::infinity();
    std::vector<int> order;
  };
  std::map<Set, Way> ways{{Set{0}, Way{0, {}}}};
  for (size_t size = 0; size < members.size(); ++size) {
    std::map<Set, Way> longer;
    for (const auto& [decided, way] : ways) {
      const double states = estimate.log_states(decided);
      for (size_t m = 0; m < members.size(); ++m) {
        if ((decided >> m & 1) != 0) continue;
        const double decisions = way.decisions + std::exp(states + estimate.log_allowed(decided, m));
        Way& other = longer[decided | Set{1} << m];
        if (decisions >= other.decisions) continue;
        other = {decisions, way.order};
        other.order.push_back(members[m]);
      }
    }
    if (longer.size() > kMostSets) {
      std::vector<double> sorted;
      sorted.reserve(longer.size());
      for (const auto& [decided, way] : longer) sorted.push_back(way.decisions);
      std::nth_element(sorted.begin(), sorted.begin() + kMostSets, sorted.end());
      std::erase_if(longer, [&](const auto& way) { return way.second.decisions > sorted[kMostSets]; });
    }
    ways = std::move(longer);
  }
  return ways.begin()->second.order;
}

}  // namespace tuner
