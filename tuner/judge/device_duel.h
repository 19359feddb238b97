// The GPU of this host for a judge: which one it is, and heats in which nobody shares a context.
#pragma once

#include "compiler_core/base/status.h"
#include "compiler_core/target.h"
#include "measure_server/runner/runner_client.h"
#include "measure_server/runner/runner_protocol.h"

namespace tuner {

// Fills in which device of the host a run for this target takes, and the CPU that launches. InvalidArgument:
// there is no such device.
Status choose_device(RunnerClient& runner, const Target& target, RunRequest& request);

// A heat of a duel (duel.h): each candidate has a wary run of its own, in a fresh context, one after the
// other. In one context a kernel could read what its rival has just computed. `runs` numbers them.
Result<RaceReply> device_heat(RunnerClient& runner, const RaceRequest& request, uint64_t& runs);

}  // namespace tuner
