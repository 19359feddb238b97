// The lock file of a command (`--lock`): read, and held against the tasks before anything is built.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "db/resolve/answer_lock.h"
#include "tuner/jobs/tasks.h"

namespace tuner {

// Nothing for an empty path: the command was given none. Errors as AnswerLock::read().
Result<std::optional<AnswerLock>> read_lock(const std::string& path);

// OK if this program can build the entry of every task. NotFound, one line: what is wrong with the first that
// it cannot, and how many there are. `fix`: the command that writes the entries anew.
Status check_locked(const AnswerLock& lock, const std::vector<CliTask>& tasks, const std::string& fix);

}  // namespace tuner
