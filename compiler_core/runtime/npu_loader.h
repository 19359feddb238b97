// How a process of the host runs kernels of the NPU: on the simulator.
#pragma once

#include <string_view>

#include "compiler_core/runtime/kernel_loader.h"

namespace tuner {

// Manifest::kind of what npu_loader() loads: a file of kernel_file.h.
inline constexpr std::string_view kNpuKernel = "npu";

const KernelLoader& npu_loader();

}  // namespace tuner
