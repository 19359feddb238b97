#include "measure_server/runner/device_kernel.h"

namespace tuner {

using cuda::CallStatus;

CallStatus DeviceKernel::load(const Artifact& artifact, DeviceKernel& out) {
  CallStatus status = cuda::DeviceModule::load(artifact.binary, out.module_);
  for (const LaunchInfo& info : artifact.manifest.launches) {
    if (!status) break;
    Launch& launch = out.launches_.emplace_back(Launch{.info = info});
    status = out.module_.function(info.kernel, info.shared_bytes, launch.function);
  }
  return status;
}

void DeviceKernel::bind(const DeviceOperands& operands) {
  for (Launch& launch : launches_) {
    launch.addresses.assign(operands.sets(), {});
    launch.params.assign(operands.sets(), {});
    for (int set = 0; set < operands.sets(); ++set) {
      for (const int p : launch.info.params) launch.addresses[set].push_back(operands.address(set, p));
      for (cuda::DevicePtr& a : launch.addresses[set]) launch.params[set].push_back(&a);
    }
  }
}

CallStatus DeviceKernel::call(int set, const cuda::DeviceStream& stream) {
  for (Launch& launch : launches_)
    if (const CallStatus status =
            cuda::launch(launch.function, launch.info, launch.params[set].data(), stream);
        !status)
      return status;
  return {};
}

}  // namespace tuner
