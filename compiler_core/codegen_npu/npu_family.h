// Targets of the NPU: "npu -array=16x16 -banks=8".
#pragma once

#include "compiler_core/npu/machine.h"
#include "compiler_core/target.h"

namespace tuner {

const TargetFamily& npu_family();

inline bool is_npu(const Target& target) { return target.family == &npu_family(); }
// Requires is_npu().
npu::Machine machine_of(const Target& target);

}  // namespace tuner
