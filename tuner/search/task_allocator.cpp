#include "tuner/search/task_allocator.h"

#include <algorithm>

#include "tuner/search/stopping_estimate.h"

namespace tuner {
namespace {

constexpr int64_t kRetryEvery = 4;  // turns: the share of tasks that have no right result yet

double expected_saving_ns(const TaskStanding& t) {
  const double spent = 1 + static_cast<double>(t.open) / static_cast<double>(kStoppingHorizon);
  return t.weight * t.best_ns * t.expected_gain / spent;
}

}  // namespace

int64_t allocation_floor(int64_t even_share) {
  return std::min(even_share, std::max<int64_t>(kStoppingLeast, even_share / 10));
}

std::optional<size_t> next_task(std::span<const TaskStanding> tasks, int64_t even_share, int64_t turn) {
  const auto spent = [](const TaskStanding& t) { return t.done + t.open; };
  std::optional<size_t> least, unlucky, best;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const TaskStanding& t = tasks[i];
    if (t.settled) continue;
    if (!least || spent(t) < spent(tasks[*least])) least = i;
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
