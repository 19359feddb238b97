// MeasureAgain: measurements that somebody waits for. A trial measured again (tuner rerun), and a trial's
// config measured in fresh processes beside the sentinel (tuner verify --times).
//
// Any thread may call it, without the lock of the farm. It blocks until a worker has measured, at most
// CoordinatorOptions::rerun_limit_ms, and stores nothing.
#pragma once

#include <functional>

#include "compiler_core/base/status.h"
#include "db/store.h"
#include "tuner/daemon/rooms/clock.h"
#include "tuner/daemon/rooms/coordinator_options.h"
#include "tuner/daemon/rooms/document_office.h"
#include "tuner/daemon/rooms/farm_state.h"
#include "tuner/daemon/rooms/job_news.h"
#include "tuner/daemon/rooms/locked.h"
#include "tuner/daemon/tables/work.h"
#include "tuning.pb.h"

namespace tuner {

class MeasureAgain {
 public:
  // All of these outlive it. `wake_desk`: something may be leased; called with the lock of the farm.
  MeasureAgain(const Store& store, Guarded<FarmState>& farm, const Clock& clock,
               const CoordinatorOptions& options, JobNews& news, DocumentOffice& documents,
               std::function<void()> wake_desk)
      : store_(store),
        farm_(farm),
        clock_(clock),
        options_(options),
        news_(news),
        documents_(documents),
        wake_desk_(std::move(wake_desk)) {}

  // As Coordinator::rerun() and remeasure().
  Status rerun(const v1::RerunRequest& request, v1::MeasureRecord* reply, const Cancelled& cancelled,
               const Scope& scope);
  Status remeasure(const v1::RemeasureRequest& request, v1::RaceResult* reply, const Cancelled& cancelled,
                   const Scope& scope);

 private:
  Status wait_for(Locked<FarmState>& farm, const std::function<bool()>& ended, const TrialWithRecord& trial,
                  const Needs& needs, const Cancelled& cancelled);

  const Store& store_;
  Guarded<FarmState>& farm_;
  const Clock& clock_;
  const CoordinatorOptions& options_;
  JobNews& news_;
  DocumentOffice& documents_;
  const std::function<void()> wake_desk_;
};

}  // namespace tuner
