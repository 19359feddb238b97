// Worker: the threads around a WorkerCore. One talks to the daemon, two build, one runs, one writes, one
// looks after it.
//
//   talk   Sync: waits for leases; a result interrupts the wait and is sent at once (talk.h)
//   build  lease -> builder process -> artifact; the second one uses the runs' core while nothing is to run
//   run    artifact -> runner -> record
//   write  record -> spool -> owed, while the next one runs (result_writer.h)
//   tend   while this worker cannot work: looks whether it can again (fitness.h)
//
// The last cores belong to the runner, the first ones to everything else; a kernel that uses every core is
// never run beside a build. Candidates of a device run one at a time like all others, so none is measured
// beside a CPU candidate; the thread that launches them has the last core to itself.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "compiler_core/base/line_limit.h"
#include "measure_server/runner/runner_client.h"
#include "measure_server/worker/calm_level.h"
#include "measure_server/worker/daemon_link.h"
#include "measure_server/worker/fitness.h"
#include "measure_server/worker/maker.h"
#include "measure_server/worker/race.h"
#include "measure_server/worker/result_writer.h"
#include "measure_server/worker/talk.h"
#include "measure_server/worker/work_folder.h"
#include "measure_server/worker/worker_core.h"
#include "templates/source_kernel/document_folder.h"

namespace tuner {

struct WorkerOptions {
  std::string worker_id;    // stays the same over restarts; default: the next, or the one in the work folder
  std::string worker_name;  // in its credentials: its id, with .2, .3, ... behind it in a next work folder
  std::string work_dir;     // holds id, spool and log; this process alone uses it
  bool next_work_dir =
      false;  // where another worker uses work_dir, take the first free of work_dir-2, -3, ...
  // Facts of this machine (peaks, calm levels) and reference answers, shared by all work folders of this
  // user. Empty: in the work folder.
  std::string shared_dir;
  int64_t cache_bytes = int64_t{4} << 30;  // limit for artifacts and reference answers there
  std::string runner;                      // path of the runner executable; empty: beside this one
  // Starts what makes artifacts, on these CPUs: a builder process, or what fetches them.
  std::function<Result<std::unique_ptr<Maker>>(const std::vector<int>& cpus)> make_maker;
  // Of a runner: gets what the daemon tells of builds, before the makers are asked (WorkerCore::Options).
  // Null: a full worker.
  std::function<void(const v1::LeaseBuilt&)> take_built = nullptr;
  int fetchers =
      4;  // of a runner: artifacts fetched at once; where the network is far away they hide how far
  std::function<void()> stopping = [] {};  // called by stop(): ends what the makers wait for
  // Brings what the lease's key names by digest into the shared cache; makers are asked afterwards. Null: it
  // names nothing, or all is there.
  std::function<Status(const v1::Lease&)> fetch_document = nullptr;
  int slots = 4;
  // Builder processes where there is a GPU; 0: one a core that runs do not have, at most eight.
  int device_builders = 0;
  int device = 0;  // which of the host's GPUs it measures on, by the driver's count
  // The least isolation of candidates, and whom it is for: an InvalidArgument of start() if this host has
  // less (isolation_rule.h). `daemon` is not dialled here.
  Isolation least_isolation = Isolation::kNone;
  std::string daemon = "unix:";
};

class Worker {
 public:
  // Starts runner and builder and measures the machine's peak. Takes a second. Call it before any gRPC: both
  // are exec'ed. InvalidArgument: another worker uses the work folder.
  static Result<std::unique_ptr<Worker>> start(WorkerOptions options);
  ~Worker();

  // Works for the daemon until drained or stopped (OK), whatever the daemon answers and whatever fails here.
  // InvalidArgument: the daemon refused the first registration.
  Status run(DaemonLink& link);
  // Any thread may call these. drain(): finish what is held, report, then let run() return. stop(): run()
  // returns as soon as its threads have.
  void drain() { core_->drain(); }
  void stop();
  // The daemon's name for it at the moment.
  std::string session() const { return core_->session(); }

 private:
  explicit Worker(WorkerOptions options) : options_(std::move(options)) {}
  Status open();
  Status open_work_folder();
  Status find_isolation();
  v1::RegisterRequest hello() const;
  void say_registered() const;
  // A builder process, or what fetches from others. Its users wait for the mutex: one request at a time.
  struct Compiler {
    std::mutex mutex;
    std::unique_ptr<Maker> client;
  };
  void build(Compiler& compiler, WorkerCore::Builds builds);
  bool has_document(const v1::Lease& lease);
  void add_source_compilers(v1::RegisterRequest& request) const;
  void build_one(Compiler& compiler, const v1::Lease& lease);
  void build_instead_of_runs();
  bool builds_elsewhere() const { return options_.take_built != nullptr; }
  void fetch_more(std::vector<std::thread>& threads);
  // Starts further builders if there is a device: one compiles four kernels a second, a GPU measures several
  // times as many.
  void start_device_builders(const std::vector<int>& cpus);
  void run_candidates();
  v1::MeasureRecord record_for(const v1::Lease& lease) const;
  bool is_host(const std::string& target) const;  // true for this very CPU, with any number of threads
  // An error says nothing about the candidate.
  Result<v1::MeasureRecord> measure(const WorkerCore::Built& built);
  BuildRequest build_request(const v1::Lease& lease) const;
  void build_race(Compiler& compiler, const v1::Lease& lease);
  Result<v1::RaceResult> race(const WorkerCore::Built& built);
  void put_on_device(RunRequest& request) const;
  double peak_of(DType dtype, int threads) const;
  // Measures the peaks once more where the record's kernel was faster than they are. For direct sums only:
  // Winograd and its like do less than is counted.
  void raise_peak(const v1::Lease& lease, v1::MeasureRecord& record);
  v1::RaceResult race_result_for(const v1::Lease& lease, const std::string& error) const;
  Result<BuildReply> ask_builder(Compiler& compiler, const BuildRequest& request,
                                 std::chrono::milliseconds limit);
  Result<BuildReply> data_for(const v1::Lease& lease);
  void finish(const v1::Lease& lease, v1::MeasureRecord record);
  void write(const std::vector<WorkerCore::Finished>& results);
  void finish_race(const v1::Lease& lease, const v1::RaceResult& result);
  void run_one(const WorkerCore::Built& built);
  // What stands in the way of any work here.
  Status able();
  // Takes a lease that failed through no fault of its candidate. True: that is this worker's trouble, as the
  // caller knows or able() finds; the lease is given back, and the worker unfit. False: it goes with this
  // lease alone, or has come back too often.
  bool gave_back(const v1::Lease& lease, const Status& why, bool surely_ours = false);
  // Gives back a lease of a template that this release has in another version: the worker is well. False: it
  // has come back too often, as an older daemon does not listen.
  bool gave_back_version(const v1::Lease& lease, const std::string& template_name, const BuildReply& reply);
  bool may_give_back(const v1::Lease& lease);
  bool gave_back_unmade(const v1::Lease& lease, const std::string& why);
  std::vector<int> runner_cpus(int threads) const;
  const std::string& shared_dir() const {
    return options_.shared_dir.empty() ? work_dir() : options_.shared_dir;
  }
  // What records of a target say of the device and the compiler.
  struct Served {
    std::string target, hardware, toolchain;
    bool on_device = false;  // of its own, in the runner's device child; else a process of the runner has it
  };
  void find_targets();
  void find_device();
  // What is offered under this name; null: code for this CPU with other threads, or for an older CPU.
  const Served* served(const std::string& target) const;
  const std::string& host_target() const { return served_.front().target; }
  bool on_device(const v1::Lease& lease) const;
  void wait_for_device(const v1::Lease& lease, std::chrono::seconds limit);
  const std::string& work_dir() const { return folder_->path(); }

  const WorkerOptions options_;
  std::optional<WorkFolder> folder_;
  std::optional<DocumentFolder> documents_;  // of shared_dir()
  std::string worker_id_;
  std::vector<int> cpus_;
  std::string host_, incarnation_;
  ProbeReply probe_;
  // Of probe_, the peaks alone may grow after the start: only the run thread raises them, under the mutex.
  mutable std::mutex peaks_mutex_;
  std::chrono::steady_clock::time_point peaks_measured_;
  std::vector<Served> served_;         // what is offered to the daemon; this CPU first
  std::vector<std::string> features_;  // of this host, as its back ends tell
  std::unique_ptr<Spool> spool_;
  std::unique_ptr<WorkerCore> core_;
  std::unique_ptr<Talk> talk_;
  std::unique_ptr<Fitness> fitness_;
  std::unique_ptr<RunnerClient> runner_;
  // What pulses (per task) and the memory sentinel take on a calm machine. Only the run thread uses them.
  CalmLevel& calm_pulse(const v1::Lease& lease);
  void observe(const RunReply& reply, CalmLevel& calm_pulse);
  void forget_old_pulses() const;
  std::map<std::string, CalmLevel> calm_pulses_;
  std::unique_ptr<CalmLevel> calm_memory_, calm_sentinel_;
  const DeviceInfo* device_ = nullptr;    // the GPU that targets are on; null: none
  std::unique_ptr<CalmLevel> calm_copy_;  // of the GPU's sentinel; null: no target is on a GPU
  int disturbed_in_a_row_ = 0;            // the latest runs that stayed disturbed (try_policy.h)
  std::unique_ptr<ResultWriter> writer_;  // while run() runs
  Compiler beside_, instead_;  // build beside runs, and instead of runs; the second is null on one core
  std::vector<std::unique_ptr<Compiler>> fetchers_;  // of a runner, beside beside_
  std::vector<std::unique_ptr<Compiler>> for_device_;

  std::mutex mutex_;
  std::map<std::string, uint64_t> running_;              // trial -> request id at the runner
  std::map<std::string, BuildReply> data_;               // key: workload and seed
  std::map<std::string, std::string> unmakable_;         // why that task has no data, and never will
  std::map<std::string, std::vector<RaceEntry>> races_;  // built finalists; key: race
  std::map<std::string, int> given_back_;                // trial -> how often
  v1::Lease running_lease_;                              // of the run thread
  LineLimit run_trouble_, race_trouble_, fact_trouble_, version_trouble_, unmade_trouble_, wait_trouble_,
      document_trouble_;
  bool said_unlocked_ = false;
  std::atomic<bool> stopped_{false};
  std::atomic<uint64_t> next_request_{1};
};

}  // namespace tuner
