// Finds the register buffers that may be read before they are written. This is decided before anything runs,
// so that only those need flags. Private to emulator.
#pragma once

#include <set>

#include "compiler_core/ir/stmt.h"

namespace tuner::emulation {

// Returns the register buffers of `body` (the code of one thread) with a read that is not proved to follow a
// store to the same element. Loops that index registers are run through. Other loops are examined in their
// first and in a later iteration, and guards on unknown values on both sides.
std::set<const BufferNode*> unproved_registers(const Stmt& body);

}  // namespace tuner::emulation
