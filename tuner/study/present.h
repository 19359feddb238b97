// What this program and this machine would write into a record today: against it old records are stale.
#pragma once

#include "compiler_core/target.h"
#include "db/staleness.h"

namespace tuner {

// Whether this machine is one that `target` stands for: its own CPU with any number of threads, or its GPU.
bool is_this_machine(const Target& target);

// Compilers, harness and templates of this program; of hardware only what `target` stands for, and only where
// that is this machine.
Present present_here(const Target& target);
// The same of a target's name; of one that cannot be parsed, nothing is known of the hardware.
Present present_here(const std::string& target_name);

}  // namespace tuner
