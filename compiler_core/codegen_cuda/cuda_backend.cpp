#include "compiler_core/codegen_cuda/cuda_backend.h"

#include <algorithm>

#include "compiler_core/codegen/compile.h"
#include "compiler_core/codegen/emulated_run.h"
#include "compiler_core/codegen_cuda/cuda.h"
#include "compiler_core/codegen_cuda/issue_floor.h"
#include "compiler_core/codegen_cuda/machine_code_text.h"
#include "compiler_core/codegen_cuda/nvrtc.h"
#include "compiler_core/codegen_cuda/ship_user_kernel.h"
#include "compiler_core/codegen_cuda/time_estimate.h"
#include "compiler_core/codegen_cuda/user_kernel.h"
#include "compiler_core/codegen_cuda/user_kernel_text.h"
#include "compiler_core/foreign/compile_foreign.h"
#include "compiler_core/host_spelling.h"
#include "compiler_core/ir/foreign_code.h"
#include "compiler_core/lower/gpu.h"
#include "compiler_core/runtime/cuda_driver.h"
#include "compiler_core/runtime/cuda_fit.h"

namespace tuner {
namespace {

// What the GPU is native code for, beside its names.
struct DeviceHere {
  CudaDevice device;
  std::vector<std::string> targets;
};
Result<std::vector<DeviceHere>> devices_here() {
  ASSIGN_OR_RETURN(const std::vector<CudaDevice> devices, cuda_devices());
  std::vector<DeviceHere> here;
  for (const CudaDevice& device : devices)
    here.push_back({device, targets_of_device("cuda", fingerprint(device))});
  return here;
}

// Lowered, and let through by the filter that needs no compiler.
Result<GpuProgram> lowered_and_filtered(const Program& program, const Target& target) {
  ASSIGN_OR_RETURN(GpuProgram lowered, lower_gpu(program));
  for (const GpuKernel& kernel : lowered.kernels) RETURN_IF_ERROR(check_resources(kernel, target));
  return lowered;
}

// Of a user's code nothing is lowered, and nobody reads its loops.
Status no_loops(const Program& program) {
  return invalid_argument("the code of ", program.foreign->function,
                          " is a user's, of which this is not known; show it as cuda, resources or sass");
}

Result<std::string> user_text(std::string_view form, const Program& program, const Target& target) {
  if (form == "cuda") return user_kernel_text(program);
  if (form == "resources") return user_kernel_resources(program, target);
  if (form == "sass") return user_kernel_sass(program, target);
  return no_loops(program);
}

class CudaBackend final : public Backend {
 public:
  const TargetFamily& family() const override { return cuda_family(); }

  Status available() const override { return nvrtc_available(); }
  std::string toolchain() const override { return cuda_toolchain_fingerprint(); }
  Result<std::string> toolchain_for(const Program& program) const override {
    return program.foreign != nullptr ? user_kernel_toolchain(*program.foreign) : toolchain();
  }

  Result<std::optional<Target>> resolve_here(std::string_view text) const override {
    if (!means_gpu_of_host(text)) return std::optional<Target>();
    const Result<std::vector<DeviceHere>> devices = devices_here();
    if (!devices)
      return invalid_argument("target \"", text, "\": ", devices.message(),
                              ". Or name an architecture: \"cuda -arch=sm_80\"");
    const bool with_class = means_class_of_host(text);
    std::optional<Target> found;  // the most special one
    for (const std::string& name : devices->front().targets) {
      ASSIGN_OR_RETURN(Target target, parse_target(name));
      if (target.device.empty() != with_class) found = std::move(target);
    }
    if (!found)
      return invalid_argument("target \"", text, "\": the GPU's name, \"", devices->front().device.name,
                              "\", tells no class; leave -device out");
    return found;
  }

  std::vector<std::string> targets_of_host(std::string_view device) const override {
    return targets_of_device("cuda", device);
  }
  std::string hardware_here(const Target& target) const override {
    const Result<std::vector<DeviceHere>> devices = devices_here();
    if (!devices || target.emulated) return {};
    for (const DeviceHere& here : *devices)
      if (std::ranges::find(here.targets, target.name()) != here.targets.end())
        return fingerprint(here.device);
    return {};
  }
  Status runs_here(const Target& target) const override {
    if (target.emulated)
      return invalid_argument(
          "times of emulated kernels come from packs only; tuner pack --emulate, then runner run-pack");
    const Result<std::vector<DeviceHere>> devices = devices_here();
    if (!devices) return invalid_argument(devices.message());
    const std::vector<std::string>& first = devices->front().targets;
    if (std::ranges::find(first, target.name()) == first.end())
      return invalid_argument("its GPU is \"", first.back(), "\"");
    const Status taken =
        check_driver_takes(toolkit_major(toolchain()), devices->front().device.driver_version);
    return taken ? taken : invalid_argument(taken.message());
  }

  Result<Artifact> compile(const Program& program, const Target& target,
                           const std::string& cache) const override {
    const std::string cubins = cache.empty() ? std::string() : cache + "/cubins";
    if (program.foreign == nullptr) return compile_cuda(program, target, {.cache_directory = cubins});
    if (program.foreign->launch) return compile_user_kernel(program, target, cubins);
    return compile_foreign(program, target.name(), /*threads=*/1);  // what is right: a function of the host's
  }
  Result<ListedCode> compile_listed(const Program& program, const Target& target) const override {
    if (program.foreign != nullptr && program.foreign->launch) return list_user_kernel(program, target);
    return Backend::compile_listed(program, target);
  }
  bool compiles_helpers() const override { return true; }
  Result<std::string> compile_helper(const std::string& source, const Target& target) const override {
    ASSIGN_OR_RETURN(
        cuda::Compiled compiled,
        cuda::compile_source(source, "helper.cu", {str("--gpu-architecture=", target.arch), "--std=c++17"}));
    return std::move(compiled.cubin);
  }
  std::span<const CodeForm> forms() const override {
    // The source is among the files of a bundle anyway.
    static constexpr CodeForm kForms[] = {{"kernels", "#", ""},
                                          {"cuda", "//", ""},
                                          {"resources", "#", ""},
                                          {"sass", "#", ""},
                                          {"defines", "//", ".h"}};
    return kForms;
  }
  Result<std::string> text(std::string_view form, const Program& program,
                           const Target& target) const override {
    if (form == "defines") return foreign_definitions(program);
    if (program.foreign != nullptr) return user_text(form, program, target);
    if (form == "cuda") return emit_cuda(program, target);
    if (form == "resources") return cuda_resources(program, target);
    if (form == "sass") return cuda_sass(program, target);
    ASSIGN_OR_RETURN(const GpuProgram lowered, lower_gpu(program));
    return to_text(lowered);
  }
  std::vector<std::string_view> passes() const override {
    std::vector<std::string_view> names;
    for (const GpuLoweringPass& pass : gpu_lowering_passes()) names.push_back(pass.name);
    return names;
  }
  Result<std::string> text_after(std::string_view last, const Program& program,
                                 const Target& /*target*/) const override {
    if (program.foreign != nullptr) return no_loops(program);
    ASSIGN_OR_RETURN(const GpuProgram lowered, lower_gpu(program, last));
    return to_text(lowered);
  }

  bool emulates() const override { return true; }
  Result<Artifact> compile_emulated(const Program& program, const Target& target) const override {
    if (program.foreign != nullptr) return no_loops(program);
    ASSIGN_OR_RETURN(const GpuProgram lowered, lowered_and_filtered(program, target));
    return tuner::compile_emulated(lowered, host_target(1));
  }
  bool estimates() const override { return true; }
  Result<double> estimate_ns(const Program& program, const Target& target) const override {
    if (program.foreign != nullptr) return 0.0;  // nothing is known of a user's kernel: all rank alike
    ASSIGN_OR_RETURN(const GpuProgram lowered, lowered_and_filtered(program, target));
    return estimate_time(lowered, target).ns;
  }
  double least_ns(const Program& program, const Target& target, const Artifact& artifact) const override {
    if (artifact.manifest.kind != binary_kind::kCubin || program.foreign != nullptr) return 0;
    const Result<GpuProgram> lowered = lower_gpu(program);
    if (!lowered) return 0;
    const Result<sass::IssueFloor> floor = sass::issue_floor(artifact, *lowered, target);
    if (!floor) return 0;
    return floor->ns + kLaunchNs * static_cast<double>(lowered->kernels.size());
  }

  Result<ShippedKernel> ship(const Program& program, const Target& target,
                             const ShipRequest& request) const override {
    if (program.foreign != nullptr) return ship_user_kernel(program, target, request);
    const Program named = under_name(program, "tuner_" + request.function);
    ASSIGN_OR_RETURN(Artifact cubin, compile_cuda(named, target));
    ASSIGN_OR_RETURN(std::string source, emit_cuda(named, target));
    CudaLauncher launcher = cuda_launcher(cubin.manifest, request.function, request.about);
    const std::string base = "cuda/" + request.function;
    ShippedKernel shipped{.manifest = std::move(cubin.manifest), .alignment_bytes = 16};
    shipped.files = {{"cubin", base + ".cubin", std::move(cubin.binary)},
                     {"source", base + ".cu", std::move(source)},
                     {"launcher", base + ".c", std::move(launcher.source)},
                     {"header", base + ".h", std::move(launcher.header)}};
    return shipped;
  }
  std::span<const std::string_view> identifier_endings() const override {
    static constexpr std::string_view kEndings[] = {"_kernel", "_operands", "_load",  "_bind",
                                                    "_launch", "_pack",     "_unload"};
    return kEndings;
  }
};

}  // namespace

const Backend& cuda_backend() {
  static const CudaBackend backend;
  return backend;
}

}  // namespace tuner
