#include "tuner/farm/slurm_scale.h"

#include <algorithm>

namespace tuner::slurm {

namespace {

// Job numbers as text: the shorter is the smaller.
bool younger(const Task* a, const Task* b) {
  return a->job.size() != b->job.size() ? a->job.size() > b->job.size() : a->job > b->job;
}

}  // namespace

ScalePlan scale_plan(const std::vector<Task>& tasks, const std::set<std::string>& draining, int wanted) {
  std::vector<const Task*> waiting, others;
  for (const Task& task : tasks)
    if (!task.ends() && !draining.contains(task.job)) (task.waits() ? waiting : others).push_back(&task);
  std::ranges::sort(waiting, younger);
  std::ranges::sort(others, younger);
  ScalePlan plan;
  int now = static_cast<int>(waiting.size() + others.size());
  plan.submit = std::max(0, wanted - now);
  for (const Task* task : waiting) {
    if (now <= wanted) break;
    plan.cancel.push_back(task->job);
    --now;
  }
  for (const Task* task : others) {
    if (now <= wanted) break;
    plan.drain.push_back(task->job);
    --now;
  }
  return plan;
}

int wanted_workers(int64_t open_trials, int per_worker, int least, int most) {
  const int64_t busy = (open_trials + per_worker - 1) / per_worker;
  return static_cast<int>(std::clamp<int64_t>(busy, least, most));
}

int Follower::next(int wanted, int now) {
  if (wanted >= now) {
    fewer_ = most_wanted_ = 0;
    return wanted;
  }
  most_wanted_ = std::max(most_wanted_, wanted);
  if (++fewer_ < patience_) return now;
  const int enough = most_wanted_;
  fewer_ = most_wanted_ = 0;
  return enough;
}

}  // namespace tuner::slurm
