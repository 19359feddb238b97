#include "measure_server/runner/pack_host.h"

#include "compiler_core/base/gpu_class.h"
#include "compiler_core/base/process_emulator.h"
#include "compiler_core/runtime/cuda_driver.h"
#include "compiler_core/runtime/cuda_fit.h"
#include "measure_server/runner/device_host.h"

namespace tuner {
namespace {

// "sm_90a" of ("cuda -arch=sm_90a", "-arch=").
std::string_view option_of(std::string_view target, std::string_view key) {
  const size_t begin = target.find(key);
  if (begin == std::string_view::npos) return {};
  target.remove_prefix(begin + key.size());
  return target.substr(0, target.find(' '));
}

Status check_device(const Manifest& manifest, const DeviceInfo& device) {
  const std::string_view code = option_of(manifest.target, "-arch=");
  const std::string_view wanted = option_of(manifest.target, "-device=");
  const std::string here = gpu_class(device.name);
  const auto wrong = [&](const char* why) {
    return failed("the pack's kernels are for ", wanted.empty() ? "" : str("the device class ", wanted, ", "),
                  code, ", and the first GPU here is ", device.name, ", ", device.arch, ": ", why,
                  ". Pack with --target \"cuda -arch=", native_archs({.arch = device.arch}).back(),
                  wanted.empty() || here.empty() ? "" : " -device=" + here, "\"");
  };
  if (!cubin_runs(code, device.arch)) return wrong("it cannot run them");
  // Such as sm_80 on sm_86, or those of an H200 on an H100.
  if (!is_native_cubin(code, device.arch) || (!wanted.empty() && wanted != here))
    return wrong("it would run them, but their times would be recorded as those of another GPU");
  return check_driver_takes(toolkit_major(manifest.toolchain), device.driver_version);
}

// Code for this CPU. Times under qemu are those of no device.
Status check_emulation(const std::string& target) {
  if (target.ends_with(" -emulated") == is_emulated_process()) return Status::ok();
  if (is_emulated_process())
    return failed("the pack's kernels are for \"", target,
                  "\", and an emulator runs this program: pack with \"", target, " -emulated\"");
  return failed("the pack's kernels are for \"", target, "\", and no emulator runs this program");
}

}  // namespace

Status check_host(const PackFile& pack, const ProbeReply& probe) {
  for (const PackTask& task : pack.pack().tasks)
    for (const PackCandidate& c : task.candidates) {
      if (!DeviceHost::takes(c.artifact.manifest)) {
        RETURN_IF_ERROR(check_emulation(c.artifact.manifest.target));
        continue;
      }
      if (probe.devices.empty())
        return failed("the pack holds kernels for \"", task.target, "\"; ", probe.no_device);
      RETURN_IF_ERROR(check_device(c.artifact.manifest, probe.devices.front()));
    }
  return Status::ok();
}

}  // namespace tuner
