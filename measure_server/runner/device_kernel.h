// The launches of one artifact on a device: its cubin loaded, its parameters bound to operands, one call
// after the other queued at the cost of the driver's time only.
#pragma once

#include <vector>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/runtime/cuda_objects.h"
#include "measure_server/runner/device_operands.h"

namespace tuner {

class DeviceKernel {
 public:
  DeviceKernel() = default;
  DeviceKernel(DeviceKernel&&) = default;  // what the driver points to lies on the heap and stays
  DeviceKernel& operator=(DeviceKernel&&) = default;

  // Refused by the driver when the cubin is not for this device or is none.
  static cuda::CallStatus load(const Artifact& artifact, DeviceKernel& out);
  // To every set of `operands`, which outlives the calls.
  void bind(const DeviceOperands& operands);
  // Queues all launches of one call on one set of operands. A set that is not bound is our bug.
  cuda::CallStatus call(int set, const cuda::DeviceStream& stream);

 private:
  struct Launch {
    LaunchInfo info;
    cuda::Function function = nullptr;
    std::vector<std::vector<cuda::DevicePtr>> addresses;  // by set
    std::vector<std::vector<void*>> params;               // by set: where each address stands
  };
  cuda::DeviceModule module_;
  std::vector<Launch> launches_;
};

}  // namespace tuner
