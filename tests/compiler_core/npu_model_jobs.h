// Of the second model: what an instruction does, as a list of steps with the words they need and what they
// do.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler_core/npu/instruction.h"
#include "compiler_core/npu/machine.h"

namespace tuner::npu::testing {

struct ModelStep {
  std::vector<int64_t> words;
  std::function<void()> effect = [] {};
  bool on_bus = false, opens_burst = false, closes_burst = false;
};

struct ModelState {
  std::vector<int8_t> scratchpad;
  std::vector<int32_t> sums;
  std::vector<uint8_t>* dram = nullptr;
  Instruction load_registers, store_registers, vector_registers;
  std::vector<int8_t> weights, next_weights;  // [row][column]
  struct Scales {
    std::vector<int32_t> bias;
    std::vector<float> scale;
    Instruction registers;
  } drain_scales, store_scales;
};

// (memory, cell): 0 scratchpad words, 1 rows of accumulators, 2 bursts of DRAM.
using ModelCell = std::pair<int, int64_t>;

struct ModelJob {
  std::deque<ModelStep> streams[2];
  std::map<ModelCell, bool> touched;  // true where it is written; read and written counts as written
};

// Reads and sets registers as the instruction's start does.
ModelJob model_job(const Machine& machine, const Instruction& instruction, ModelState& state);

}  // namespace tuner::npu::testing
