// Learned by tests/bench/sass_learn: a snippet of known content is compiled with a few and with many copies
// of one construct, and the opcodes that grow with it are its. codegen_cuda_sass_opcodes_test repeats that.
#include "compiler_core/codegen_cuda/sass/opcodes.h"

#include <algorithm>

namespace tuner::sass {
namespace {

constexpr Opcode kOpcodes[] = {
    {0x002, "MOV", Op::kMove},
    {0x003, "P2R", Op::kPredicate},
    {0x005, "CS2R", Op::kMove},  // of two zeros mostly; also of clocks
    {0x006, "VOTE", Op::kOther},
    {0x007, "SEL", Op::kPredicate},
    {0x008, "FSEL", Op::kPredicate},
    {0x009, "FMNMX", Op::kFloat},
    {0x00b, "FSETP", Op::kPredicate},
    {0x00c, "ISETP", Op::kPredicate},
    {0x00f, "VIMNMX3", Op::kInteger},
    {0x010, "IADD3", Op::kInteger},
    {0x011, "LEA", Op::kInteger},
    {0x012, "LOP3", Op::kInteger},
    {0x013, "IABS", Op::kInteger},
    {0x016, "PRMT", Op::kInteger},
    {0x017, "IMNMX", Op::kInteger},
    {0x019, "SHF", Op::kInteger},
    {0x01a, "SGXT", Op::kInteger},
    {0x01b, "BMSK", Op::kInteger},
    {0x01c, "PLOP3", Op::kPredicate},
    {0x020, "FMUL", Op::kFloat},
    {0x021, "FADD", Op::kFloat},
    {0x023, "FFMA", Op::kFfma},
    {0x024, "IMAD", Op::kInteger},
    {0x025, "IMAD.WIDE", Op::kInteger},
    {0x026, "IDP", Op::kDot},
    {0x027, "IMAD.HI", Op::kInteger},
    {0x028, "DMUL", Op::kFloat},
    {0x029, "DADD", Op::kFloat},
    {0x02a, "DSETP", Op::kPredicate},
    {0x02b, "DFMA", Op::kFloat},
    {0x02f, "ELECT", Op::kOther},
    {0x030, "HADD2", Op::kFloat},
    {0x031, "HFMA2", Op::kFloat},
    {0x035, "HFMA2.MMA", Op::kFloat},
    {0x036, "VIADD", Op::kInteger},
    {0x037, "IMMA", Op::kMma},
    {0x03b, "LDSM", Op::kLdsm},
    {0x03c, "HMMA", Op::kMma},
    {0x03e, "F2FP", Op::kFloat},
    {0x045, "I2FP", Op::kFloat},
    {0x046, "VIADDMNMX", Op::kInteger},
    {0x048, "VIMNMX", Op::kInteger},
    {0x082, "UMOV", Op::kMove},
    {0x083, "UP2UR", Op::kPredicate},
    {0x086, "VOTEU", Op::kOther},
    {0x087, "USEL", Op::kPredicate},
    {0x08c, "UISETP", Op::kPredicate},
    {0x090, "UIADD3", Op::kInteger},
    {0x091, "ULEA", Op::kInteger},
    {0x092, "ULOP3", Op::kInteger},
    {0x096, "UPRMT", Op::kInteger},
    {0x097, "UIADD3.64", Op::kInteger},
    {0x099, "USHF", Op::kInteger},
    {0x09c, "UPLOP3", Op::kPredicate},
    {0x0a4, "UIMAD", Op::kInteger},
    {0x0a5, "UIMAD.WIDE", Op::kInteger},
    {0x0b9, "ULDC", Op::kConstant},
    {0x0bb, "ULDC.UR", Op::kConstant},
    {0x0bd, "UFLO", Op::kInteger},
    {0x0ca, "R2UR.90", Op::kMove},  // from sm_90 on; 0x1c2 before
    {0x100, "FLO", Op::kInteger},
    {0x101, "BREV", Op::kInteger},
    {0x102, "FCHK", Op::kPredicate},
    {0x105, "F2I", Op::kFloat},
    {0x106, "I2F", Op::kFloat},
    {0x107, "FRND", Op::kFloat},
    {0x108, "MUFU", Op::kFloat},
    {0x109, "POPC", Op::kInteger},
    {0x110, "F2F.64", Op::kFloat},
    {0x111, "F2I.64", Op::kFloat},
    {0x112, "I2F.64", Op::kFloat},
    {0x118, "NOP", Op::kNop},
    {0x119, "S2R", Op::kOther},
    {0x11a, "DEPBAR", Op::kOther},
    {0x11d, "BAR", Op::kBarrier},
    {0x141, "BSYNC", Op::kOther},
    {0x142, "BREAK", Op::kOther},
    {0x144, "CALL", Op::kBranch, Jump::kCall},
    {0x145, "BSSY", Op::kOther},
    {0x147, "BRA", Op::kBranch, Jump::kBranch},
    {0x148, "WARPSYNC", Op::kOther},
    {0x149, "BRX", Op::kBranch, Jump::kIndirect},
    {0x14d, "EXIT", Op::kBranch, Jump::kExit},
    {0x150, "RET", Op::kBranch, Jump::kReturn},
    {0x180, "LD", Op::kLdg32},
    {0x181, "LDG", Op::kLdg32},
    {0x182, "LDC", Op::kConstant},
    {0x183, "LDL", Op::kLocalLoad},
    {0x184, "LDS", Op::kLds32},
    {0x185, "ST", Op::kStg},
    {0x186, "STG", Op::kStg},
    {0x187, "STL", Op::kLocalStore},
    {0x188, "STS", Op::kSts32},
    {0x189, "SHFL", Op::kShuffle},
    {0x18e, "RED", Op::kOther},
    {0x18f, "CCTL", Op::kOther},
    {0x192, "MEMBAR", Op::kOther},
    {0x1a3, "ATOMG.F", Op::kOther},
    {0x1a6, "RED.F", Op::kOther},
    {0x1a7, "SYNCS", Op::kOther},  // of barriers that copies arrive at: arrivals, waits
    {0x1a8, "ATOMG", Op::kOther},
    {0x1ab, "ERRBAR", Op::kOther},
    {0x1ae, "LDGSTS", Op::kLdgsts},
    {0x1af, "LDGDEPBAR", Op::kOther},
    {0x1b2, "SYNCS.EXCH", Op::kOther},  // begins one
    {0x1b4, "UTMALDG", Op::kOther},     // fetches a box
    {0x1b9, "UTMACCTL", Op::kOther},    // of tensor maps: asks for one ahead
    {0x1c2, "R2UR", Op::kMove},
    {0x1c3, "S2UR", Op::kOther},
    {0x1c5, "WARPGROUP", Op::kOther},  // of wgmma: its fence, its wait
    {0x1c6, "FENCE", Op::kOther},      // of the asynchronous proxy
    {0x1f0, "HGMMA", Op::kMma},
};

}  // namespace

std::span<const Opcode> opcodes() { return kOpcodes; }

const Opcode* find_opcode(int opcode) {
  const int base = opcode & 0x1ff;
  const auto found = std::ranges::lower_bound(kOpcodes, base, {}, &Opcode::base);
  return found != std::end(kOpcodes) && found->base == base ? found : nullptr;
}

}  // namespace tuner::sass
