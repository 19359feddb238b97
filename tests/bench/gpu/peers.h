// What a kernel of ours is held against: a product or convolution of NVIDIA's libraries, or a copy.
#pragma once

#include "tests/bench/gpu/cublas.h"
#include "tests/bench/gpu/cublaslt.h"
#include "tests/bench/gpu/cudnn.h"
#include "tests/bench/gpu/device_case.h"
#include "tests/bench/gpu/interleave.h"
#include "tests/bench/gpu/report.h"

namespace tuner {

// NVIDIA's libraries, each or why it is not here.
struct Libraries {
  Result<Cublas> cublas;
  Result<CublasLt> cublaslt;
  Result<Cudnn> cudnn;
};

// Checks the peer of the task, and adds it to `contestants`. Where a library has several algorithms, those that are
// right are timed in a few rounds in turn, and the fastest is the peer. One that is not there or is wrong is told
// in `report`, and no failure: ours is timed all the same. Unavailable: the device failed. All but `report` outlive
// the contestants.
Status add_peer(DeviceBench& bench, const Libraries& libraries, const InterleaveOptions& options,
                DeviceCase& ours, PeerReport& report, std::vector<Contestant>& contestants);

}  // namespace tuner
