// ConstantPacker: the constants of a model as its kernels read them.
//
// A kernel's packing is a Program; it is compiled for the model's target where that runs here, else for this
// host: what it writes does not depend on who runs it.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "compiler_core/runtime/kernel.h"
#include "tuner/bundle/bundle.h"
#include "tuner/bundle/c_signature.h"

namespace tuner {

class ConstantPacker {
 public:
  // `kernels` and `signatures`, one a kernel, outlive it.
  ConstantPacker(const std::vector<BundleKernel>& kernels, const std::vector<CSignature>& signatures)
      : kernels_(kernels), signatures_(signatures), packing_(kernels.size()) {}

  // `constants`: the bytes of each constant operand of the kernel, in their order, each as many as its
  // operand has. Returns what the kernel takes in place of each.
  Result<std::vector<AlignedBuffer>> pack(size_t kernel, const std::vector<std::string_view>& constants);

 private:
  Result<const Kernel*> packing_of(size_t kernel);

  const std::vector<BundleKernel>& kernels_;
  const std::vector<CSignature>& signatures_;
  std::vector<std::optional<Kernel>> packing_;  // one a kernel, loaded when it is needed
};

}  // namespace tuner
