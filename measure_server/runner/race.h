// A heat of a race: candidates for the same task, each in a process of its own, timed in turns on the same
// CPUs.
#pragma once

#include <sys/types.h>

#include "measure_server/runner/guarded_memory.h"
#include "measure_server/runner/runner_protocol.h"

namespace tuner {

// Every candidate's process is started and run once; then `rounds` times each takes one sample, the sentinel
// timed right before it, beginning with another candidate each round. Only one process works at a time. A
// candidate that fails leaves the race, the others go on. False in `go_on` when the peer is gone.
RaceReply run_race(int socket, SealedFiles& files, const RaceRequest& request, pid_t spared, bool& go_on);

}  // namespace tuner
