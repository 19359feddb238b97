// WatchDesk: what a job tells, sent to one reader as it happens, until the job ends. Any thread may call it,
// without the lock of the farm; it blocks as long as the reader watches.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "compiler_core/base/status.h"
#include "db/store.h"
#include "tuner/daemon/rooms/clock.h"
#include "tuner/daemon/rooms/farm_state.h"
#include "tuner/daemon/rooms/job_news.h"
#include "tuner/daemon/rooms/locked.h"
#include "tuner/daemon/tables/work.h"
#include "tuning.pb.h"

namespace tuner {

class WatchDesk {
 public:
  // All of these outlive it.
  WatchDesk(const Store& store, Guarded<FarmState>& farm, const Clock& clock, JobNews& news)
      : store_(store), farm_(farm), clock_(clock), news_(news) {}

  // As Coordinator::watch(): `send` returns false when the reader is gone.
  using Send = std::function<bool(const v1::JobEvent&)>;
  Status watch(const v1::WatchRequest& request, const Send& send, const Cancelled& cancelled,
               const Scope& scope);

 private:
  Status send_events(const std::string& job_id, bool ended, const Send& send, int64_t& after) const;
  bool send_store_trouble(int64_t after, const Send& send, std::string& told) const;
  Result<JobRow> known_job(const JobRow& as_was) const;

  const Store& store_;
  Guarded<FarmState>& farm_;
  const Clock& clock_;
  JobNews& news_;
};

}  // namespace tuner
