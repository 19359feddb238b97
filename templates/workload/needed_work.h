// What of a workload's operations its sums need.
#pragma once

#include "templates/workload/workload.h"

namespace tuner {

// Workload::flops() without products of a convolution's padding, which count there but may be passed over:
// kernels of the direct algorithm do no less. Shares of a peak are counted with these.
int64_t needed_flops(const Workload& workload);

}  // namespace tuner
