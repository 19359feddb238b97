// Referee: which results are believed. A result counts if its sender had that attempt, and if it can be
// (belief.h).
//
// What cannot be goes into quarantine: a row, a strike against the worker, and a fault of the lease, which
// another worker has next. Only the desk asks. What takes a FarmState& runs under its lock; all else takes
// the lock.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compiler_core/base/line_limit.h"
#include "compiler_core/base/status.h"
#include "db/quarantine.h"
#include "db/store.h"
#include "measure.pb.h"
#include "tuner/daemon/edge/metrics.h"
#include "tuner/daemon/edge/sync_call.h"
#include "tuner/daemon/rooms/clock.h"
#include "tuner/daemon/rooms/coordinator_options.h"
#include "tuner/daemon/rooms/farm_state.h"
#include "tuner/daemon/rooms/incoming.h"
#include "tuner/daemon/rooms/locked.h"

namespace tuner {

class Referee {
 public:
  using Losses = std::vector<LeaseTable::Loss>;

  // All of these outlive the referee.
  Referee(Store& store, Guarded<FarmState>& farm, const Clock& clock, const CoordinatorOptions& options,
          DaemonMetrics& metrics);

  // Remembers the strikes of the last day, which earlier daemons on this database counted.
  Status load();

  // Fills what is known of the result's lease. False: the result is done with, and acknowledged: its sender
  // did not have that attempt, or it is stored already. An error: the disk cannot tell, so the result is to
  // come again.
  Result<bool> is_of_its_sender(Incoming& result);
  // True: it cannot be, and is in quarantine; or the disk refused that, and it comes again. Adds to `losses`
  // the lease that another worker is to have.
  bool take_impossible(const Incoming& result, Losses& losses);
  // The same of a race. Nothing: it can be. Else whether it may be acknowledged.
  std::optional<bool> take_impossible(SyncCall& call, const v1::RaceResult& message, const RaceRow& row,
                                      const Work& work, const LeaseTable::Claim& claim, Losses& losses);
  // Counts and logs a result whose sender did not have that attempt.
  void refuse(const SyncCall& call, const std::string& id, int attempt, std::string_view why);
  // A worker whose machine has become slower is left alone until it is calm.
  void note_pace(FarmState& farm, const Incoming& result) const;

 private:
  const TaskFacts& facts_of(const JobRow::Task& task);
  Result<bool> is_of_its_sender_by_the_store(Incoming& result);
  Status quarantine(SyncCall& call, const QuarantineRow& row, bool current, Losses& losses);

  Store& store_;
  Guarded<FarmState>& farm_;
  const Clock& clock_;
  const CoordinatorOptions& options_;
  DaemonMetrics& metrics_;
  std::unordered_map<std::string, TaskFacts> facts_;
  LineLimit disk_log_, not_leased_log_, quarantine_log_;
};

}  // namespace tuner
