// MachineBound: what no machine of a task's target can do, from the task's shapes and the target's name
// alone.
//
// A worker's word plays no part in it: neither the peak that it reports nor its hardware text. So a bound is
// far above what a real kernel reaches (DeviceLimits: twice the fastest CPU, 1.5 times the data sheet of a
// GPU), and a time below it is no lucky measurement.
//
// Operations (Workload::least_operations()) are counted so that no algorithm does fewer. For a convolution
// that is one multiplication and one addition for each output and input channel (Winograd's minimal
// filtering: F(m, r) takes m + r - 1 multiplications for m outputs, which is at least one each). Bytes are
// those that every kernel must touch.
#pragma once

#include "db/records.h"

namespace tuner {

struct MachineBound {
  double least_ns =
      0;  // one call takes at least so long; the clock of no machine is faster, whatever its kind
  double most_gflops = 0;  // 0: the family does not know its units, so peaks are not judged
  double most_gbps = 0;
};

// Of a call of this task. Unknown keys and targets give a bound that only holds against nonsense.
MachineBound machine_bound(const JobRow::Task& task);

}  // namespace tuner
