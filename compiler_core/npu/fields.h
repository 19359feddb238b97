// The table of instructions: the fields of each operation, in the order of their bits. Encoder, decoder,
// text and the tests' drawing of instructions read it, so that a field is described once.
#pragma once

#include <span>
#include <string_view>

#include "compiler_core/npu/instruction.h"

namespace tuner::npu {

// Of its three members one is set: it says which kind of number the field is.
struct Field {
  std::string_view name;
  int width = 0;       // bits
  uint32_t least = 0;  // of a plain number
  uint32_t most = 0;   // of a plain number; 0: what the bits hold
  uint32_t Instruction::*number = nullptr;
  int32_t Instruction::*int8 = nullptr;  // two's complement
  float Instruction::*real = nullptr;    // IEEE single, finite

  // The field's bits in an instruction, and back. `raw` has no bits beyond the width.
  uint64_t raw(const Instruction& i) const;
  void set_raw(Instruction& i, uint64_t raw) const;
  uint64_t highest() const { return (uint64_t{1} << width) - 1; }
};

struct OpRow {
  std::string_view name;
  std::span<const Field> fields;
  // The flags that it takes.
  bool accumulates = false, swaps = false, fills = false, may_be_unsigned = false;
};

// Never asked for Op::kNone.
const OpRow& row_of(Op op);
std::string_view name_of(Queue queue);

inline constexpr uint32_t kMostScaleBlocks = 8;  // what the scale registers of a queue hold

}  // namespace tuner::npu
