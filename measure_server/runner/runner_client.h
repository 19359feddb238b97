// RunnerClient: starts the runner executable and asks it; used by the worker and by `tuner verify`.
//
// Start it before gRPC: the runner is exec'ed (posix_spawn), so a restart later is safe too. The runner ends
// when this object does, and when this process dies. One request is answered at a time: run() and probe() of
// several threads queue for their turn, their deadline running; cancel() may be called from any thread at any
// time. No wait is without deadline.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "compiler_core/base/status.h"
#include "measure_server/runner/frame.h"
#include "measure_server/runner/runner_protocol.h"

namespace tuner {

class RunnerClient {
 public:
  // Starts `runner_path` and waits until it answers (10 s at most). Failed when it cannot be started.
  static Result<std::unique_ptr<RunnerClient>> start(const std::string& runner_path);
  ~RunnerClient();
  RunnerClient(const RunnerClient&) = delete;
  RunnerClient& operator=(const RunnerClient&) = delete;

  // Runs one candidate. Whatever a candidate does is a RunReply; an error says nothing about the candidate
  // and the run may be tried again:
  //   Unavailable       the runner died (it has been restarted), or cannot be restarted just now; or the GPU
  //                     does not work now (quarantined: see device_host.h)
  //   DeadlineExceeded  no answer by `deadline`: the runner was killed and restarted
  //   Aborted           cancelled
  //   Failed            the runner could not do its part: a data file is missing or does not fit the artifact
  Result<RunReply> run(const RunRequest& request, Deadline deadline);
  // With a deadline no healthy runner misses: the request's run timeout plus 30 s.
  Result<RunReply> run(const RunRequest& request);

  // Times candidates against each other; errors as of run(). Deadline: the request's run timeout plus 30 s.
  Result<RaceReply> race(const RaceRequest& request);

  // Ends the run or race with this id if it is going on; its run() returns Aborted within milliseconds.
  void cancel(uint64_t id);

  // Hardware fingerprint and FMA peak with 1..max_threads threads (0: all CPUs). Takes 50 ms or so a thread
  // count.
  Result<ProbeReply> probe(int max_threads = 0,
                           Deadline deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60));
  Result<ProbeReply> probe(const ProbeRequest& request,
                           Deadline deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60));

  // Of the runner process now; changes when it is restarted. For tests and logs.
  pid_t pid() const { return pid_.load(); }

 private:
  explicit RunnerClient(std::string runner_path) : runner_path_(std::move(runner_path)) {}

  Status spawn();
  // Kills and reaps the runner and says how it ended.
  std::string stop();
  // Waits for its turn, sends, waits for the answer; replaces a runner that does not answer.
  Result<std::string> ask(const std::string& message, Deadline deadline);
  Result<std::string> exchange(const std::string& message, Deadline deadline);

  const std::string runner_path_;
  std::mutex turn_mutex_;
  std::condition_variable turn_free_;
  bool busy_ = false;        // a request is being answered; guarded by turn_mutex_
  std::mutex socket_mutex_;  // guards socket_ against cancel()
  int socket_ = -1;
  std::atomic<pid_t> pid_{-1};
};

// Where the runner lies: beside this executable (bin/runner), or in $TUNER_RUNNER when that is set. NotFound
// otherwise.
Result<std::string> find_runner();

}  // namespace tuner
