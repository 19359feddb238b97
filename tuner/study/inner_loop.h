// Counts what a kernel's innermost loop consists of, in its assembly: multiply-adds, loads, stores, spills.
// Reads x86-64 (AT&T) and AArch64 as LLVM prints them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tuner {

struct InnerLoop {
  std::string label;          // ".LBB1_5"; empty: no loop was found
  int instructions = 0;       // instructions of one iteration
  int multiply_adds = 0;      // vector ones: fused, or dot products; if there are none, multiplications
  int loads = 0, stores = 0;  // operands read from or written to memory; the folded operand of an FMA counts
  int spills = 0;             // how many of these are on the stack
  int broadcasts =
      0;  // instructions that only copy a number into all lanes: AArch64's dup and ld1r, x86's vbroadcast
};

// Returns, among the loops without an inner loop, the one with the most multiply-adds; if equal, the one with
// the most loads; if still equal, the first. Leaves out the function `not_of` and its parts (NAME.body): the
// one that packs constants, which runs once and is not timed. Empty: all functions count.
InnerLoop busiest_inner_loop(std::string_view assembly, std::string_view not_of = "");

}  // namespace tuner
