// Shares as people read them.
#pragma once

#include <string>

namespace tuner {

// "2.1 %": a share beside the limit it is held against. One decimal, or as many as it takes to show on which
// side of the limit it lies: 0.0502 beside 0.05 is "5.02 %", and 0.05003 is "5.003 %".
std::string percent_beside(double share, double limit);

}  // namespace tuner
