// Many workers in one process and one thread: each a connection of its own, none measures anything. They
// register, lease, answer from a formula, and repeat results until they are acknowledged, as the real worker
// does (measure_server/worker/worker_core.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "proto/daemon_access.h"

namespace tuner::bench {

struct WorkersPlan {
  DaemonAccess daemon;
  std::string target;  // that all of them offer
  int workers = 1;
  int slots = 4;     // leases a worker holds at most
  int think_ms = 0;  // how long a worker "measures" what it has leased
  double seconds = 10;
  std::string name = "sim";  // ids are NAME-0, NAME-1, ...; with TLS NAME.0, ..., by the certificate of NAME
  int wait_ms = 15'000;      // how long a Sync waits for news
  // Share of Syncs that come a second time, up to five seconds later, as if a network had kept a copy.
  double repeated = 0;
  // The ledger that the database must agree with: a line "TRIAL ATTEMPT" for every acknowledged result is
  // appended as soon as it is known, so that a killed process leaves what it knew. Empty: none.
  std::string ledger;
};

struct WorkersResult {
  int64_t acknowledged = 0;  // results, each once
  int64_t calls = 0, failures = 0;
  int64_t repeated = 0;  // Syncs that came a second time; their answers count nowhere
  // Milliseconds from sending results to having leases again, thinking not included; unsorted. Those of the
  // first three seconds, in which all workers come at once, are left out.
  std::vector<double> turn_ms;
  // Milliseconds until the first lease of all came, and until the last acknowledgement; negative: none did.
  double first_lease_ms = -1, last_ack_ms = -1;
  // Times at which workers registered together: at the start, and after each restart of the daemon that half
  // of them saw. Milliseconds: when the first call had failed (0 at the start), when the first registered,
  // when the last.
  struct Arrival {
    int registered = 0;
    double from_ms = 0, first_ms = 0, last_ms = 0;
  };
  std::vector<Arrival> arrivals;
};

Result<WorkersResult> run_simulated_workers(const WorkersPlan& plan);

}  // namespace tuner::bench
