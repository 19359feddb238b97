// A second model of the NPU, event by event: slow, and written from compiler_core/npu/README.md alone. It
// shares the decoded instructions and the machine's numbers with the simulator, and nothing else.
//
// Bytes move step by step when their step is done, not when an instruction starts. Whether tokens order
// what they must is found afterwards, from all pairs of accesses and the transitive closure of all orders.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler_core/npu/instruction.h"
#include "compiler_core/npu/machine.h"

namespace tuner::npu::testing {

struct Modelled {
  int64_t cycles = 0;                 // of the last end
  std::vector<int64_t> starts, ends;  // by instruction; -1: never
  int64_t steps[kQueues] = {}, bank_stalls[kQueues] = {}, bus_waits[kQueues] = {};
  bool stands_still = false, unused_token = false, unordered = false;
  std::vector<int8_t> scratchpad;
  std::vector<int32_t> sums;
};

// Requires accesses that lie inside. `dram` is read and written.
Modelled model(const Machine& machine, const Code& code, std::vector<uint8_t>& dram);

}  // namespace tuner::npu::testing
