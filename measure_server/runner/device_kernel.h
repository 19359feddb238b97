// The launches of one artifact on a device: loads its cubin, binds its parameters to operands, and queues
// calls at no more cost than the driver's own time.
#pragma once

#include <vector>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/runtime/cuda_objects.h"
#include "measure_server/runner/device_operands.h"

namespace tuner {

class DeviceKernel {
 public:
  DeviceKernel() = default;
  DeviceKernel(DeviceKernel&&) = default;  // what the driver points to is on the heap and does not move
  DeviceKernel& operator=(DeviceKernel&&) = default;

  // Fails if the driver refuses the cubin: it is not for this device, or not a cubin.
  static cuda::CallStatus load(const Artifact& artifact, DeviceKernel& out);
  // Binds the launches to every set of `operands`, which must outlive the calls, and has the driver encode
  // their tensor maps, once for each set. Fails if it does not take one.
  cuda::CallStatus bind(const DeviceOperands& operands);
  // Queues what packs the constants of one set: once, after they were filled and before the first call.
  cuda::CallStatus pack(int set, const cuda::DeviceStream& stream);
  // Queues all launches of one call on one set of operands. The set must have been bound.
  cuda::CallStatus call(int set, const cuda::DeviceStream& stream);

 private:
  struct Launch {
    LaunchInfo info;
    std::vector<int> operands;      // by pointer parameter
    std::vector<int> map_operands;  // by tensor map
    cuda::Function function = nullptr;
    std::vector<std::vector<cuda::DevicePtr>> addresses;  // per set
    std::vector<std::vector<cuda::TensorMapBytes>> maps;  // per set
    std::vector<std::vector<void*>> params;               // per set: pointers to the addresses and maps
  };
  static cuda::CallStatus bind(Launch& launch, const DeviceOperands& operands);
  static cuda::CallStatus queue(std::vector<Launch>& launches, int set, const cuda::DeviceStream& stream);

  cuda::DeviceModule module_;
  std::vector<Launch> launches_, pack_launches_;
};

}  // namespace tuner
