// What a kernel's innermost loop consists of, counted in its assembly: multiply-adds, loads, stores, spills.
// x86-64 (AT&T) and AArch64 as LLVM prints them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tuner {

struct InnerLoop {
  std::string label;          // ".LBB1_5"; empty: no loop was found
  int instructions = 0;       // of one iteration
  int multiply_adds = 0;      // vector ones: fused; dot products; where there are none, multiplications
  int loads = 0, stores = 0;  // operands in memory that are read, written; a folded operand of an FMA counts
  int spills = 0;             // of these, on the stack
};

// Of the loops without a loop inside, the one with the most multiply-adds; of equals, with the most loads; of
// equals, the first.
InnerLoop busiest_inner_loop(std::string_view assembly);

}  // namespace tuner
