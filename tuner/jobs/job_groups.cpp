#include "tuner/jobs/job_groups.h"

#include <algorithm>

namespace tuner {
namespace {

constexpr int64_t kMostUses = 1'000'000'000;  // as a message may carry (proto/convert.h)

bool same_options(const MeasureOptions& a, const MeasureOptions& b) {
  return a.min_repeat_ms == b.min_repeat_ms && a.repeats == b.repeats &&
         a.build_timeout_s == b.build_timeout_s && a.run_timeout_s == b.run_timeout_s &&
         a.memory_limit_bytes == b.memory_limit_bytes && a.cut_factor == b.cut_factor &&
         a.precision == b.precision && a.constants == b.constants;
}

}  // namespace

void add_task(std::vector<JobGroup>& groups, const JobRow& job, const JobRow::Task& task,
              const Workload& workload) {
  auto group = std::ranges::find_if(groups, [&](const JobGroup& g) {
    return g.job.trials == job.trials && g.job.search == job.search && g.job.seed == job.seed &&
           same_options(g.job.options, job.options) && g.job.stop == job.stop;
  });
  if (group == groups.end()) {
    group = groups.insert(group, {.job = job, .workloads = {}});
    group->job.tasks.clear();
  }
  const auto same = std::ranges::find_if(group->job.tasks, [&](const JobRow::Task& t) {
    return t.workload_key == task.workload_key && t.target == task.target &&
           t.algorithms == task.algorithms && t.constants == task.constants;
  });
  if (same != group->job.tasks.end()) {
    same->uses = std::min(same->uses + task.uses, kMostUses);
    return;
  }
  group->job.tasks.push_back(task);
  group->workloads.push_back(workload);
}

}  // namespace tuner
