// ResultIntake: results of trials and races, from the message to the commit and its acknowledgement.
//
// All results that came together are one commit. What is acknowledged is in the store, or is done with:
// nobody had the attempt, it cannot be, or it cannot be read. What the disk refuses stays unacknowledged, and
// comes again. Only the desk calls it, without the lock of the farm.
#pragma once

#include <span>
#include <vector>

#include "compiler_core/base/line_limit.h"
#include "db/death.h"
#include "db/store.h"
#include "measure.pb.h"
#include "tuner/daemon/edge/metrics.h"
#include "tuner/daemon/edge/sync_call.h"
#include "tuner/daemon/rooms/clock.h"
#include "tuner/daemon/rooms/coordinator_options.h"
#include "tuner/daemon/rooms/farm_state.h"
#include "tuner/daemon/rooms/incoming.h"
#include "tuner/daemon/rooms/job_news.h"
#include "tuner/daemon/rooms/locked.h"
#include "tuner/daemon/rooms/loss_office.h"
#include "tuner/daemon/rooms/referee.h"
#include "tuner/daemon/rooms/wake.h"

namespace tuner {

class ResultIntake {
 public:
  // All of these outlive it.
  struct Parts {
    Store& store;
    Guarded<FarmState>& farm;
    const Clock& clock;
    const CoordinatorOptions& options;
    DaemonMetrics& metrics;
    Referee& referee;
    LossOffice& losses;
    JobNews& news;
  };
  ResultIntake(Parts parts, Wake wake);

  // Stores what the calls bring, tells the searches, and acknowledges it in the replies. Leaves out calls
  // that are answered.
  void accept(const SyncCalls& calls);

 private:
  void accept_results(const SyncCalls& calls);
  std::vector<Incoming> read_results(const SyncCalls& calls);
  void store_results(std::span<Incoming* const> results);
  bool take_failure(const Incoming& result, std::vector<LeaseTable::Loss>& losses);
  void close(FarmState& farm, const Incoming& result, double store_ms, std::vector<DeathRow>& survived);
  void accept_races(SyncCall& call);
  bool accept_race(SyncCall& call, const v1::RaceResult& message);

  const Parts of_;
  const Wake wake_;
  LineLimit disk_log_, refused_log_;
};

}  // namespace tuner
