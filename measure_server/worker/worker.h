// Worker: the threads around a WorkerCore. One talks to the daemon, two build, one runs.
//
//   talk   Sync: waits for leases; a result interrupts the wait and is sent at once
//   build  lease -> builder process -> artifact; the second one uses the runs' core while nothing is to run
//   run    artifact -> runner -> record -> spool -> owed
//
// The last cores belong to the runner, the first ones to everything else; a kernel that uses every core is
// never run beside a build. Candidates of a device run one at a time like all others, so none is measured
// beside a CPU candidate; the thread that launches them has the last core to itself.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "measure_server/runner/runner_client.h"
#include "measure_server/worker/builder_client.h"
#include "measure_server/worker/calm_level.h"
#include "measure_server/worker/daemon_link.h"
#include "measure_server/worker/race.h"
#include "measure_server/worker/worker_core.h"

namespace tuner {

struct WorkerOptions {
  std::string worker_id;  // stays the same over restarts; default: host name
  std::string work_dir;   // holds spool and log
  // Facts of this machine (peaks, calm levels) and reference answers, shared by all work folders of this
  // user. Empty: in the work folder.
  std::string shared_dir;
  int64_t cache_bytes = int64_t{4} << 30;  // limit for artifacts and reference answers there
  std::string runner;                      // path of the runner executable; empty: beside this one
  std::string program;                     // path of this executable, for the builder
  int slots = 4;
};

class Worker {
 public:
  // Starts runner and builder and measures the machine's peak. Takes a second. Call it before any gRPC: both
  // are exec'ed.
  static Result<std::unique_ptr<Worker>> start(WorkerOptions options);
  ~Worker();

  // Works for the daemon until drained or stopped. OK after a drain; else why the daemon refused, or what
  // failed here.
  Status run(DaemonLink& link);
  void drain() {
    core_->drain();
  }             // finish what is held, report, then let run() return; any thread may call
                // it
  void stop();  // run() returns as soon as its threads have; any thread may call it

 private:
  explicit Worker(WorkerOptions options) : options_(std::move(options)) {}
  Status open();
  Status register_with(DaemonLink& link);
  void talk(DaemonLink& link);
  // A builder process. Its users wait for the mutex: one request at a time.
  struct Compiler {
    std::mutex mutex;
    std::unique_ptr<BuilderClient> client;
  };
  void build(Compiler& compiler, WorkerCore::Builds builds);
  void build_instead_of_runs();
  void run_candidates();
  v1::MeasureRecord record_for(const v1::Lease& lease) const;
  bool is_host(const std::string& target) const;  // true for this very CPU, with any number of threads
  v1::MeasureRecord measure(const WorkerCore::Built& built);
  BuildRequest build_request(const v1::Lease& lease) const;
  void build_race(Compiler& compiler, const v1::Lease& lease);
  v1::RaceResult race(const WorkerCore::Built& built);
  v1::RaceResult race_result_for(const v1::Lease& lease, const std::string& error) const;
  Result<BuildReply> ask_builder(Compiler& compiler, const BuildRequest& request,
                                 std::chrono::milliseconds limit);
  Result<BuildReply> data_for(const v1::Lease& lease);
  void interrupt_wait();
  void finish(const v1::Lease& lease, v1::MeasureRecord record);
  void fail(Status status);
  std::vector<int> runner_cpus(int threads) const;
  const std::string& shared_dir() const {
    return options_.shared_dir.empty() ? options_.work_dir : options_.shared_dir;
  }
  // What records of a target say of the device and the compiler.
  struct Served {
    std::string target, hardware, toolchain;
    double peak_gflops = 0;  // of a device; the peaks of this CPU depend on the type
    bool on_device = false;  // of its own, in the runner's device child; else a process of the runner has it
  };
  void find_targets();
  void find_device();
  // What is offered under this name; null: code for this CPU with other threads, or for an older CPU.
  const Served* served(const std::string& target) const;
  const std::string& host_target() const { return served_.front().target; }
  bool on_device(const v1::Lease& lease) const;
  void wait_for_device(int tries) const;

  const WorkerOptions options_;
  std::vector<int> cpus_;
  std::string host_, incarnation_;
  ProbeReply probe_;
  std::vector<Served> served_;         // what is offered to the daemon; this CPU first
  std::vector<std::string> features_;  // of this host, as its back ends tell
  std::unique_ptr<Spool> spool_;
  std::unique_ptr<WorkerCore> core_;
  std::unique_ptr<RunnerClient> runner_;
  // What pulses (per task) and the memory sentinel take on a calm machine, for CPU runs. Only the run thread
  // uses them.
  CalmLevel& calm_pulse(const v1::Lease& lease);
  void forget_old_pulses() const;
  std::map<std::string, CalmLevel> calm_pulses_;
  std::unique_ptr<CalmLevel> calm_memory_;
  int disturbed_in_a_row_ = 0;  // how many of the latest runs, without a gap
  Compiler beside_, instead_;   // build beside runs, and instead of runs; the second is null on one core

  std::mutex mutex_;
  std::stop_source wait_;                                // stops the Sync that waits for something to happen
  std::map<std::string, uint64_t> running_;              // trial -> request id at the runner
  std::map<std::string, BuildReply> data_;               // key: workload and seed
  std::map<std::string, std::vector<RaceEntry>> races_;  // built finalists; key: race
  Status end_;
  std::atomic<bool> stopped_{false};
  std::atomic<uint64_t> next_request_{1};
};

}  // namespace tuner
