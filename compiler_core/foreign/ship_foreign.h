// A user's kernel as an application links it: under its own name, with the prototype that its user gave it.
#pragma once

#include "compiler_core/backend.h"

namespace tuner {

// Files lib/libNAME.so, lib/libNAME.a, obj/NAME.o and include/NAME.h, whose one symbol is NAME:
// request.function. The function takes what the user's takes, in its order, and returns nothing. Requires
// program.foreign; of one that is a whole program there are no files. Errors as compile_foreign().
Result<ShippedKernel> ship_foreign(const Program& program, const Target& target, const ShipRequest& request);

}  // namespace tuner
