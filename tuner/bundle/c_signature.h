// The arguments of a kernel's C functions, and how they map to the arguments of its compiled code.
//
// Names, order and types follow the workload alone. So a program still compiles when the kernel is tuned
// again and another template wins. A function does not take a constant operand X itself but X_packed: bytes
// that its caller allocates and fills once by the packing function. The template decides what they hold: X in
// another order, a transform of X, or X unchanged. Used by what writes the header of a bundle (c_header.h).
#pragma once

#include <string>
#include <vector>

#include "compiler_core/artifact/artifact.h"
#include "templates/workload/workload.h"

namespace tuner {

// Where the compiled code finds one of its arguments: a byte offset into an argument of the C function.
struct ArgPlace {
  size_t arg = 0;
  int64_t offset = 0;
};

struct CSignature {
  std::vector<ArgInfo> operands;   // the workload's operands, in its order
  std::vector<ArgInfo> args;       // of the call: the operands, with X_packed ("packed") in place of each
                                   // constant X
  std::vector<ArgInfo> pack_args;  // the constants, then X_packed for each; empty without constants
  std::vector<ArgPlace> entry;     // where the compiled code's i-th argument lies: in which of `args`
  std::vector<ArgPlace> pack;      // the same of its packing entry: in which of `pack_args`
  // Constants that the compiled code reads unchanged: all bytes of pack_args[from] are copied to `to`, a
  // place in pack_args.
  struct Copy {
    size_t from = 0;
    ArgPlace to;
  };
  std::vector<Copy> copies;

  bool packs() const { return !pack_args.empty(); }
};

// `manifest` must be that of a kernel for the workload; otherwise the program ends (CHECK).
CSignature c_signature(const Workload& workload, const Manifest& manifest);

}  // namespace tuner
