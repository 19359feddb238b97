// Which tuned configs `tuner revalidate` measures again, and in what order.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "db/staleness.h"
#include "db/store.h"

namespace tuner {

// Share of its time that a kernel is expected to lose by being chosen from stale records instead of fresh
// ones. Assumed, not learned: a new compiler moves the ranking little, a changed template more, another
// device most.
double expected_loss(const Staleness& staleness);

struct RevalidateItem {
  JobRow::Task task;  // `uses`: the most that a job said
  TunedConfig before;
  Staleness staleness;
  double loss_ns() const;  // of all uses: what decides the order
};

struct RevalidatePlan {
  std::vector<RevalidateItem> items;  // stale ones first, the most expected loss first
  // Left out: tasks whose tuned config is current, that stand for another machine, that nothing is known of.
  int64_t current = 0, elsewhere = 0, untuned = 0;
};

struct RevalidateWishes {
  bool current_too = false;
  std::function<Present(const std::string& target)> present;
  std::function<bool(const std::string& target)> measurable;
};
// `tasks`: as in a job file, or Store::tasks(). Each once.
Result<RevalidatePlan> plan_revalidation(const Store& store, const std::vector<JobRow::Task>& tasks,
                                         const RevalidateWishes& wishes);

}  // namespace tuner
