#include "tuner/study/present.h"

#include "compiler_core/backend.h"
#include "compiler_core/foreign/compilers.h"
#include "measure_server/runner/runner_protocol.h"
#include "templates/schedule_template.h"

namespace tuner {

bool is_this_machine(const Target& target) {
  const Backend* backend = find_backend(*target.family);
  return backend != nullptr && !backend->hardware_here(target).empty();
}

Present present_here(const Target& target) {
  const Backend* backend = find_backend(*target.family);
  return {.toolchains = toolchains_here(),
          .other_toolchain = toolchain_now,
          .hardware = backend != nullptr ? backend->hardware_here(target) : std::string(),
          .harness_abi = kHarnessAbi,
          .template_version = [](std::string_view name) {
            const AnyTemplate* found = find_template(name);
            return found == nullptr ? 0 : found->version();
          }};
}

Present present_here(const std::string& target_name) {
  const Result<Target> target = parse_target(target_name);
  return present_here(target ? *target : Target{});
}

}  // namespace tuner
