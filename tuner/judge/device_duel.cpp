#include "tuner/judge/device_duel.h"

#include <algorithm>

#include "compiler_core/backend.h"
#include "compiler_core/base/cpu_affinity.h"

namespace tuner {

Status choose_device(RunnerClient& runner, const Target& target, RunRequest& request) {
  ASSIGN_OR_RETURN(const ProbeReply probe, runner.probe(ProbeRequest{.devices_only = true}));
  for (const DeviceInfo& device : probe.devices) {
    const std::vector<std::string> names = backend_of(target).targets_of_host(device.fingerprint);
    if (std::ranges::find(names, target.name()) == names.end()) continue;
    request.device = device.ordinal;
    request.device_uuid = device.uuid;
    request.cpus = {usable_cpus().back()};
    return Status::ok();
  }
  return invalid_argument("no GPU of this host is \"", target.name(), "\"",
                          probe.no_device.empty() ? "" : ": " + probe.no_device);
}

Result<RaceReply> device_heat(RunnerClient& runner, const RaceRequest& request, uint64_t& runs) {
  RaceReply heat;
  for (const RaceRequest::Candidate& candidate : request.candidates) {
    RunRequest one = request.base;
    one.id = ++runs;
    one.digest = candidate.digest;
    one.check = candidate.check;
    one.prove_with = 0;
    ASSIGN_OR_RETURN(RunReply reply, runner.run(one));
    RaceReply::Candidate& made = heat.candidates.emplace_back();
    made.outcome = reply.outcome;
    made.message = std::move(reply.message);
    made.difference = std::move(reply.difference);
    made.doubted = reply.doubted;
    made.run_ns = std::move(reply.run_ns);
    made.cpu_ns = std::move(reply.cpu_ns);
    made.turns = 1;
    made.max_error = reply.max_error;
  }
  return heat;
}

}  // namespace tuner
