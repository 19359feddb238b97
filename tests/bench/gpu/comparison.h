// One task of a pack: our fastest kernel, checked, and timed in turn with its peer.
#pragma once

#include "measure_server/runner/pack_results.h"
#include "tests/bench/gpu/cublas.h"
#include "tests/bench/gpu/cudnn.h"
#include "tests/bench/gpu/device_case.h"
#include "tests/bench/gpu/interleave.h"
#include "tests/bench/gpu/report.h"

namespace tuner {

// The candidate that came furthest in the plan and was the fastest there; one with any failure is none.
// Nothing known of the task (or `results` null): its first. -1: all that are known failed.
int fastest_candidate(const PackFile& pack, const PackResults* results, size_t task);

// Gigabytes per second, read and written together, of a copy far larger than L2, in batches that
// take `fill_ns`. Unavailable: the device failed.
Result<double> copy_rate(DeviceBench& bench, double fill_ns);

// GFLOP per second of float32 multiply-adds that read and write nothing, by the kernel that the pack has for it.
// Failed: it has none (packs of before, packs for CPUs). Unavailable: the device failed.
Result<double> ffma_rate(DeviceBench& bench, const PackFile& pack, double fill_ns);

// NVIDIA's libraries, each or why it is not here.
struct Libraries {
  Result<Cublas> cublas;
  Result<Cudnn> cudnn;
};

struct ComparisonOptions {
  InterleaveOptions interleave;   // `sets` is filled in
  Caches caches = Caches::kWarm;  // or kRotate
  uint64_t seed = 1;
};

class Comparison {
 public:
  // All outlive this.
  Comparison(DeviceBench& bench, const PackFile& pack, const Libraries& libraries, ComparisonOptions options)
      : bench_(bench), pack_(pack), cublas_(libraries.cublas), cudnn_(libraries.cudnn), options_(options) {}

  // What was found of the task; a task that cannot be compared has its `error`. Unavailable: the device
  // failed, nothing more can run in this process.
  Status run(size_t task, int candidate, TaskReport& report);

 private:
  Status run_checked(size_t task, int candidate, TaskReport& report);
  Status add_peer(DeviceCase& ours, TaskReport& report, std::vector<Contestant>& contestants);
  Status add_cublas(DeviceCase& ours, TaskReport& report, std::vector<Contestant>& contestants);
  Status add_cudnn(DeviceCase& ours, TaskReport& report, std::vector<Contestant>& contestants);
  // Times those of the library's algorithms that are right, and leaves the fastest in `best`; none is right: empty,
  // and the report says why.
  Status fastest_convolution(DeviceCase& ours, const std::shared_ptr<const CudnnConvolution>& convolution,
                             TaskReport& report, std::vector<Contestant>& best);
  Status add_copy(const DeviceCase& ours, TaskReport& report, std::vector<Contestant>& contestants);
  void summarise(std::vector<Contestant>& contestants, TaskReport& report) const;

  DeviceBench& bench_;
  const PackFile& pack_;
  const Result<Cublas>& cublas_;
  const Result<Cudnn>& cudnn_;
  const ComparisonOptions options_;
};

}  // namespace tuner
