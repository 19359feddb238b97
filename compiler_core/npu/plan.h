// Plan: everything that one instruction touches, and in which steps of its unit. The rules are README.md's.
//
// A step takes one cycle, more if banks that it needs are taken, or while DRAM's bus is with another queue.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler_core/npu/instruction.h"
#include "compiler_core/npu/machine.h"

namespace tuner::npu {

// What set_load and set_store set.
struct Strides {
  uint32_t dram = 0, local = 0;
};

struct Plan {
  // Steps of a burst hold the bus from the first to the last.
  static constexpr uint8_t kBus = 1, kFirst = 2, kLast = 4;
  struct Step {
    uint32_t words_end;  // its words are those from the end of the step before
    uint8_t bus;
  };
  struct SumRows {
    uint32_t begin, count;
    bool read, write;
  };
  struct DramRow {
    uint64_t begin;
    uint32_t bytes;
    bool write;
  };

  std::vector<uint32_t> words;  // of the scratchpad: number * 2, + 1 where it is written
  std::vector<Step> steps;
  // Steps from here on are a second stream, which runs beside the first: the weights that matmul fills.
  uint32_t second_stream = 0;
  std::vector<SumRows> sums;
  std::vector<DramRow> dram;

  void clear();
  static uint32_t word(uint32_t entry) { return entry >> 1; }
  static bool writes(uint32_t entry) { return (entry & 1) != 0; }
};

// Replaces the plan. Addresses may lie outside the machine's memories: whoever runs it checks.
void make_plan(const Machine& machine, const Instruction& instruction, const Strides& strides, Plan& plan);

}  // namespace tuner::npu
