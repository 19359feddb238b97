// Machine code of NVIDIA GPUs, sm_80 to sm_90a: what the compiler made of a kernel, without the vendor's
// disassembler.
//
//   read_kernel_code(cubin)   the instructions of each kernel, their loops, what they are made of
//   Copy                      loads from global memory that belong together, and which of them wait for each
//                             other
//   ../issue_floor.h          a lower bound of the kernel's time, from the instructions it must issue
//   sass_text.h               all of it for people
//
// An instruction is 16 bytes. Only what is needed is decoded: opcode, guard, the registers of moves, the
// target of a branch, the width of an access, and the control bits (stall, scoreboards). Opcodes are in a
// table (opcodes.cpp) that was learned from snippets whose content is known and is tested on them; one that
// is not there counts as Op::kUnknown and is named by its number. When more than 1 % of a kernel are unknown
// there is no verdict on it.
//
// Addresses are bytes from the kernel's first instruction. Counts are of instructions as they stand in the
// code, not of how often they run. Any bytes may be given: damaged ones are errors or unknown instructions,
// never a crash. Everything may be called from any thread; a kernel of 2,000 instructions takes some 0.1 ms.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner::sass {

// What an instruction is to the one who counts. Accesses are told apart by what a lane moves: 32 bits (or
// less), 64, 128.
enum class Op : uint8_t {
  kFfma,       // float32 multiply-add
  kFloat,      // other floating-point arithmetic, conversions, special functions
  kInteger,    // integers and addresses, on uniform registers too
  kMove,       // registers and constants: MOV, and IMAD and HFMA2 that do nothing else
  kPredicate,  // what computes a predicate, or chooses by one
  kLds32,
  kLds64,
  kLds128,  // loads from shared memory
  kSts32,
  kSts64,
  kSts128,  // stores to it
  kLdg32,
  kLdg64,
  kLdg128,  // loads from global memory
  kStg,
  kLdgsts,  // a copy from global to shared memory that needs no register
  kLocalLoad,
  kLocalStore,  // spills, and arrays that are indexed
  kConstant,    // loads of kernel arguments and constants
  kBarrier,     // of the block
  kBranch,      // jumps, calls, returns, exits
  kShuffle,
  kMma,    // products of tiles on tensor cores
  kDot,    // products of four bytes, added up: dp4a
  kLdsm,   // four matrices of 8 x 8 out of shared memory
  kOther,  // special registers, convergence, waits, atomics...
  kNop,    // after the last instruction, to fill the section
  kUnknown,
};
inline constexpr size_t kOps = static_cast<size_t>(Op::kUnknown) + 1;
// "FFMA", "LDS.128", "integer"...
std::string_view op_name(Op op);

// How an instruction goes on from here.
enum class Jump : uint8_t { kNone, kBranch, kCall, kReturn, kExit, kIndirect };

struct Instruction {
  uint64_t low = 0, high = 0;
  Op op = Op::kUnknown;
  Jump jump = Jump::kNone;
  bool always = true;         // not under a predicate
  int32_t target = -1;        // index of the instruction it jumps to; -1: none, or outside of the kernel
  uint8_t stall = 0;          // clocks until the warp's next instruction
  int write_scoreboard = -1;  // 0..5: released when its result is there; -1: none
  int read_scoreboard = -1;   // 0..5: released when its operands have been read
  uint8_t waits = 0;          // bit i: issues only when scoreboard i is free

  // 12 bits; the upper three say where operands come from (register, constant, immediate, uniform).
  int opcode() const { return static_cast<int>(low & 0xfff); }
};

struct Mix {
  std::array<int, kOps> counts{};
  int operator[](Op op) const { return counts[static_cast<size_t>(op)]; }
  int& operator[](Op op) { return counts[static_cast<size_t>(op)]; }
  // All but fillers.
  int all() const;
  int shared_loads() const { return (*this)[Op::kLds32] + (*this)[Op::kLds64] + (*this)[Op::kLds128]; }
  int shared_stores() const { return (*this)[Op::kSts32] + (*this)[Op::kSts64] + (*this)[Op::kSts128]; }
  int global_loads() const { return (*this)[Op::kLdg32] + (*this)[Op::kLdg64] + (*this)[Op::kLdg128]; }
  // FFMA among all, 0 to 1.
  double ffma_share() const;
  double ffma_a_shared_load() const;  // 0 when there are no shared loads
  double dot_share() const;
  double dot_a_shared_load() const;
  double mma_share() const;
  double mma_a_load() const;  // products of tiles an LDSM; 0 when there are none
};

// A straight piece of code: instructions [begin, end).
struct Block {
  int begin = 0, end = 0;
  std::vector<int> next;  // blocks
  // No branch leads around it: every iteration of its innermost loop passes it; outside of loops, every
  // thread.
  bool sure = false;
};

// A natural loop: one way in.
struct Loop {
  int parent = -1;          // the loop around it; -1: none
  int depth = 1;            // 1: no loop around
  std::vector<int> blocks;  // of it and of loops inside, in order of their addresses
  int begin = 0, end = 0;   // instructions, from its first block to its last
  Mix mix;                  // of all its blocks
  Mix own;                  // without loops inside
};

// Loads from global memory that belong together: those of one loop (or of none) up to the last store to
// shared memory before a barrier. A load is serial if the warp waits for it before the next one of the copy
// issues; in a loop without a barrier the next one of the last is the first.
struct Copy {
  int loop = -1;           // its loop; -1: none
  int begin = 0, end = 0;  // instructions, from the first load to the last load or store to shared memory
  int loads = 0, serial = 0;
  int shared_stores = 0;  // 0: it goes to registers only
  // Between its loads or between its stores, but those of loops inside. A branch around all its stores is
  // none of them.
  int branches = 0;
};

struct KernelCode {
  std::string name;
  int sm = 0;  // 80, 90...
  std::vector<Instruction> instructions;
  std::vector<Block> blocks;
  std::vector<Loop> loops;   // by the address they begin at, outer ones first
  std::vector<int> loop_of;  // of each instruction the innermost loop; -1: none
  std::vector<Copy> copies;  // by address
  Mix mix;                   // of the whole kernel
  bool indirect = false;     // a jump to an address in a register: there are more ways than the blocks know
  std::vector<int> unknown;  // opcodes that are not in the table, each once
  int hot = -1;  // the loop with most HMMA of its own, else most FFMA, else most loads; -1: no loop

  // OK, or why no verdict may be given: more than 1 % of the instructions are unknown.
  Status verdict() const;
  // The hot loop's own instructions; the whole kernel's when there is none.
  const Mix& hot_mix() const;
};

// One instruction, at index `at` of a kernel for this architecture.
Instruction decode(uint64_t low, uint64_t high, int at, int sm);

// The code of a kernel from its bytes. InvalidArgument when they are no whole instructions, or too many:
// 2^20.
Result<KernelCode> read_code(std::string name, std::string_view bytes, int sm);

// All kernels of a cubin, by name. InvalidArgument as of read_cubin; also for architectures whose
// instructions differ (before sm_70).
Result<std::vector<KernelCode>> read_kernel_code(std::string_view cubin);

}  // namespace tuner::sass
