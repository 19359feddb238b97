// JobRun: follows one job from its submission to its answer, over as many connections as needed. If the
// process that hosted the daemon ends, this one becomes the host and continues.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "db/store.h"
#include "tuner/client/daemon_client.h"
#include "tuner/client/progress_view.h"
#include "tuning.pb.h"

namespace tuner {

struct JobOutcome {
  std::string job_id;  // empty: the job was never accepted
  bool already_finished = false, interrupted = false, hosted = false;
  v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
  std::string message;
  int64_t trials_before = -1, trials_after = 0, first_done = 0;
  double wall_s = 0;
  v1::Progress progress;  // the latest progress
  // When the first and last result arrived here: gives the rate without start and end of the job.
  std::optional<std::chrono::steady_clock::time_point> first_result, last_result;
  std::vector<std::optional<v1::TunedConfig>> tuned;  // one per task

  int64_t trials_measured() const { return trials_after - (trials_before < 0 ? 0 : trials_before); }
};

class JobRun {
 public:
  // `job` must have a request id and outlive this. `interrupted` is called about ten times a second.
  JobRun(const JobRow& job, bool fresh, ConnectOptions where, std::function<bool()> interrupted);

  // Returns when the job has ended and its answers are there, or after an interruption, which is no error.
  // `outcome()` tells what was reached in any case. Unavailable: no daemon for a minute.
  Status run();
  const JobOutcome& outcome() const { return out_; }

 private:
  struct Turn;  // the result of one connection
  Turn follow(const DaemonClient& client);
  Turn watch(const DaemonClient& client);
  void say_accepted(const DaemonClient& client, const v1::SubmitReply& reply);
  void take_in(const v1::JobEvent& event);
  void end_host(const DaemonClient& client, const Turn& turn);

  const JobRow& job_;
  const bool fresh_;
  const ConnectOptions where_;
  const std::function<bool()> interrupted_;
  JobOutcome out_;
  ProgressView view_;
  int64_t after_seq_ = 0;  // events up to this were seen; negative: older events are not shown
  bool live_ = true;       // true if events are of this run
};

}  // namespace tuner
