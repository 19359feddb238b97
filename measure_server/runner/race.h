// A heat of a race: candidates for the same task, each in a process of its own, timed in turns on the same
// CPUs.
#pragma once

#include <sys/types.h>

#include "measure_server/runner/guarded_memory.h"
#include "measure_server/runner/runner_protocol.h"

namespace tuner {

// Every candidate's process is started and run once; then `rounds` times each takes a turn between sentinels,
// beginning with another candidate each round. A turn warms up until operands lie as a loop of calls leaves
// them, since the finalists push each other's out of the caches. Only one process works at a time. A turn
// whose calls were disturbed, or beside which the memory was, is taken anew. A candidate that fails leaves
// the race, the others go on. False in `go_on` when the peer is gone.
RaceReply run_race(int socket, SealedFiles& files, const RaceRequest& request, pid_t spared, bool& go_on);

}  // namespace tuner
