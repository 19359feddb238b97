// A pulse of a GPU: a kernel of ours that only computes, on every multiprocessor, always as much. It takes
// longer when the clock is lower or somebody else has the device for a moment. It touches no memory, so
// operands stay in the caches. Its text is PTX, which any driver compiles: a host that runs candidates need
// not have a compiler.
#pragma once

#include <vector>

#include "compiler_core/runtime/cuda_objects.h"

namespace tuner {

inline constexpr char kDevicePulseKernel[] = "tuner_pulse";

class DevicePulse {
 public:
  // A driver that takes no PTX is no error: there() is false then.
  static cuda::CallStatus load(const CudaDevice& device, DevicePulse& out);
  bool there() const { return function_ != nullptr; }
  // Queues one. It must be there.
  cuda::CallStatus queue(const cuda::DeviceStream& stream);

 private:
  cuda::DeviceModule module_;
  cuda::Function function_ = nullptr;
  cuda::DeviceMemory out_;
  LaunchInfo launch_;
};

}  // namespace tuner
