#include "measure_server/worker/runner_host.h"

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

}  // namespace tuner
