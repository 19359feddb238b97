// Vectorises innermost loops of the emulated Program where the result is plainly the same. Private to
// emulator.
#pragma once

#include "compiler_core/ir/stmt.h"

namespace tuner::emulation {

// Serial loops with a power of two of iterations around one store become kVectorized if the store is
// contiguous and each load is contiguous or constant in the loop. The multiply-adds of a thread's tile then
// run several times as fast.
Stmt vectorise_innermost(const Stmt& s);

}  // namespace tuner::emulation
