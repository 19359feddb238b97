#include "measure_server/runner/device_kernel.h"

namespace tuner {

using cuda::CallStatus;

CallStatus DeviceKernel::load(const Artifact& artifact, DeviceKernel& out) {
  const Manifest& m = artifact.manifest;
  CallStatus status = cuda::DeviceModule::load(artifact.binary, out.module_);
  // `operand_of` a place in LaunchInfo::params.
  const auto add = [&](std::vector<Launch>& launches, const LaunchInfo& info, const auto& operand_of) {
    if (!status) return;
    Launch& launch = launches.emplace_back(Launch{.info = info});
    for (const int place : info.params) launch.operands.push_back(operand_of(place));
    for (const LaunchTensorMap& map : info.tensor_maps)
      launch.map_operands.push_back(operand_of(map.operand));
    status = out.module_.function(info.kernel, info.shared_bytes, launch.function);
  };
  for (const LaunchInfo& info : m.launches) add(out.launches_, info, [](int place) { return place; });
  for (const LaunchInfo& info : m.pack_launches)
    add(out.pack_launches_, info, [&](int place) { return DeviceOperands::packing_operand(m, place); });
  return status;
}

CallStatus DeviceKernel::bind(Launch& launch, const DeviceOperands& operands) {
  const auto sets = static_cast<size_t>(operands.sets());
  launch.addresses.assign(sets, {});
  launch.maps.assign(sets, std::vector<cuda::TensorMapBytes>(launch.map_operands.size()));
  launch.params.assign(sets, {});
  for (size_t set = 0; set < sets; ++set) {
    const auto address = [&](int operand) { return operands.address(static_cast<int>(set), operand); };
    for (const int operand : launch.operands) launch.addresses[set].push_back(address(operand));
    // The driver only reads what it is pointed to.
    launch.info.for_each_parameter([&](int pointer, const LaunchScalar* scalar) {
      launch.params[set].push_back(
          scalar != nullptr ? const_cast<char*>(scalar->bytes.data())
                            : static_cast<void*>(&launch.addresses[set][static_cast<size_t>(pointer)]));
    });
    for (size_t i = 0; i < launch.map_operands.size(); ++i) {
      cuda::TensorMapBytes& encoded = launch.maps[set][i];
      const CallStatus status =
          cuda::encode(launch.info.tensor_maps[i].map, address(launch.map_operands[i]), encoded);
      if (!status) return status;
      launch.params[set].push_back(&encoded);
    }
  }
  return {};
}

CallStatus DeviceKernel::bind(const DeviceOperands& operands) {
  for (std::vector<Launch>* launches : {&launches_, &pack_launches_})
    for (Launch& launch : *launches)
      if (const CallStatus status = bind(launch, operands); !status) return status;
  return {};
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
