// Incoming: a result on its way into the store.
#pragma once

#include "db/records.h"
#include "proto/convert.h"
#include "tuner/daemon/edge/sync_call.h"
#include "tuner/daemon/tables/lease_table.h"
#include "tuner/daemon/tables/machine_bound.h"

namespace tuner {

// What the results of a task are judged by.
struct TaskFacts {
  MachineBound bound;
  bool on_host = false;  // its sentinels are those of the worker's CPU
};

struct Incoming {
  SyncCall* call = nullptr;
  MeasureRecord record;
  double check_ms = 0;
  bool refused = false;  // not measured, and its worker is not to blame: the request was wrong
  // Filled when it is believed (referee.h): its claim, and what is known of its task.
  LeaseTable::Claim claim;
  TaskFacts facts;
  int repeats = 0;
  bool stored = false, known = true;  // known: its trial exists
};

// Who sent a result: the session decides which worker; the environment, which of its lives measured it. An
// environment that names neither is that of the session.
inline WorkerLife sender_of(const Environment& environment, const WorkerLife& session) {
  const std::string& worker = environment.worker_id;
  const std::string& life = environment.worker_incarnation;
  return {worker.empty() ? session.worker_id : worker, life.empty() ? session.incarnation : life};
}
inline WorkerLife sender_of(const v1::Environment& environment, const WorkerLife& session) {
  return sender_of(Environment{.worker_id = environment.worker_id(),
                               .worker_incarnation = environment.worker_incarnation()},
                   session);
}

}  // namespace tuner
