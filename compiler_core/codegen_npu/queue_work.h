// What each unit has to do for a program at least: the roofline of array, vector unit, DRAM and banks.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "compiler_core/npu/instruction.h"
#include "compiler_core/npu/machine.h"

namespace tuner {

// In cycles, if nothing ever waited.
struct QueueWork {
  int64_t array = 0, vector = 0;
  int64_t load = 0, store = 0;  // steps of the queues
  int64_t dram = 0;             // of the bus: bursts of loads and stores
  int64_t bank = 0;             // words of the bank that has most of them

  // No run takes fewer cycles.
  int64_t least_cycles() const;
  // "array", "vector unit", "DRAM", "banks": what that is because of.
  std::string_view bound() const;
};

QueueWork queue_work(const npu::Machine& machine, const npu::Code& code);

}  // namespace tuner
