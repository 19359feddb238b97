#include "tuner/jobs/job_wish.h"

#include <algorithm>
#include <charconv>

#include "compiler_core/backend.h"
#include "compiler_core/base/measure_limits.h"
#include "tuner/jobs/job_file.h"
#include "tuner/jobs/space_text.h"
#include "tuner/jobs/tasks.h"

namespace tuner {
namespace {

constexpr int kMostTrials = static_cast<int>(kJobTrials.most);

// A sweep. Every valid config, with all its samples, however well its time is known before: a sweep is there
// to be searched again later (tuner study simulate), where a bound of a slow config is not enough.
Status make_sweep(const CliTask& task, JobRow& job) {
  constexpr int kSamples = 9;
  ASSIGN_OR_RETURN(const uint64_t size, space_size(task));
  if (size > kMostTrials)
    return invalid_argument("--trials all: ", task.key, " has ", size, " valid configs, expected at most ",
                            kMostTrials, "; give a number of trials, or a smaller shape");
  job.trials = static_cast<int>(size);
  job.stop.below = 0;
  job.options.cut_factor = -1;
  job.options.precision = 0;
  job.options.repeats = std::max(job.options.repeats, kSamples);
  return Status::ok();
}

}  // namespace

std::optional<int> trials_from_text(const std::string& text) {
  const auto* end = text.data() + text.size();
  int n = 0;
  const auto [stop, error] = std::from_chars(text.data(), end, n);
  return error == std::errc() && stop == end && n >= 1 && n <= kMostTrials ? std::optional(n) : std::nullopt;
}

Result<std::vector<JobGroup>> wished_groups(const std::string& file, const JobWish& wish) {
  ASSIGN_OR_RETURN(const std::vector<JobEntry> entries, read_job_file(file));
  std::vector<JobGroup> groups;
  for (const JobEntry& entry : entries) {
    Result<Target> target = resolve_target(wish.target.empty() ? entry.target : wish.target);
    if (!target)
      return target.status().with_context(wish.target.empty() ? file + ": target: " : "--target: ");
    RETURN_IF_ERROR(kernel_suits(entry.workload, *target)
                        .with_context(wish.target.empty() ? file + ": target: " : "--target: "));
    JobRow job;
    job.trials = wish.trials.value_or(entry.trials);
    job.search = !wish.search.empty() ? wish.search : wish.every_config ? "grid" : entry.search;
    job.seed = wish.seed.value_or(entry.seed);
    job.options = entry.measure;
    job.stop = entry.stop;
    job.priority = wish.priority;
    if (wish.stop_below) job.stop.below = *wish.stop_below;
    if (wish.time_limit_s) job.stop.time_limit_s = *wish.time_limit_s;
    const JobRow::Task task{entry.workload.key(), target->name(), entry.algorithms, entry.uses,
                            constants_of(entry)};
    if (wish.every_config)
      RETURN_IF_ERROR(
          make_sweep({entry.workload, *target, task.workload_key, task.target, task.algorithms}, job));
    add_task(groups, job, task, entry.workload);
  }
  return groups;
}

}  // namespace tuner
