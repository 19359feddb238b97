// Innermost loops of the emulated Program as vectors, where that is plainly the same. Private to emulator.
#pragma once

#include "compiler_core/ir/stmt.h"

namespace tuner::emulation {

// Serial loops of a power of two of iterations around one store, contiguous in what it writes, and contiguous
// or the same in each element it reads, become kVectorized: the multiply-adds of a thread's tile run several
// times as fast.
Stmt vectorise_innermost(const Stmt& s);

}  // namespace tuner::emulation
