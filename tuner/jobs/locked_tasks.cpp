#include "tuner/jobs/locked_tasks.h"

#include "db/resolve/locked.h"

namespace tuner {

Result<std::optional<AnswerLock>> read_lock(const std::string& path) {
  if (path.empty()) return std::optional<AnswerLock>();
  ASSIGN_OR_RETURN(AnswerLock lock, AnswerLock::read(path));
  return std::optional(std::move(lock));
}

Status check_locked(const AnswerLock& lock, const std::vector<CliTask>& tasks, const std::string& fix) {
  Status first;
  size_t count = 0;
  for (const CliTask& task : tasks) {
    const Status found =
        locked_answer(lock, task.workload, task.target, task.algorithms, task.constants, fix).status();
    if (found) continue;
    if (count++ == 0) first = found;
  }
  if (count < 2) return first;
  return first.with_context(
      str(count, " of ", tasks.size(), " tasks cannot be taken from ", lock.path(), ", the first: "));
}

}  // namespace tuner
