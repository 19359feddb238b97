#include "tuner/search/task_allocator.h"

#include <algorithm>
#include <tuple>

#include "tuner/search/stopping_estimate.h"

namespace tuner {
namespace {

constexpr int64_t kRetryEvery = 4;  // turns: the share of tasks that have no right result yet

int64_t spent(const TaskStanding& t) { return t.done + t.open; }

double expected_saving_ns(const TaskStanding& t) {
  const double under_way = 1 + static_cast<double>(t.open) / static_cast<double>(kStoppingHorizon);
  return t.weight * t.best_ns * t.expected_gain / under_way;
}

bool before_on_the_way_to_the_floor(const TaskStanding& a, const TaskStanding& b) {
  return std::tuple(-spent(a), expected_saving_ns(a), a.weight) >
         std::tuple(-spent(b), expected_saving_ns(b), b.weight);
}

}  // namespace

int64_t allocation_floor(int64_t even_share) {
  return std::min(even_share, std::max<int64_t>(kStoppingLeast, even_share / 10));
}

int64_t next_batch(const TaskStanding& task, int64_t even_share, int64_t most) {
  if (spent(task) == 0) return 1;
  const int64_t to_floor = allocation_floor(even_share) - spent(task);
  return to_floor > 0 ? std::min(most, to_floor) : most;
}

std::optional<size_t> next_task(std::span<const TaskStanding> tasks, int64_t even_share, int64_t turn) {
  std::optional<size_t> least, unlucky, best;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const TaskStanding& t = tasks[i];
    if (t.settled) continue;
    if (!least || before_on_the_way_to_the_floor(t, tasks[*least])) least = i;
    if (t.best_ns <= 0) {
      if (!unlucky || spent(t) < spent(tasks[*unlucky])) unlucky = i;
    } else if (!best || expected_saving_ns(t) > expected_saving_ns(tasks[*best])) {
      best = i;
    }
  }
  if (!least) return std::nullopt;
  if (spent(tasks[*least]) < allocation_floor(even_share)) return least;
  if (unlucky && (!best || turn % kRetryEvery == 0)) return unlucky;
  return best;
}

}  // namespace tuner
