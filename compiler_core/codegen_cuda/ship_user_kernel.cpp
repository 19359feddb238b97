#include "compiler_core/codegen_cuda/ship_user_kernel.h"

#include <utility>

#include "compiler_core/codegen_cuda/cuda.h"
#include "compiler_core/codegen_cuda/user_kernel.h"
#include "compiler_core/codegen_cuda/user_kernel_text.h"
#include "compiler_core/ir/foreign_code.h"

namespace tuner {

Result<ShippedKernel> ship_user_kernel(const Program& program, const Target& target,
                                       const ShipRequest& request) {
  const ForeignCode& code = *program.foreign;
  ASSIGN_OR_RETURN(Artifact artifact,
                   compile_user_kernel(under_name(program, "tuner_" + request.function), target));
  CudaLauncher launcher = cuda_launcher(artifact.manifest, request.function, request.about);
  const std::string base = "cuda/" + request.function;
  const bool is_ptx = code.launch->form == ForeignLaunch::Form::kPtx;
  ShippedKernel shipped{.manifest = std::move(artifact.manifest), .alignment_bytes = 16};
  shipped.files = {
      {is_ptx ? "ptx" : "cubin", base + binary_ending(shipped.manifest.kind), std::move(artifact.binary)},
      {"launcher", base + ".c", std::move(launcher.source)},
      {"header", base + ".h", std::move(launcher.header)}};
  if (code.launch->form != ForeignLaunch::Form::kCuda) return shipped;
  shipped.files.push_back({"source", base + ".cu", user_kernel_text(program)});
  // Names of a job's folder, which its source includes.
  for (const ForeignCode::File& file : *code.files)
    if (file.name != code.source && (file.name.ends_with(".h") || file.name.ends_with(".cuh")))
      shipped.files.push_back(
          {"include_" + std::to_string(shipped.files.size()), "cuda/" + file.name, file.text});
  return shipped;
}

}  // namespace tuner
