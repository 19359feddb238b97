// Chooses which tuned configs `tuner revalidate` measures again, and in what order.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "db/staleness.h"
#include "db/store.h"

namespace tuner {

// Returns the share of its time that a kernel is expected to lose if it is chosen from stale instead of fresh
// records. Assumed, not learned: a new compiler changes the ranking little, a changed template more, another
// device most.
double expected_loss(const Staleness& staleness);

struct RevalidateItem {
  JobRow::Task task;  // `uses`: the most that any job stated
  TunedConfig before;
  Staleness staleness;
  double loss_ns() const;  // over all uses; decides the order
};

struct RevalidatePlan {
  std::vector<RevalidateItem> items;  // stale ones first, the largest expected loss first
  // Tasks left out: their tuned config is current, they stand for another machine, or nothing is known of
  // them.
  int64_t current = 0, elsewhere = 0, untuned = 0;
};

struct RevalidateWishes {
  bool current_too = false;
  std::function<Present(const std::string& target)> present;
  std::function<bool(const std::string& target)> measurable;
};
// `tasks`: as in a job file, or from Store::tasks(). Each is planned once.
Result<RevalidatePlan> plan_revalidation(const Store& store, const std::vector<JobRow::Task>& tasks,
                                         const RevalidateWishes& wishes);

}  // namespace tuner
