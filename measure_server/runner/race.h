// A heat of a race: candidates for the same task, in fresh processes, timed in turns on the same CPUs or GPU.
#pragma once

#include "measure_server/runner/candidate_run.h"
#include "measure_server/runner/device_host.h"
#include "measure_server/runner/runner_protocol.h"

namespace tuner {

// Draws where operands, code and stacks lie (placement.h). Starts each candidate's process (GPU: one fresh
// device child for all, device_race.h) and runs it once. Then each takes `rounds` turns between sentinels;
// each round begins with another candidate. A turn first warms up, because the finalists push each other's
// operands out of the caches. Only one works at a time. A turn is repeated if its calls, or the memory beside
// it, were disturbed. A candidate that fails leaves the race; the others go on. Sets `go_on` to false if the
// peer is gone. Kernels of a device with an exact clock have one turn of two samples.
RaceReply run_race(const CandidateRun::Host& host, DeviceHost& device, const RaceRequest& request,
                   bool& go_on);

}  // namespace tuner
