// What the model of times (codegen_cuda/time_estimate) rests on, measured by the clock of one multiprocessor:
// how long a load takes, how many passes lanes of a warp cost in shared memory, how many multiply-adds a
// clock has.
#pragma once

#include <string>
#include <vector>

#include "measure_server/runner/device_candidate.h"
#include "measure_server/runner/pack_file.h"

namespace tuner {

struct Calibration {
  struct SharedLoad {
    std::string lanes;
    int passes = 0;     // by the model
    double clocks = 0;  // of a warp's load, while the multiprocessor does nothing else
  };
  std::vector<SharedLoad> shared_loads;
  // Clocks from a load to the next one that needs it.
  double shared_clocks = 0, l1_clocks = 0, l2_clocks = 0, dram_clocks = 0;
  double ffma_a_clock = 0;  // of one multiprocessor
  double clock_mhz = 0;     // while it did these: its clocks by the time of events
};

// Failed: the pack has no kernels for it. Unavailable: the device failed.
Result<Calibration> calibrate(DeviceBench& bench, const PackFile& pack);

}  // namespace tuner
