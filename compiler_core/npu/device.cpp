#include "compiler_core/npu/device.h"

#include <algorithm>
#include <cstring>

namespace tuner::npu {

Result<Device> Device::load(std::string_view bytes) {
  ASSIGN_OR_RETURN(KernelFile kernel, read_kernel(bytes));
  ASSIGN_OR_RETURN(const Machine machine, parse_machine(kernel.machine));
  return Device(machine, std::move(kernel));
}

void Device::patch(void* const* args) {
  for (const KernelPatch& p : kernel_.patches) {
    Instruction& i = kernel_.code[p.instruction];
    const auto byte = *static_cast<const uint8_t*>(args[p.operand]);
    const int32_t number = i.is_unsigned ? int32_t{byte} : int32_t{0} + static_cast<int8_t>(byte);
    const int32_t least = i.is_unsigned ? 0 : -128;
    int32_t& field = p.field == KernelPatch::Field::kZero  ? i.zero
                     : p.field == KernelPatch::Field::kLow ? i.low
                                                           : i.high;
    field = std::clamp(number + p.add, least, least + 255);
  }
}

Simulated Device::run(void* const* args, std::vector<Span>* timeline) {
  dram_.assign(kernel_.dram_bytes, 0);
  std::copy(kernel_.constants.begin(), kernel_.constants.end(),
            dram_.begin() + static_cast<std::ptrdiff_t>(kernel_.constants_at));
  for (size_t n = 0; n < kernel_.operands.size(); ++n)
    if (const KernelOperand& o = kernel_.operands[n]; o.is_input && o.bytes > 0)
      std::memcpy(&dram_[o.dram], args[n], o.bytes);
  patch(args);
  Simulated result = simulate(machine_, kernel_.code, dram_, timeline);
  if (result.fault) return result;
  for (size_t n = 0; n < kernel_.operands.size(); ++n)
    if (const KernelOperand& o = kernel_.operands[n]; o.is_output && o.bytes > 0)
      std::memcpy(args[n], &dram_[o.dram], o.bytes);
  return result;
}

}  // namespace tuner::npu
