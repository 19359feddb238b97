// One instruction: 128 bits.
//
//   bits   0 ..  11   opcode, of which 9 .. 11 say where the operands come from
//         12 ..  15   guard: predicate 0 .. 6, 7 for always; bit 15 negates
//         16 ..  23   register that is written
//         24 ..  31   first operand, a register
//         32 ..  63   second operand: a register (32 .. 39), an immediate, a constant; offset of a jump
//         64 ..  71   third operand, a register (the second one where 32 .. 63 holds the third)
//         73 ..  75   of an access: its width
//         87 ..  90   of a jump: a second predicate
//        105 .. 108   stall: clocks until the warp goes on; 109 yield
//        110 .. 112   scoreboard released when the result is there, 113 .. 115 when the operands are read; 7:
//                     none
//        116 .. 121   scoreboards to wait for, a bit each; 122 .. 125 registers to keep for the next
//                     instruction
#include "compiler_core/codegen_cuda/sass/opcodes.h"

namespace tuner::sass {
namespace {

constexpr uint64_t kZeroRegister = 255, kAlways = 7;
constexpr int kBra = 0x947;
// Where an immediate, a constant or a uniform register is the third operand, the second one's register is
// behind it.
constexpr bool third_is_behind(int form) { return form == 2 || form == 3 || form == 7; }

uint64_t bits(uint64_t word, int first, int count) { return word >> first & ((uint64_t{1} << count) - 1); }

// True if the product is of zero registers: only the third operand remains.
bool adds_nothing(const Instruction& i) {
  const int form = i.opcode() >> 9;
  const uint64_t second = third_is_behind(form) ? bits(i.high, 0, 8) : form == 1 ? bits(i.low, 32, 8) : 0;
  return bits(i.low, 24, 8) == kZeroRegister && second == kZeroRegister;
}

Op with_width(Op of_32_bits, uint64_t high) {
  const uint64_t width = bits(high, 9, 3);  // 4: 32 bits, 5: 64, 6: 128; less for bytes and halves
  const int steps = width == 5 ? 1 : width == 6 ? 2 : 0;
  return static_cast<Op>(static_cast<int>(of_32_bits) + steps);
}

// Bytes from the next instruction, a multiple of four: 48 bits with a sign from bit 34 on; from sm_90 on
// there are eight more below, in the place of the written register.
int64_t jump_offset(const Instruction& i, int sm) {
  const uint64_t field = i.low >> 34 | bits(i.high, 0, 18) << 30;
  const int64_t upper = static_cast<int64_t>(field << 16) >> 16;
  return sm < 90 ? upper * 4 : (upper * 256 + static_cast<int64_t>(bits(i.low, 16, 8))) * 4;
}

int scoreboard(uint64_t number) { return number < 6 ? static_cast<int>(number) : -1; }

Op op_of(const Instruction& i, const Opcode& opcode) {
  switch (opcode.op) {
    case Op::kLds32:
    case Op::kSts32:
    case Op::kLdg32:
      return with_width(opcode.op, i.high);
    default:
      break;
  }
  const bool may_be_move = opcode.name == "IMAD" || opcode.name == "HFMA2" || opcode.name == "HFMA2.MMA";
  return may_be_move && adds_nothing(i) ? Op::kMove : opcode.op;
}

}  // namespace

Instruction decode(uint64_t low, uint64_t high, int at, int sm) {
  Instruction i{.low = low, .high = high};
  i.always = bits(low, 12, 4) == kAlways;
  i.stall = static_cast<uint8_t>(bits(high, 41, 4));
  i.write_scoreboard = scoreboard(bits(high, 46, 3));
  i.read_scoreboard = scoreboard(bits(high, 49, 3));
  i.waits = static_cast<uint8_t>(bits(high, 52, 6));
  const Opcode* opcode = find_opcode(i.opcode());
  if (opcode == nullptr) return i;
  i.op = op_of(i, *opcode);
  i.jump = opcode->jump;
  if (i.jump == Jump::kNone) return i;
  // A form that jumps by a uniform predicate keeps it elsewhere.
  if (bits(high, 23, 4) != kAlways || (i.jump == Jump::kBranch && i.opcode() != kBra)) i.always = false;
  if (i.jump != Jump::kBranch && i.jump != Jump::kCall) return i;
  constexpr int64_t kBytes = 16, kFar = int64_t{1} << 30;
  const int64_t offset = jump_offset(i, sm);
  if (offset % kBytes != 0 || offset > kFar || offset < -kFar) return i;
  const int64_t target = at + 1 + offset / kBytes;
  if (target >= 0 && target <= INT32_MAX) i.target = static_cast<int32_t>(target);
  return i;
}

std::string_view op_name(Op op) {
  static constexpr std::array<std::string_view, kOps> kNames = {
      "FFMA",    "other float", "integer", "move",    "predicate", "LDS.32", "LDS.64",
      "LDS.128", "STS.32",      "STS.64",  "STS.128", "LDG.32",    "LDG.64", "LDG.128",
      "STG",     "LDGSTS",      "LDL",     "STL",     "constant",  "BAR",    "branch",
      "SHFL",    "HMMA",        "IDP",     "LDSM",    "other",     "NOP",    "unknown"};
  return kNames[static_cast<size_t>(op)];
}

}  // namespace tuner::sass
