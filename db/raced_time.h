// A finalist's time in its race with its interval: what raced_time_ns() (records.h) gives, and the range in
// which one more process would lie in 95 % of cases; without width if its device's clock is exact. Of a
// winner it is what its race tells.
#pragma once

#include "compiler_core/base/process_times.h"

namespace tuner {

struct RaceFinalist;

// Zeros without samples.
Spread raced_time(const RaceFinalist& finalist);

}  // namespace tuner
