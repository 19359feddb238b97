#include "measure_server/worker/runner_host.h"

#include <algorithm>
#include <utility>

#include "compiler_core/runtime/cuda_driver.h"
#include "compiler_core/runtime/host_cpu.h"
#include "compiler_core/target.h"

namespace tuner {

namespace {

// On AArch64, where a job for a core that nobody knows could never come, and code for a newer one would not
// run.
Status check_arm_name(const std::string& mcpu) {
  const std::vector<std::string> names = arm_cpu_names();
  if (mcpu != "generic" && std::ranges::find(names, mcpu) == names.end()) {
    std::string all;
    for (const std::string& name : names) all += str(all.empty() ? "" : ", ", name);
    return invalid_argument("--mcpu: found ", mcpu, ", expected generic or one of ", all);
  }
  const std::vector<std::string> here = host_arm_units();
  for (const std::string& unit : units_of_arm(mcpu))
    if (std::ranges::find(here, unit) == here.end())
      return invalid_argument("--mcpu: ", mcpu, " has ", unit,
                              ", which this core has not: its code would not run here");
  return Status::ok();
}

}  // namespace

Result<BuildReply> runner_host(const std::string& mcpu) {
  if (!mcpu.empty() && host_cpu_units().empty()) RETURN_IF_ERROR(check_arm_name(mcpu));
  const Result<Target> target = parse_target(host_cpu_target(/*threads=*/1, mcpu));
  if (!target) return target.status().with_context("--mcpu: ");
  BuildReply hello{.outcome = BuildOutcome::kOk};
  hello.backends.push_back({.family = std::string(target->family->word()),
                            .targets = {target->name()},
                            .features = host_cpu_units()});
  return hello;
}

BuildReply runner_device(const std::string& family, const std::string& device) {
  BuildReply hello{.outcome = BuildOutcome::kOk};
  BuildReply::BackendHere here{.family = family, .targets = targets_of_device(family, device)};
  if (!here.targets.empty()) hello.backends.push_back(std::move(here));
  return hello;
}

}  // namespace tuner
