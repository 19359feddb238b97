// One job from its submission to its answer, over as many connections as that takes: when the process that hosted the
// daemon ends, this one becomes the host and goes on.
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
  std::string job_id;  // empty: never accepted
  bool already_finished = false, interrupted = false, hosted = false;
  v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
  std::string message;
  int64_t trials_before = -1, trials_after = 0, first_done = 0;
  double wall_s = 0;
  v1::Progress progress;  // the latest
  // Of the results that came while this process looked on: the rate without start and end.
  std::optional<std::chrono::steady_clock::time_point> first_result, last_result;
  std::vector<std::optional<v1::TunedConfig>> tuned;  // one a task

  int64_t trials_measured() const { return trials_after - (trials_before < 0 ? 0 : trials_before); }
};

class JobRun {
 public:
  // `job` has a request id and outlives this. `interrupted` is asked about ten times a second.
  JobRun(const JobRow& job, bool fresh, ConnectOptions where, std::function<bool()> interrupted);

  // Returns when the job has ended, its answers are there, or `interrupted` (which is no error). What had been reached
  // is in `outcome()` in any case. Unavailable: no daemon for a minute.
  Status run();
  const JobOutcome& outcome() const { return out_; }

 private:
  struct Turn;  // how one connection's share of the job went
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
  int64_t after_seq_ = 0;  // events up to it were seen; negative: those of before this run are no news
  bool live_ = true;       // whether events are of this run
};

}  // namespace tuner
