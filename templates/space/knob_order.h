// Chooses the order in which a decision diagram decides knobs that share constraints. The order decides how
// large the diagram becomes; any order gives the same configs.
#pragma once

#include <vector>

#include "templates/space/knob.h"

namespace tuner {

// `members`: positions (in `knobs`) of the knobs to order; `constraints` read no others.

// Finds an order quickly, good for few knobs: the next knob is always the one after which the fewest
// constraints are half decided.
std::vector<int> likely_order(const std::vector<KnobInfo>& knobs, const std::vector<int>& members,
                              const std::vector<IntExpr>& constraints);

// Finds the order with the fewest decisions, by an estimate of the number of different residual constraints.
// Takes some milliseconds.
std::vector<int> cheapest_order(const std::vector<KnobInfo>& knobs, const std::vector<int>& members,
                                const std::vector<IntExpr>& constraints);

}  // namespace tuner
