// One task of a pack: our fastest kernel, checked, and timed in turn with its peer.
#pragma once

#include "measure_server/runner/pack_results.h"
#include "tests/bench/gpu/device_case.h"
#include "tests/bench/gpu/interleave.h"
#include "tests/bench/gpu/peers.h"
#include "tests/bench/gpu/report.h"

namespace tuner {

// The `most` candidates that came furthest in the plan and were the fastest there, best first; one with any
// failure is none. Nothing known of the task (or `results` null): its first ones. None: all that are known
// failed.
std::vector<size_t> fastest_candidates(const PackFile& pack, const PackResults* results, size_t task,
                                       size_t most);

struct ComparisonOptions {
  InterleaveOptions interleave;   // `sets` is filled in; no rounds: nothing is timed
  Caches caches = Caches::kWarm;  // or kRotate
  uint64_t seed = 1;
};

class Comparison {
 public:
  // All outlive this.
  Comparison(DeviceBench& bench, const PackFile& pack, const Libraries& libraries, ComparisonOptions options)
      : bench_(bench), pack_(pack), libraries_(libraries), options_(options) {}

  // What was found of the task; a task that cannot be compared has its `error`. Of several candidates the
  // fastest in a few rounds beforehand is held against the peer, as the peer's algorithms are chosen; the
  // others are timed in the same rounds. The peer is searched for so many seconds. Unavailable: the device
  // failed, nothing more can run in this process.
  Status run(size_t task, const std::vector<size_t>& candidates, double peer_seconds, TaskReport& report);

 private:
  // A kernel of ours that is right.
  struct Kernel {
    size_t candidate = 0;
    std::unique_ptr<DeviceCase> operands;
    double max_error = 0;
    std::string output;  // SHA-256 of what it wrote
    Status call(int set) const { return operands->call(set); }
  };
  Status run_checked(size_t task, const std::vector<size_t>& candidates, TaskReport& report);
  Status open(size_t task, size_t candidate, std::vector<Kernel>& kernels) const;
  Status choose(std::vector<Kernel>& kernels) const;
  Status time(size_t task, std::vector<Kernel>& kernels, TaskReport& report) const;
  OtherReport report_of(size_t task, size_t candidate) const;
  Status time_one_by_one(const std::vector<Contestant>& contestants, bool has_peer, TaskReport& report) const;
  void summarise(std::vector<Contestant>& contestants, bool has_peer, TaskReport& report) const;

  DeviceBench& bench_;
  const PackFile& pack_;
  const Libraries& libraries_;
  const ComparisonOptions options_;
  double peer_seconds_ = 0;  // of the task that is compared
};

}  // namespace tuner
