// FarmState: what the daemon knows of its farm in memory. The coordinator has one, in a Guarded (locked.h):
// every function that takes a FarmState& runs under its lock.
//
// The parts are plain tables: they know no clock, disk, thread or message. So a test makes a FarmState of its
// own, and needs no lock. The lock is held neither while the disk writes nor while a search thinks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "compiler_core/base/status.h"
#include "tuner/daemon/rooms/coordinator_options.h"
#include "tuner/daemon/tables/builds.h"
#include "tuner/daemon/tables/document_names.h"
#include "tuner/daemon/tables/jobs.h"
#include "tuner/daemon/tables/lease_table.h"
#include "tuner/daemon/tables/poison_ledger.h"
#include "tuner/daemon/tables/races.h"
#include "tuner/daemon/tables/reruns.h"
#include "tuner/daemon/tables/workers.h"

namespace tuner {

// Why a commit failed lately. On a disk that is nearly full some writes fail, and some do not.
struct StoreTrouble {
  std::string reason;
  int64_t at_ms = 0, stored_ms = 0;  // the latest failure; the latest commit that succeeded
  std::string_view now(int64_t now_ms) const {
    constexpr int64_t kLatelyMs = 5'000;
    return now_ms - at_ms < kLatelyMs || stored_ms <= at_ms ? std::string_view(reason) : std::string_view();
  }
};

struct FarmState {
  explicit FarmState(const CoordinatorOptions& options)
      : leases(options.leases),
        workers(options.leases.ttl_ms, options.take_over_ms, options.templates),
        races(options.race_wait_ms) {}

  LeaseTable leases;        // what is queued, and which worker may measure what until when
  Workers workers;          // who has registered, and what each can measure
  Jobs jobs;                // where each job stands
  Races races;              // races and remeasurements that are under way
  Reruns reruns;            // trials measured again for somebody who waits
  PoisonLedger ledger;      // configs that workers died of
  Builds builds;            // what runners need made, and which builder makes it
  DocumentNames documents;  // what keys of tasks name by digest

  StoreTrouble store_trouble;
  int64_t started_ms = 0;

  bool stopping = false;
  std::string stop_reason;
  // What every call is told from the moment at which the daemon stops.
  Status stopped() const { return unavailable(stop_reason); }
};

}  // namespace tuner
