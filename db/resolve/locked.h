// What an entry of a lock file means in this program: the answer, and what a database knows of it.
#pragma once

#include <string_view>

#include "db/resolve/answer_lock.h"
#include "db/resolve/resolve.h"

namespace tuner {

// Returns the entry's config as an answer of kind kLocked. NotFound, one line: there is no entry (see
// AnswerLock::missing), or this program cannot build it: the template is gone or has another version, does
// not serve the task, computes by an algorithm that was not asked for, or the config is not in its space.
// `fix` is the command that writes the entry anew.
Result<Answer> locked_answer(const AnswerLock& lock, const Workload& workload, const Target& target,
                             std::string_view algorithms, Constants constants, std::string_view fix);

// Fills `tuned` and `rests_on` of a locked answer with what was measured of its config for its task, and with
// `count_outcomes` the default's time. They stay empty where nothing was measured. An answer needs none of
// it: an error is told in the note.
void add_measured(const Store& store, const Workload& workload, const Target& target,
                  std::string_view algorithms, Constants constants, bool count_outcomes, Answer& answer);

// Makes the kernel of a locked config. Caches of a target decide which configs are worth trying, not which
// are right, and two machines of one name may have different ones. So a config that is valid beside any
// caches is taken. Errors as kernel_of().
Result<ResolvedKernel> locked_kernel(const Answer& answer, const Workload& workload, const Target& target);

}  // namespace tuner
