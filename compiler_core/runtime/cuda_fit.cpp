#include "compiler_core/runtime/cuda_fit.h"

#include <charconv>
#include <optional>

#include "compiler_core/runtime/cuda_driver.h"

namespace tuner {
namespace {

struct Architecture {
  int major = 0, minor = 0;
  std::string_view features;  // "a", "f" or empty
};

std::optional<Architecture> parse(std::string_view arch) {
  if (!arch.starts_with("sm_")) return std::nullopt;
  int number = 0;
  const auto [end, error] = std::from_chars(arch.data() + 3, arch.data() + arch.size(), number);
  if (error != std::errc() || number < 10) return std::nullopt;
  return Architecture{number / 10, number % 10, arch.substr(static_cast<size_t>(end - arch.data()))};
}

}  // namespace

bool cubin_runs(std::string_view code, std::string_view device) {
  const std::optional<Architecture> c = parse(code), d = parse(device);
  if (!c || !d || c->major != d->major) return false;
  return c->features == "a" ? c->minor == d->minor : c->minor <= d->minor;
}

bool is_native_cubin(std::string_view code, std::string_view device) {
  const std::optional<Architecture> c = parse(code), d = parse(device);
  return c && d && c->major == d->major && c->minor == d->minor;
}

int toolkit_major(std::string_view toolchain) {
  // "nvrtc 13.0 cuda codegen 1"; "source:nvcc Cuda compilation tools, release 13.0, V13.0.88".
  constexpr std::string_view kNvrtc = "nvrtc ", kNvcc = "source:nvcc", kRelease = " release ";
  size_t at = std::string_view::npos;
  if (toolchain.starts_with(kNvrtc)) at = kNvrtc.size();
  if (toolchain.starts_with(kNvcc) && toolchain.find(kRelease) != std::string_view::npos)
    at = toolchain.find(kRelease) + kRelease.size();
  int major = 0;
  if (at != std::string_view::npos)
    std::from_chars(toolchain.data() + at, toolchain.data() + toolchain.size(), major);
  return major;
}

int newest_toolkit_for(std::string_view target, int driver_version) {
  return target.starts_with("cuda ") ? driver_version / 1000 : 0;
}

Status check_driver_takes(int toolkit_major, int driver_version) {
  if (toolkit_major <= driver_version / 1000) return Status::ok();
  return failed("NVRTC of CUDA ", toolkit_major, " made the kernels, and this host's driver supports CUDA ",
                cuda_version_text(driver_version),
                ", which refuses them; update the driver, or compile with a "
                "libnvrtc.so of CUDA ",
                driver_version / 1000, " (TUNER_NVRTC)");
}

}  // namespace tuner
