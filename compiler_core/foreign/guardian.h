// The two processes of a confined program: a guardian, and below it the program.
//
// The guardian is a child subreaper: whatever the program starts, in whatever session, falls to it when its
// parent ends, and ends with the program, at the deadline, or when the caller dies. It has no rights less than
// we have, but runs no code of others.
#pragma once

#include <sys/types.h>

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
};

// Written to `told`, the first one counts.
struct GuardianWord {
  int step = 0;   // 0: the program ended; else what was refused before it began: guardian_step()
  int value = 0;  // as waitpid() gives it; else an errno
};
const char* guardian_step(int step);

// In the forked child, which has one thread; `output` takes what the program says. SIGTERM: ends the program.
[[noreturn]] void guard(const ChildPlan& plan, pid_t parent, int output, int told);

}  // namespace tuner
