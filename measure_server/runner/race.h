// A heat of a race: candidates for the same task, each in its own process, timed in turns on the same CPUs.
#pragma once

#include <sys/types.h>

#include <vector>

#include "measure_server/runner/guarded_memory.h"
#include "measure_server/runner/jail.h"
#include "measure_server/runner/runner_protocol.h"

namespace tuner {

// Starts each candidate's process and runs it once. Then each takes `rounds` turns between sentinels; each
// round begins with another candidate. A turn first warms up, because the finalists push each other's
// operands out of the caches. Only one process works at a time. A turn is repeated if its calls, or the
// memory beside it, were disturbed. A candidate that fails leaves the race; the others go on. Sets `go_on` to
// false if the peer is gone. `spared`: children of the runner that must not be killed.
RaceReply run_race(int socket, SealedFiles& files, Jail& jail, const RaceRequest& request,
                   const std::vector<pid_t>& spared, bool& go_on);

}  // namespace tuner
