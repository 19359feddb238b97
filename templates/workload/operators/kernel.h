#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "compiler_core/base/dtype.h"

namespace tuner {

template <class W>
class OperatorFacts;
struct SourceKernel;

// A function that its user wrote, with its arguments, or a program of his, of which nothing is checked
// (templates/source_kernel). Its key names function,
// sizes, types and the digest of the whole; the whole is found by it (known_kernels.h):
//   stencil height=30 width=40 in=float32[32,42] out=out:float32[30,40] n=int32:20 source=5f3a...
//   prog height=30 not_checked_by_us source=5f3a...
struct KernelWorkload {
  static constexpr std::string_view kOp = "kernel";
  static constexpr bool kMemoryBound = false;
  static constexpr bool kKeyIsText = true;
  static const OperatorFacts<KernelWorkload>& facts();
  std::string text;
  std::shared_ptr<const SourceKernel> kernel;
  DType dtype = DType::kFloat32;  // of the first output; of a program float32
};

// The kernel as a workload; it is known from then on.
KernelWorkload kernel_workload(std::shared_ptr<const SourceKernel> kernel);

}  // namespace tuner
