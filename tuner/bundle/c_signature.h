// The arguments of a kernel's C functions, and how they map to the arguments of its compiled code.
//
// Names, order and types follow the workload alone. So a program still compiles when the kernel is tuned
// again and another template wins. Each constant operand X is taken as X_packed: bytes that the packing
// function makes from X. The template decides what they hold: X in another order, a transform of X, or X
// unchanged. The artifact's manifest says where they go.
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
  std::vector<ArgPlace> entry;     // for each of Manifest::args: its place in `args`
  std::vector<ArgPlace> pack;      // for each of Manifest::pack_args: its place in `pack_args`
  // Constants that the compiled code reads unchanged: pack_args[from] is copied to `to`.
  struct Copy {
    size_t from = 0;
    ArgPlace to;
  };
  std::vector<Copy> copies;

  bool packs() const { return !pack_args.empty(); }
};

// `manifest` must be that of a kernel for the workload.
CSignature c_signature(const Workload& workload, const Manifest& manifest);

}  // namespace tuner
