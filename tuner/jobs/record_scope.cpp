#include "tuner/jobs/record_scope.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "compiler_core/backend.h"
#include "compiler_core/base/clock.h"
#include "tuner/jobs/tasks.h"

namespace tuner {

Result<int64_t> since_from_text(const std::string& text) {
  char* end = nullptr;
  const double amount = std::strtod(text.c_str(), &end);
  const std::string unit = end;
  const double unit_s = unit == "m" ? 60 : unit == "h" ? 3600 : unit == "d" ? 86400 : 0;
  if (unit_s > 0 && amount >= 0 && end != text.c_str() && amount * unit_s < 1e10)
    return wall_time_us() - static_cast<int64_t>(amount * unit_s * 1e6);
  if (const std::optional<int64_t> us = tuner::time_from_text(text); us && !text.empty()) return *us;
  return invalid_argument("--since: found \"", text,
                          "\", expected 2026-11-20, 2026-11-20T21:10:08Z, 90m, 12h or 7d");
}

Status select_tasks(const RecordScope& scope, ExchangeFilter& filter) {
  std::vector<CliTask> of_file;
  std::string target = scope.target;
  if (!scope.file.empty()) {
    ASSIGN_OR_RETURN(of_file, read_tasks(scope.file, scope.target));
    const auto n = static_cast<int>(of_file.size());
    if (scope.task >= n)
      return invalid_argument("--task: found ", scope.task, ", expected 0 to ", n - 1, ", the entries of ",
                              scope.file);
    if (scope.task >= 0) of_file = {of_file[static_cast<size_t>(scope.task)]};
    target.clear();  // it stands in the tasks
  } else if (scope.task >= 0) {
    return invalid_argument("--task chooses a task of FILE, which is not given");
  } else if (!target.empty()) {
    Result<Target> resolved = resolve_target(target);
    if (!resolved) return resolved.status().with_context("--target: ");
    target = resolved->name();
  }
  if (of_file.empty() && target.empty() && scope.op.empty()) return Status::ok();
  struct Wanted {
    std::vector<std::pair<std::string, std::string>> tasks;
    std::string op, target;
  };
  auto wanted = std::make_shared<Wanted>();
  for (const CliTask& task : of_file) wanted->tasks.emplace_back(task.key, task.target_name);
  wanted->op = scope.op;
  wanted->target = target;
  filter.task = [wanted](const JobRow::Task& task) {
    if (!wanted->target.empty() && task.target != wanted->target) return false;
    if (!wanted->tasks.empty() && std::find(wanted->tasks.begin(), wanted->tasks.end(),
                                            std::pair(task.workload_key, task.target)) == wanted->tasks.end())
      return false;
    if (wanted->op.empty()) return true;
    const Result<Workload> workload = workload_from_key(task.workload_key);
    return workload && workload->op_name() == wanted->op;
  };
  // The tasks of other tuners are in their words: an operator is looked for in them, a job file cannot name
  // them.
  const bool by_file = !of_file.empty();
  filter.foreign_task = [wanted, by_file](const ForeignRecord& record) {
    return !by_file && (wanted->target.empty() || record.target == wanted->target) &&
           (wanted->op.empty() || record.task.find(wanted->op) != std::string::npos);
  };
  return Status::ok();
}

}  // namespace tuner
