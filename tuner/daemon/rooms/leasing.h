// Leasing: what a Sync is given. New leases for the room that its worker has, leases whose reply got lost
// once more, word of those that others have closed, and the best times known of what it measures.
//
// Only the desk calls it. What takes a FarmState& runs under its lock; lease_to() takes the lock. The store
// comes first: a lease is granted and sent once its row says whose it is.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compiler_core/base/line_limit.h"
#include "db/store.h"
#include "tuner/daemon/edge/metrics.h"
#include "tuner/daemon/edge/sync_call.h"
#include "tuner/daemon/rooms/build_office.h"
#include "tuner/daemon/rooms/clock.h"
#include "tuner/daemon/rooms/farm_state.h"
#include "tuner/daemon/rooms/job_news.h"
#include "tuner/daemon/rooms/locked.h"

namespace tuner {

class Leasing {
 public:
  // All of these outlive it.
  struct Parts {
    Store& store;
    Guarded<FarmState>& farm;
    const Clock& clock;
    DaemonMetrics& metrics;
    JobNews& news;
    BuildOffice& builds;
  };
  explicit Leasing(Parts parts);

  // What the call's worker holds lives on; it is told what of that others have closed. `first`: the call is
  // new, so what it does not hold although it has been leased is given again.
  void take_heartbeat(FarmState& farm, SyncCall& call, bool first);
  // Leases queued trials and races to the calls that have room, in their order: trials in one commit. What
  // the disk refuses stays queued.
  void lease_to(const std::vector<SyncCall*>& calls);
  // The best times known of the tasks that the worker has leases of: they cut hopeless candidates.
  void add_best_times(const FarmState& farm, SyncCall& call) const;

 private:
  using Reserved = std::vector<std::pair<SyncCall*, LeaseTable::Trial>>;
  using StoredLeases = std::map<std::string, std::pair<int, int64_t>>;  // attempt and token, by trial
  void reserve(FarmState& farm, SyncCall& call, Reserved& reserved);
  void deliver(FarmState& farm, const std::string& trial_id, SyncCall& call);
  double store_leases(const std::vector<LeaseWish>& wishes, StoredLeases& stored);
  void store_race_lease(const SyncCall& call, const LeaseTable::Trial& race, StoredLeases& stored);

  Store& store_;
  Guarded<FarmState>& farm_;
  const Clock& clock_;
  DaemonMetrics& metrics_;
  JobNews& news_;
  BuildOffice& build_office_;
  LineLimit disk_log_;
};

}  // namespace tuner
