// What a CUDA kernel's PTX says before it runs: code that does more than compute is refused, and so is code
// that could keep something from one launch to the next.
//
// The first of two lines, as code_check.h is for functions of a CPU: who gets past it meets the runner's
// checks. docs/judge.md lists what each finds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tuner {

struct PtxRules {
  std::string kernel;           // the symbol that is launched
  std::vector<bool> is_buffer;  // of each of its parameters: it is an address
};

// Reads the PTX that a cubin was assembled from. Returns why the kernel is refused, in a phrase; empty:
// nothing is wrong. Variables of the module may be read; an address of theirs may be neither written to nor
// kept. Where loads and stores of global memory take their addresses from is followed through registers: it
// must be a parameter that is a buffer, or a variable.
std::string why_ptx_is_refused(std::string_view ptx, const PtxRules& rules);

}  // namespace tuner
