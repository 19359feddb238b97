// JobNews: what those hear who wait for a job: watchers, and calls for a cancel, a rerun or a remeasurement.
//
// Every method takes the lock of the farm itself, so nobody calls one with it, but for notify() and wait(),
// which may be called with it or without.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "db/store.h"
#include "tuner/daemon/edge/event_log.h"
#include "tuner/daemon/edge/metrics.h"
#include "tuner/daemon/rooms/clock.h"
#include "tuner/daemon/rooms/farm_state.h"
#include "tuner/daemon/rooms/locked.h"
#include "tuner/daemon/tables/jobs.h"
#include "tuning.pb.h"

namespace tuner {

using Cancelled = std::function<bool()>;  // asked about four times a second: has the caller gone?

class JobNews {
 public:
  // All of these outlive it.
  JobNews(Store& store, Guarded<FarmState>& farm, const Clock& clock, DaemonMetrics& metrics)
      : events_(store), farm_(farm), clock_(clock), metrics_(metrics) {}

  // Stores the event first; then those who wait look for it.
  void tell(Job& job, const std::string& message, const v1::TunedConfig* tuned = nullptr,
            JobState state = JobState::kRunning);
  // The oldest stored events of the job with a larger seq than `seq`, at most 256.
  Result<std::vector<v1::JobEvent>> after(const std::string& job_id, int64_t seq) const {
    return events_.after(job_id, seq);
  }
  // How a commit went, for metrics and watchers. A job cannot go on while results cannot be stored.
  void note_commit(const Status& committed);

  // Something has changed that somebody may wait for.
  void notify() { changed_.notify_all(); }
  // Gives the lock away until something has changed, at most for `limit`; the second until `until()` is true
  // too, which is asked under the lock. False: the limit is over.
  void wait(Locked<FarmState>& farm, std::chrono::milliseconds limit) { farm.wait_for(changed_, limit); }
  bool wait(Locked<FarmState>& farm, std::chrono::milliseconds limit, const std::function<bool()>& until) {
    return farm.wait_for(changed_, limit, until);
  }

 private:
  EventLog events_;
  Guarded<FarmState>& farm_;
  const Clock& clock_;
  DaemonMetrics& metrics_;
  std::condition_variable changed_;
};

}  // namespace tuner
