// What a confined program may touch, as rules of Landlock.
#pragma once

#include "compiler_core/base/status.h"
#include "compiler_core/foreign/confined_program.h"

namespace tuner {

// Of the running kernel; below 1: it has none, and errno says why.
int landlock_version();

// A descriptor of the rules; the caller closes it.
Result<int> rules_for(const ConfinedProgram& program);

}  // namespace tuner
