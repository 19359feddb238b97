// The two processes of a confined program: a guardian, and below it the program.
//
// The guardian is a child subreaper: whatever the program starts, in whatever session, falls to it when its
// parent ends, and ends with the program, at the deadline, or when the caller dies. It has our own rights,
// but runs no code of others.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "compiler_core/foreign/confined_program.h"

namespace tuner {

// All that the child needs, made before it is forked: between fork and exec it calls the kernel and nothing
// else.
struct ChildPlan {
  const ConfinedProgram* program = nullptr;
  std::vector<char*> words, environment;  // each ends with a null
  int rules = -1;                         // of landlock_rules.h; negative: none
  uid_t user = 0;                         // 0: as it is
  cpu_set_t cpus{};                       // where it may run, if the program names CPUs
  int64_t most_cpus = 1;                  // that its threads may use at a time
};

// Written to `told`: kBegins and kEnded, or kRefused, with which kEnded says nothing.
struct GuardianWord {
  enum What : int { kBegins, kEnded, kRefused } what = kEnded;
  int step = 0;        // what was refused, for guardian_step()
  int value = 0;       // the program's end as waitpid() gives it; of a refusal its errno
  int64_t at_ns = 0;   // of CLOCK_MONOTONIC
  int64_t cpu_ns = 0;  // of the program and of its children that it waited for
};
const char* guardian_step(int step);

// In the forked child, which has one thread; `output` takes what the program says. SIGTERM: ends the program.
[[noreturn]] void guard(const ChildPlan& plan, pid_t parent, int output, int told);

}  // namespace tuner
