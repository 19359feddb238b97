// RunnerClient: starts the runner executable and sends it requests. The worker and `tuner verify` use it.
//
// Start it before gRPC. The runner is exec'ed (posix_spawn), so a later restart is safe too. The runner ends
// when this object or this process does. It answers one request at a time: calls from several threads queue,
// and their deadlines run meanwhile. Any thread may call cancel() at any time. Every wait has a deadline.
//
// A timed run has its cores and its GPU for itself, among all processes of this host (device_lock.h): every
// timed run passes here, and the process that asks holds the locks, from before the runner hears of the run
// to its answer. Waiting for them counts neither as the candidate's time nor against a deadline.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "compiler_core/base/status.h"
#include "measure_server/runner/device_lock.h"
#include "measure_server/runner/frame.h"
#include "measure_server/runner/isolation.h"
#include "measure_server/runner/runner_protocol.h"

namespace tuner {

class RunnerClient {
 public:
  // Starts `runner_path` and waits until it answers, 10 s at most. Failed: it cannot be started. Candidates
  // get the highest level of isolation that the host has, up to `at_most`.
  static Result<std::unique_ptr<RunnerClient>> start(const std::string& runner_path,
                                                     Isolation at_most = Isolation::kStrict);
  ~RunnerClient();
  RunnerClient(const RunnerClient&) = delete;
  RunnerClient& operator=(const RunnerClient&) = delete;

  // Runs one candidate. Whatever the candidate does is reported in a RunReply. An error says nothing about
  // the candidate, and the run may be tried again:
  //   Unavailable       the runner died (and was restarted) or cannot be restarted now; or the GPU does not
  //                     work now (quarantined: see device_host.h); or is_device_busy(): another process had
  //                     the cores or the GPU for a minute
  //   DeadlineExceeded  no answer by `deadline`: the runner was killed and restarted
  //   Aborted           cancelled
  //   Failed            the runner could not do its part: a data file is missing or does not fit the artifact
  Result<RunReply> run(const RunRequest& request, Deadline deadline);
  // Uses a deadline that no healthy runner misses: the request's run timeout plus 30 s, and for a run with a
  // GPU (device_uuid) what its driver's first start may take.
  Result<RunReply> run(const RunRequest& request);

  // Times candidates against each other. Errors and deadline as for run().
  Result<RaceReply> race(const RaceRequest& request);

  // Sets a callback for a run or race that has to wait for other processes (true), and goes on (false). It is
  // called by the thread that asks. Set it before the first run.
  void on_wait_for_device(std::function<void(bool waits)> f) { on_wait_ = std::move(f); }
  // Sets a callback for a line about a wait that lasts: who has the device (device_lock.h). Without one the
  // line goes to stderr. Set it before the first run.
  void on_long_wait(std::function<void(const std::string&)> f) { on_long_wait_ = std::move(f); }
  // Why runs of this host's processes cannot be kept apart; empty: they are. Valid between runs.
  const std::string& unlocked() const { return locks_.unusable(); }

  // Ends the run or race with this id, if there is one; its run() returns Aborted within milliseconds.
  void cancel(uint64_t id);

  // Asks for the hardware fingerprint and the FMA peak with 1..max_threads threads (0: all CPUs). Takes about
  // 50 ms per thread count.
  Result<ProbeReply> probe(int max_threads = 0, Deadline deadline = probe_deadline());
  Result<ProbeReply> probe(const ProbeRequest& request, Deadline deadline = probe_deadline());
  // A minute, and what the first start of a GPU's driver may take.
  static Deadline probe_deadline();

  // Process id of the current runner; a restart changes it. For tests and logs.
  pid_t pid() const { return pid_.load(); }

 private:
  RunnerClient(std::string runner_path, Isolation at_most)
      : runner_path_(std::move(runner_path)), at_most_(at_most) {}

  static Deadline deadline_of(const RunRequest& request);
  Status spawn();
  // Kills and reaps the runner; returns how it ended.
  std::string stop();
  // Waits for its turn, sends, and waits for the answer. Replaces a runner that does not answer.
  Result<std::string> ask(const std::string& message, Deadline deadline);
  // The same with the devices locked. The deadline moves by the time that takes. `id`: of cancel(); 0: none.
  Result<std::string> ask_timed(const std::string& message, uint64_t id, const Devices& devices,
                                Deadline deadline);
  Result<DeviceLocks::Held> lock(uint64_t id, const Devices& devices);
  Status take_turn(Deadline deadline);
  void end_turn();
  Result<std::string> exchange(const std::string& message, Deadline deadline);

  const std::string runner_path_;
  const Isolation at_most_;
  std::mutex turn_mutex_;
  std::condition_variable turn_free_;
  bool busy_ = false;        // a request is being answered; guarded by turn_mutex_
  std::mutex socket_mutex_;  // guards socket_ against cancel()
  int socket_ = -1;
  std::atomic<pid_t> pid_{-1};
  std::atomic<uint64_t> cancelled_{0};  // the latest id given to cancel()
  DeviceLocks locks_;                   // of whoever has the turn
  std::function<void(bool)> on_wait_;
  std::function<void(const std::string&)> on_long_wait_;
};

// Returns the path of the runner: $TUNER_RUNNER if that is set, else `runner` beside this executable.
// NotFound: it is not there.
Result<std::string> find_runner();

}  // namespace tuner
