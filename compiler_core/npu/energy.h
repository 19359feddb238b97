// Energy of a run by a table of costs per access.
#pragma once

#include "compiler_core/npu/simulator.h"

namespace tuner::npu {

// Picojoules. After M. Horowitz, "Computing's energy problem", ISSCC 2014: a process of 45 nm, rounded.
struct EnergyCosts {
  double mac = 0.3;             // int8 product and int32 sum
  double vector_value = 0.5;    // of one lane
  double scratchpad_byte = 3;   // of a bank of 64 KiB
  double accumulator_byte = 3;  // of 64 KiB
  double dram_byte = 160;       // with its interface
  double instruction = 50;      // fetched and decoded
};

inline double energy_nj(const Simulated& run, const Machine& m, const EnergyCosts& cost = {}) {
  int64_t instructions = 0;
  for (const QueueCounts& queue : run.queues) instructions += queue.instructions;
  const auto total = [](int64_t count, double each) { return static_cast<double>(count) * each; };
  return (total(run.macs, cost.mac) + total(run.accesses.vector_values, cost.vector_value) +
          total(run.accesses.scratchpad_words * m.bank_bytes, cost.scratchpad_byte) +
          total(run.accesses.accumulator_rows * 4 * m.array_columns, cost.accumulator_byte) +
          total(run.accesses.dram_bytes, cost.dram_byte) + total(instructions, cost.instruction)) /
         1000;
}

}  // namespace tuner::npu
