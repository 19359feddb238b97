// Machine: the numbers of one accelerator, parsed from and printed as a target's name. README.md describes
// it.
//
//   npu -array=16x16 -scratchpad=256KiB -banks=4 -dram_bytes=16 -latency=100
//
// name() leaves out what has its default, so that one machine has one spelling.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner::npu {

struct Machine {
  int64_t array_rows = 16, array_columns = 16;  // multiply-adds of one cycle, int8 into int32
  int64_t scratchpad_bytes = 256 << 10;
  int64_t banks = 4;                          // each is a contiguous part of the scratchpad
  int64_t bank_bytes = 16;                    // a word: what a bank moves per cycle
  int64_t accumulator_bytes = 64 << 10;       // rows of array_columns int32
  int64_t dram_bytes = 16;                    // what DRAM moves per cycle
  int64_t burst_bytes = 64;                   // what it moves at least
  int64_t latency = 100;                      // cycles from a request of DRAM to its first bytes
  int64_t lanes = 16;                         // of the vector unit
  int64_t queue = 8;                          // instructions that one queue holds, running ones among them
  static constexpr int64_t kVectorDepth = 4;  // cycles from the last step of the vector unit to its result
  static constexpr double kClockGhz = 1;      // what turns cycles into times

  int64_t words() const { return scratchpad_bytes / bank_bytes; }
  int64_t words_per_bank() const { return words() / banks; }
  int64_t accumulator_rows() const { return accumulator_bytes / (4 * array_columns); }
  // Words that hold one row of operands for the array: a value of each of its rows, or of each column.
  int64_t row_words() const { return (array_rows + bank_bytes - 1) / bank_bytes; }
  int64_t column_words() const { return (array_columns + bank_bytes - 1) / bank_bytes; }
  // Cycles from the entry of a row of operands to the last of its sums.
  int64_t array_depth() const { return array_rows + array_columns; }

  std::string name() const;
  bool operator==(const Machine&) const = default;
};

// Sets what one option of a name says: "-banks", "8". Bounds are check()'s.
Status set_option(std::string_view key, std::string_view value, Machine& machine);
// The options, as a name has them: "-array=", "-scratchpad=".
std::vector<std::string_view> machine_options();
// The numbers by the names of their members, for who keeps them elsewhere.
struct MachineNumber {
  std::string_view name;
  int64_t Machine::*number;
};
std::span<const MachineNumber> machine_numbers();
// Parses a name. The error names the option it stumbled on, what it found and what it expected.
Result<Machine> parse_machine(std::string_view name);
// OK when a machine of these numbers can be built: sizes divide each other and fit the instructions.
Status check(const Machine& machine);

}  // namespace tuner::npu
