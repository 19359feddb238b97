// The text of instructions: what the disassembler writes, the assembler reads.
//
//   load dram=4096 target=0 rows=16 bytes=64 gives=compute
//
// One instruction per line: the operation, then each field that is not 0, then flags, waits and gives.
#pragma once

#include <string>
#include <string_view>

#include "compiler_core/base/status.h"
#include "compiler_core/npu/instruction.h"

namespace tuner::npu {

std::string text_of(const Instruction& instruction);
// One line per instruction.
std::string text_of(const Code& code);
// Empty lines and what follows '#' are skipped. The error names the line, and what was found and expected.
Result<Code> parse_code(std::string_view text);

}  // namespace tuner::npu
