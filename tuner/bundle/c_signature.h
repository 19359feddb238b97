// What the functions of a kernel take, and how that becomes what its compiled code takes.
//
// Names, order and types follow the workload alone, so that a program written for a kernel goes on to compile
// when the kernel is tuned again and another template wins. Each constant operand X is taken as X_packed:
// bytes that the packing function makes of X. What they hold is the template's business: X in another order,
// a transform of X, or X as it is where nothing is to be packed. The artifact's manifest says where they go.
#pragma once

#include <string>
#include <vector>

#include "compiler_core/artifact/artifact.h"
#include "templates/workload/workload.h"

namespace tuner {

// Where the compiled code finds one of its arguments: so many bytes into an argument of the function.
struct ArgPlace {
  size_t arg = 0;
  int64_t offset = 0;
};

struct CSignature {
  std::vector<ArgInfo> operands;   // of the workload, in its order
  std::vector<ArgInfo> args;       // of the call: the operands, X_packed ("packed") for each constant X
  std::vector<ArgInfo> pack_args;  // constants, then X_packed for each; empty without constants
  std::vector<ArgPlace> entry;     // in `args`, for each of Manifest::args
  std::vector<ArgPlace> pack;      // in `pack_args`, for each of Manifest::pack_args
  // Constants that the compiled code reads as they are: pack_args[from] is copied to `to`.
  struct Copy {
    size_t from = 0;
    ArgPlace to;
  };
  std::vector<Copy> copies;

  bool packs() const { return !pack_args.empty(); }
};

// `manifest` is of a kernel for the workload.
CSignature c_signature(const Workload& workload, const Manifest& manifest);

}  // namespace tuner
