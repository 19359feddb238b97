#include "compiler_core/runtime/cpu_instructions.h"

#include "compiler_core/runtime/tuner_kernel.h"

namespace tuner {

std::optional<bool> cpu_has(std::string_view set) {
  const int32_t has = tuner_cpu_has(set.data(), set.size());
  return has < 0 ? std::nullopt : std::optional(has == 1);
}

}  // namespace tuner
