#include "measure_server/runner/race.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <vector>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/base/clock.h"
#include "compiler_core/runtime/kernel_loader.h"
#include "measure_server/runner/candidate_run.h"
#include "measure_server/runner/command_run.h"
#include "measure_server/runner/device_race.h"
#include "measure_server/runner/heat.h"
#include "measure_server/runner/pulse.h"
#include "measure_server/runner/sentinel.h"

namespace tuner {

namespace {

// `children`: all the runner has, the candidates' own among them, so that the end of one does not take along
// the others. `feel_memory`: the memory sentinel matters to some.
Result<std::vector<std::unique_ptr<Contestant>>> start_all(const CandidateRun::Host& host,
                                                           const RaceRequest& r, std::vector<pid_t>& children,
                                                           bool& feel_memory) {
  RETURN_IF_ERROR(host.jail.mend());
  children.push_back(host.jail.keeper());
  std::vector<std::unique_ptr<Contestant>> runs;
  const uint64_t placement = CandidateRun::unforeseeable_seed();
  for (const RaceRequest::Candidate& c : r.candidates) {
    ASSIGN_OR_RETURN(Artifact artifact, load_artifact(r.base.artifact_dir, c.digest));
    if (DeviceHost::takes(artifact.manifest))
      return failed("artifact ", c.digest, " is for a GPU and cannot race beside those of CPUs");
    RunRequest request = r.base;
    request.digest = c.digest;
    request.check = c.check;
    auto run = std::make_unique<CandidateRun>(host, std::move(request), std::move(artifact), children);
    RETURN_IF_ERROR(run->begin(r.samples, r.other_samples, Placement(placement, runs.size())));
    children.push_back(run->child());
    feel_memory = feel_memory || run->feels_memory();
    runs.push_back(std::move(run));
  }
  return runs;
}

// A core that was idle runs slower for some tens of milliseconds; what is timed first must not pay for it.
// Returns when three sentinels in a row differ by less than a percent, and after 150 ms at the latest.
void warm_up_core(const std::vector<int>& cpus) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(150);
  for (int alike = 0; alike < 3 && std::chrono::steady_clock::now() < end;) {
    const double first = sentinel_on(cpus), second = sentinel_on(cpus);
    alike = std::fabs(first - second) < 0.01 * second ? alike + 1 : 0;
  }
}

// Nothing on the host changes what an exact clock says. Two samples show that it does not contradict itself.
RaceRequest for_exact_clock(RaceRequest request) {
  request.rounds = 1;
  request.samples = std::min(request.samples, 2);
  request.other_samples = std::min(request.other_samples, 1);
  return request;
}

RaceReply run_cpu_heat(const CandidateRun::Host& host, const RaceRequest& request,
                       std::vector<pid_t> children, bool& go_on, bool& ended_from_outside) {
  bool memory = false;
  const Result<std::vector<std::unique_ptr<Contestant>>> runs = start_all(host, request, children, memory);
  if (!runs.is_ok()) {
    RaceReply reply;
    reply.id = request.base.id;
    reply.error = runs.message();
    ended_from_outside = true;  // perhaps: see CandidateRun::fork_child()
    return reply;
  }
  // Without pulses the sentinel is what times are compared with.
  const bool pulses = request.base.patience_ms > 0 && take_pulse().ns > 0;
  const std::vector<int>& cpus = request.base.cpus;
  const auto sentinels = [&] {
    return Beside{.compute_ns = pulses ? 0 : sentinel_on(cpus),
                  .memory_ns = memory ? memory_sentinel_on(cpus) : 0};
  };
  RaceReply reply = run_heat(
      request, *runs, [&] { warm_up_core(cpus); }, sentinels, go_on);
  ended_from_outside = std::ranges::any_of(*runs, [](const std::unique_ptr<Contestant>& run) {
    return static_cast<const CandidateRun&>(*run).ended_from_outside();
  });
  return reply;
}

// A finalist that ended by a signal, which somebody else may have sent, is believed in the third heat.
RaceReply run_cpu_race(const CandidateRun::Host& host, const RaceRequest& request, pid_t device_child,
                       bool& go_on) {
  constexpr int kTries = 3;
  for (int i = 1;; ++i) {
    bool ended_from_outside = false;
    RaceReply reply = run_cpu_heat(host, request, {device_child}, go_on, ended_from_outside);
    if (!ended_from_outside || i == kTries || !go_on) return reply;
  }
}

}  // namespace

RaceReply run_race(const CandidateRun::Host& host, DeviceHost& device, const RaceRequest& request,
                   bool& go_on) {
  const auto begin = std::chrono::steady_clock::now();
  const Result<Artifact> first = load_artifact(request.base.artifact_dir, request.candidates.front().digest);
  RaceReply reply;
  reply.id = request.base.id;
  if (!first.is_ok()) {
    reply.error = first.message();
  } else if (DeviceHost::takes(first->manifest)) {
    reply = run_device_race(device, request, go_on);
  } else if (CommandRun::takes(first->manifest)) {
    reply = run_command_heat(host.socket, request, go_on);
    kill_orphans({device.child(), host.jail.keeper()});
  } else {
    reply = run_cpu_race(host, has_exact_clock(first->manifest.kind) ? for_exact_clock(request) : request,
                         device.child(), go_on);
  }
  reply.run_ms = ms_since(begin);
  return reply;
}

}  // namespace tuner
