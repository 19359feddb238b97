// Which register buffers may be read before they are written: decided before anything runs, so that only
// those need flags. Private to emulator.
#pragma once

#include <set>

#include "compiler_core/ir/stmt.h"

namespace tuner::emulation {

// The register buffers of `body` (what one thread does) with a read that is not proved to come after a store
// to the same element. Loops that index registers are run through; other loops are looked at in their first
// iteration and in a later one, guards on unknown values on both sides.
std::set<const BufferNode*> unproved_registers(const Stmt& body);

}  // namespace tuner::emulation
