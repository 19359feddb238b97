// The table of opcodes. Internal to sass and its tests.
#pragma once

#include <span>
#include <string_view>

#include "compiler_core/codegen_cuda/sass/sass.h"

namespace tuner::sass {

// An instruction without the form of its operands.
struct Opcode {
  int base = 0;  // the lower nine bits
  std::string_view name;
  Op op = Op::kOther;  // of accesses that of 32 bits: the instruction tells the width
  Jump jump = Jump::kNone;
};

// Sorted by base.
std::span<const Opcode> opcodes();
// Null when it is not in the table.
const Opcode* find_opcode(int opcode);

}  // namespace tuner::sass
