// LossOffice: what becomes of leases that were lost, and of configs that workers died of. A trial or race is
// tried again, or ends without a result; those who watch its job hear why.
//
// Any thread may call it, without the lock of the farm but for what takes a FarmState&. The store comes
// first: a lost trial is leased again once its row says so, and is closed once its record is stored.
#pragma once

#include <string>
#include <vector>

#include "compiler_core/base/line_limit.h"
#include "compiler_core/base/status.h"
#include "db/death.h"
#include "db/store.h"
#include "tuner/daemon/edge/metrics.h"
#include "tuner/daemon/rooms/coordinator_options.h"
#include "tuner/daemon/rooms/farm_state.h"
#include "tuner/daemon/rooms/job_news.h"
#include "tuner/daemon/rooms/locked.h"
#include "tuner/daemon/rooms/wake.h"

namespace tuner {

class LossOffice {
 public:
  using Losses = std::vector<LeaseTable::Loss>;

  // All of these outlive the office.
  LossOffice(Store& store, Guarded<FarmState>& farm, const CoordinatorOptions& options,
             DaemonMetrics& metrics, JobNews& news, Wake wake);

  // Reads the poison ledger that earlier daemons on this database wrote.
  Status load();

  // The leases are lost: the store first, in one commit, then another worker may have them.
  void handle(Losses losses);
  // Ends the trial: its record says that the device is lost. False: the disk refuses it, and all is as
  // before.
  bool give_up(const LeaseTable::Loss& loss);
  // Results came of configs that workers had died of.
  void survived(std::vector<DeathRow> lines);
  // Of new or stored trials those whose config is poison: each is to end without a worker.
  static Losses poisoned_among(const FarmState& farm, const std::vector<TrialRow>& rows, const Job& job);

 private:
  void take_deaths(Losses& losses);
  bool lose_race(const LeaseTable::Loss& loss);
  std::string with_trial_name(std::string text, const std::string& trial_id) const;

  Store& store_;
  Guarded<FarmState>& farm_;
  const CoordinatorOptions& options_;
  DaemonMetrics& metrics_;
  JobNews& news_;
  const Wake wake_;
  LineLimit disk_log_;
};

}  // namespace tuner
