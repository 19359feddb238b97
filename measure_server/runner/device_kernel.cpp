#include "measure_server/runner/device_kernel.h"

namespace tuner {

using cuda::CallStatus;

CallStatus DeviceKernel::load(const Artifact& artifact, DeviceKernel& out) {
  const Manifest& m = artifact.manifest;
  CallStatus status = cuda::DeviceModule::load(artifact.binary, out.module_);
  const auto add = [&](std::vector<Launch>& launches, const LaunchInfo& info, std::vector<int> operands) {
    if (!status) return;
    Launch& launch = launches.emplace_back(Launch{.info = info, .operands = std::move(operands)});
    status = out.module_.function(info.kernel, info.shared_bytes, launch.function);
  };
  for (const LaunchInfo& info : m.launches) add(out.launches_, info, info.params);
  for (const LaunchInfo& info : m.pack_launches) {
    std::vector<int> operands;
    for (const int place : info.params) operands.push_back(DeviceOperands::packing_operand(m, place));
    add(out.pack_launches_, info, std::move(operands));
  }
  return status;
}

void DeviceKernel::bind(const DeviceOperands& operands) {
  for (std::vector<Launch>* launches : {&launches_, &pack_launches_})
    for (Launch& launch : *launches) {
      launch.addresses.assign(operands.sets(), {});
      launch.params.assign(operands.sets(), {});
      for (int set = 0; set < operands.sets(); ++set) {
        for (const int operand : launch.operands)
          launch.addresses[set].push_back(operands.address(set, operand));
        for (cuda::DevicePtr& a : launch.addresses[set]) launch.params[set].push_back(&a);
      }
    }
}

CallStatus DeviceKernel::call(int set, const cuda::DeviceStream& stream) {
  return queue(launches_, set, stream);
}

CallStatus DeviceKernel::pack(int set, const cuda::DeviceStream& stream) {
  return queue(pack_launches_, set, stream);
}

CallStatus DeviceKernel::queue(std::vector<Launch>& launches, int set, const cuda::DeviceStream& stream) {
  for (Launch& launch : launches)
    if (const CallStatus status =
            cuda::launch(launch.function, launch.info, launch.params[set].data(), stream);
        !status)
      return status;
  return {};
}

}  // namespace tuner
