// In which order a decision diagram decides knobs that constraints tie together. The order alone says how
// large the diagram becomes; any order gives the same configs.
#pragma once

#include <vector>

#include "templates/space/knob.h"

namespace tuner {

// `members`: positions (in `knobs`) of the knobs to order; `constraints` read no others.

// Quickly found, good for few knobs: next is always the knob after which the fewest constraints are half
// decided.
std::vector<int> likely_order(const std::vector<KnobInfo>& knobs, const std::vector<int>& members,
                              const std::vector<IntExpr>& constraints);

// The order with the fewest decisions by an estimate of the residual constraints that differ (some
// milliseconds).
std::vector<int> cheapest_order(const std::vector<KnobInfo>& knobs, const std::vector<int>& members,
                                const std::vector<IntExpr>& constraints);

}  // namespace tuner
