#include "measure_server/runner/pack_host.h"

#include "compiler_core/base/process_emulator.h"
#include "compiler_core/runtime/cuda_driver.h"
#include "compiler_core/runtime/cuda_fit.h"
#include "measure_server/runner/device_host.h"

namespace tuner {
namespace {

// "sm_90a" of "cuda -arch=sm_90a".
std::string_view arch_of(std::string_view target) {
  constexpr std::string_view kKey = "-arch=";
  const size_t begin = target.find(kKey);
  if (begin == std::string_view::npos) return {};
  target.remove_prefix(begin + kKey.size());
  return target.substr(0, target.find(' '));
}

Status check_device(const Manifest& manifest, const DeviceInfo& device) {
  const std::string_view code = arch_of(manifest.target);
  const auto wrong = [&](const char* why) {
    return failed("the pack's kernels are for ", code, ", and the first GPU here is ", device.name, ", ",
                  device.arch, ": ", why,
                  ". Pack with --target \"cuda -arch=", native_archs({.arch = device.arch}).back(), "\"");
  };
  if (!cubin_runs(code, device.arch)) return wrong("it cannot run them");
  // Such as sm_80 on sm_86.
  if (!is_native_cubin(code, device.arch))
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
