// One task of a pack: our fastest kernel, checked, and timed in turn with its peer.
#pragma once

#include "measure_server/runner/pack_results.h"
#include "tests/bench/gpu/device_case.h"
#include "tests/bench/gpu/interleave.h"
#include "tests/bench/gpu/peers.h"
#include "tests/bench/gpu/report.h"

namespace tuner {

// The candidate that came furthest in the plan and was the fastest there; one with any failure is none.
// Nothing known of the task (or `results` null): its first. -1: all that are known failed.
int fastest_candidate(const PackFile& pack, const PackResults* results, size_t task);

struct ComparisonOptions {
  InterleaveOptions interleave;   // `sets` is filled in
  Caches caches = Caches::kWarm;  // or kRotate
  uint64_t seed = 1;
};

class Comparison {
 public:
  // All outlive this.
  Comparison(DeviceBench& bench, const PackFile& pack, const Libraries& libraries, ComparisonOptions options)
      : bench_(bench), pack_(pack), libraries_(libraries), options_(options) {}

  // What was found of the task; a task that cannot be compared has its `error`. Unavailable: the device
  // failed, nothing more can run in this process.
  Status run(size_t task, int candidate, TaskReport& report);

 private:
  Status run_checked(size_t task, int candidate, TaskReport& report);
  void summarise(std::vector<Contestant>& contestants, TaskReport& report) const;

  DeviceBench& bench_;
  const PackFile& pack_;
  const Libraries& libraries_;
  const ComparisonOptions options_;
};

}  // namespace tuner
