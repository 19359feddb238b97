// What this program and this machine would write into a record today. Old records are stale compared with it.
#pragma once

#include "compiler_core/target.h"
#include "db/staleness.h"

namespace tuner {

// True if `target` stands for this machine: its own CPU with any number of threads, or its GPU.
bool is_this_machine(const Target& target);

// Returns compilers, harness and templates of this program. Hardware is filled only if `target` stands for
// this machine.
Present present_here(const Target& target);
// The same for a target's name. If it cannot be parsed, hardware stays empty.
Present present_here(const std::string& target_name);

}  // namespace tuner
