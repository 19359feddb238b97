// A whole farm in one thread and virtual time: the real coordinator (by hand) on a real store, workers and
// clients as small models, and a network that delays, loses and repeats. One seed decides everything.
//
//   clients --Submit--> [ network ] --> Coordinator --> Store (a file in memory, synchronous = FULL)
//   workers --Register, Sync--> [ network ] --^
//   builders -Register, Sync, Write-'
//
// While faults last: daemon, workers and builders are killed and restarted, they stop for a while, messages
// are lost, repeated and late, and the daemon's disk may have room for few artifacts only. A killed worker
// keeps what it has spooled: results that no reply has acknowledged. Then faults end, and all jobs must.
//
// The oracle is a ledger: what was acknowledged to whom. simulate() checks it against the store.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tuner::sim {

struct Plan {
  uint64_t seed = 1;
  int64_t faults_ms = 120'000;  // virtual
  int64_t limit_ms = 900'000;   // virtual: a farm without faults must have ended all jobs by then
  std::string folder;           // for the database, empty
};

struct Outcome {
  std::vector<std::string> violations;  // what should never be; empty: all is well
  // What happened, in numbers.
  int64_t virtual_ms = 0;
  int jobs = 0, workers = 0, builders = 0, results = 0, races = 0;
  int built = 0, fetched = 0;
  int recalled = 0;  // artifacts that a daemon of before was told of
  int missed = 0;    // reads of what was not there any more
  int let_go = 0;    // leases that ran out before they were built
  int flaws = 0;     // orders that a builder spoilt
  int lies = 0;      // results of a worker that lies
  int given_back =
      0;  // leases of a template that their worker has in another version, or that nobody could build
  int daemon_kills = 0, worker_kills = 0 /* and of builders */, pauses = 0, lost = 0, repeated = 0;
  uint64_t trace = 0;  // digest of every delivery, in order: the same seed gives the same one
};

Outcome simulate(const Plan& plan);

}  // namespace tuner::sim
