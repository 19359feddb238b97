// Words of 128 bits, and files of them. README.md lists the bits.
//
// encode() and decode() are each other's inverse: a word that decodes is the only one of its instruction.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "compiler_core/base/status.h"
#include "compiler_core/npu/instruction.h"

namespace tuner::npu {

// Bits 0..63, then 64..127. In files each is little-endian.
using Word128 = std::array<uint64_t, 2>;

// OK when encode() takes it: a known operation, fields within their bits and bounds, the rest 0.
Status check(const Instruction& instruction);
// Requires check().
Word128 encode(const Instruction& instruction);
// Every word either decodes or gives one line that names the bits and what was expected.
Result<Instruction> decode(const Word128& word);

// A file: "NPUCODE\n", the version, the machine's name, the words, and a checksum of all before it.
struct Binary {
  std::string machine;  // Machine::name()
  Code code;
};
inline constexpr uint32_t kBinaryVersion = 1;
// Requires check() of each instruction.
std::string write_binary(const Binary& binary);
// Reads what write_binary() wrote. Any other bytes give one line, with the instruction's index where a word
// is none.
Result<Binary> read_binary(std::string_view bytes);

}  // namespace tuner::npu
