// Reception: workers come, and are sent away. All else that they tell comes by the desk (desk.h). Any thread
// may call it, without the lock of the farm.
#pragma once

#include <functional>
#include <utility>

#include "compiler_core/base/status.h"
#include "measure.pb.h"
#include "tuner/daemon/edge/metrics.h"
#include "tuner/daemon/rooms/build_office.h"
#include "tuner/daemon/rooms/clock.h"
#include "tuner/daemon/rooms/coordinator_options.h"
#include "tuner/daemon/rooms/farm_state.h"
#include "tuner/daemon/rooms/locked.h"
#include "tuner/daemon/rooms/loss_office.h"
#include "tuner/daemon/tables/workers.h"
#include "tuning.pb.h"

namespace tuner {

class Reception {
 public:
  // All of these outlive it. `wake_desk`: Syncs that wait are to be looked at; called without the lock.
  struct Parts {
    Guarded<FarmState>& farm;
    const Clock& clock;
    const CoordinatorOptions& options;
    DaemonMetrics& metrics;
    BuildOffice& builds;
    LossOffice& losses;
  };
  Reception(Parts parts, std::function<void()> wake_desk) : of_(parts), wake_desk_(std::move(wake_desk)) {}

  // What an earlier life of the worker held is lost. Aborted: another process with this id is here.
  Status register_worker(const v1::RegisterRequest& request, v1::RegisterReply* reply,
                         Workers::Registrar registrar);
  // The worker finishes what it holds, gets nothing more, and ends. NotFound: it is not here.
  Status drain(const v1::DrainRequest& request, v1::DrainReply* reply);

 private:
  const Parts of_;
  const std::function<void()> wake_desk_;
};

}  // namespace tuner
