#include "compiler_core/runtime/nvml.h"

#include <dlfcn.h>

#include <cstdlib>

#include "compiler_core/base/status.h"
#include "compiler_core/runtime/cuda_driver_api.h"

namespace tuner {
namespace {

using cuda::NvmlApi;
using cuda::NvmlDevice;

// Null when there is no usable library.
const NvmlApi* nvml() {
  static const NvmlApi* once = []() -> const NvmlApi* {
    const char* given = std::getenv("TUNER_LIBNVML");
    void* library =
        dlopen(given != nullptr && *given != '\0' ? given : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return nullptr;
    auto* api = new NvmlApi;  // as long as the library: for ever
#define TUNER_NVML_RESOLVE(member, symbol, parameters) \
  api->member = reinterpret_cast<decltype(api->member)>(dlsym(library, symbol));
    TUNER_NVML_SYMBOLS(TUNER_NVML_RESOLVE)
#undef TUNER_NVML_RESOLVE
    const bool usable = api->init != nullptr && api->device_by_uuid != nullptr && api->init() == 0;
    return usable ? api : nullptr;
  }();
  return once;
}

// nvmlClocksThrottleReason*: why the clock is below its highest. "Idle" and a clock somebody set are no
// throttling.
std::string throttle_text(unsigned long long reasons) {
  constexpr std::pair<unsigned long long, const char*> kReasons[] = {
      {0x04, "power cap"},   {0x08, "hardware slowdown"},    {0x10, "sync boost"},
      {0x20, "temperature"}, {0x40, "hardware temperature"}, {0x80, "power brake"}};
  std::string text;
  for (const auto& [bit, name] : kReasons)
    if (reasons & bit) text += str(text.empty() ? "" : " and ", name);
  return text;
}

}  // namespace

std::string device_state(const std::string& uuid) {
  const NvmlApi* api = nvml();
  NvmlDevice device = nullptr;
  if (api == nullptr || api->device_by_uuid(uuid.c_str(), &device) != 0) return "no NVML";
  std::string text;
  const auto add = [&](const auto&... parts) { text += str(text.empty() ? "" : ", ", parts...); };
  unsigned value = 0;
  if (api->clock_mhz != nullptr && api->clock_mhz(device, cuda::kNvmlClockSm, &value) == 0)
    add(value, " MHz");
  if (api->clock_mhz != nullptr && api->clock_mhz(device, cuda::kNvmlClockMemory, &value) == 0)
    add("memory ", value, " MHz");
  if (api->temperature != nullptr && api->temperature(device, cuda::kNvmlTemperatureGpu, &value) == 0)
    add(value, " C");
  if (api->power_mw != nullptr && api->power_mw(device, &value) == 0) add((value + 500) / 1000, " W");
  unsigned long long reasons = 0;
  if (api->throttle != nullptr && api->throttle(device, &reasons) == 0)
    if (const std::string why = throttle_text(reasons); !why.empty()) add("throttled by ", why);
  return text.empty() ? "NVML tells nothing" : text;
}

}  // namespace tuner
