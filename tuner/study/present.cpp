#include "tuner/study/present.h"

#include <algorithm>

#include "compiler_core/codegen/compile.h"
#include "compiler_core/codegen_cuda/cuda.h"
#include "compiler_core/runtime/cuda_driver.h"
#include "measure_server/runner/hardware.h"
#include "templates/schedule_template.h"

namespace tuner {

namespace {

// The GPU of this machine that the target is native code for.
std::optional<CudaDevice> device_of(const Target& target) {
  const Result<std::vector<CudaDevice>> devices = cuda_devices();
  if (!devices || target.emulated) return std::nullopt;
  for (const CudaDevice& device : *devices)
    for (const std::string& arch : native_archs(device))
      if (target.name() == "cuda -arch=" + arch) return device;
  return std::nullopt;
}

}  // namespace

bool is_this_machine(const Target& target) {
  if (target.is_cuda()) return device_of(target).has_value();
  return target.is_cpu() && target.name() == host_target(target.threads).name();
}

Present present_here(const Target& target) {
  Present now{.cpu_toolchain = toolchain_fingerprint(),
              .harness_abi = kHarnessAbi,
              .template_version = [](std::string_view name) {
                const AnyTemplate* found = find_template(name);
                return found == nullptr ? 0 : found->version();
              }};
  if (const std::string gpu = cuda_toolchain_fingerprint(); gpu.starts_with("nvrtc "))
    now.gpu_toolchain = gpu;
  if (target.is_cuda()) {
    if (const std::optional<CudaDevice> device = device_of(target)) now.hardware = fingerprint(*device);
  } else if (is_this_machine(target)) {
    now.hardware = hardware_fingerprint();
  }
  return now;
}

Present present_here(const std::string& target_name) {
  const Result<Target> target = parse_target(target_name);
  return present_here(target ? *target : Target{});
}

}  // namespace tuner
