// Random machines and programs for tests of the NPU. Equal seeds draw equal programs.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "compiler_core/npu/instruction.h"
#include "compiler_core/npu/machine.h"

namespace tuner::npu::testing {

using Random = std::mt19937_64;

// From low to high, both among them. Equal on all machines, as distributions of the standard library are not.
int64_t draw(Random& random, int64_t low, int64_t high);

// Any instruction that check() takes, its fields anywhere in their bits.
Instruction draw_instruction(Random& random);

// Small numbers of all kinds: a bank or eight, queues that hold one instruction, bursts of one step.
Machine draw_machine(Random& random);

// Bytes for DRAM. Tables of scales in it have floats that make sums neither 0 nor saturated.
std::vector<uint8_t> draw_dram(Random& random, const Machine& machine);

// A program that touches nothing outside and reads nothing unwritten, in the order of its instructions. It
// has no tokens.
Code draw_program(Random& random, const Machine& machine, uint64_t dram_bytes);

}  // namespace tuner::npu::testing
