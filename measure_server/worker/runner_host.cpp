#include "measure_server/worker/runner_host.h"

#include <utility>

#include "compiler_core/runtime/cuda_driver.h"
#include "compiler_core/runtime/host_cpu.h"
#include "compiler_core/target.h"

namespace tuner {

Result<BuildReply> runner_host(const std::string& mcpu) {
  const Result<Target> target = parse_target(host_cpu_target(/*threads=*/1, mcpu));
  if (!target) return target.status().with_context("--mcpu: ");
  BuildReply hello{.outcome = "ok"};
  hello.backends.push_back({.family = std::string(target->family->word()),
                            .targets = {target->name()},
                            .features = host_cpu_units()});
  return hello;
}

BuildReply runner_device(const std::string& family, const std::string& device) {
  BuildReply hello{.outcome = "ok"};
  if (family != cuda_family().word()) return hello;
  BuildReply::BackendHere here{.family = family};
  for (const std::string& arch : native_archs({.arch = device}))
    here.targets.push_back(str(family, " -arch=", arch));
  if (!here.targets.empty()) hello.backends.push_back(std::move(here));
  return hello;
}

}  // namespace tuner
