// A plan worked through, task by task, within a budget of time.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tuner/revalidate/verdict.h"

namespace tuner {

// The plan of the database that is here. `current_too`: also tasks that are not stale.
Result<RevalidatePlan> local_plan(const Store& store, const std::vector<JobRow::Task>& tasks,
                                  bool current_too);
// The plan of a database that is elsewhere: every task, as the daemon's Query answers it.
Result<RevalidatePlan> remote_plan(const DaemonClient& client, const std::vector<JobRow::Task>& tasks);

struct RevalidationOptions {
  int top = 8;                                  // configs of each task
  std::chrono::steady_clock::time_point begin;  // of the budget
  double budget_s = 300;                        // of all of it
  std::function<bool()> interrupted;
  std::function<void(const RevalidateItem&, const RevalidateVerdict&)> verdict;  // is told each as it falls
};

class Revalidation {
 public:
  // `store`: null when the database is elsewhere. Client and store must outlive this.
  Revalidation(const DaemonClient& client, const Store* store, RevalidationOptions options);

  // Returns when the plan is done, the budget is used up, or after an interrupt; all three are OK.
  Status run(const RevalidatePlan& plan);

  size_t done() const { return done_; }                                   // tasks whose jobs ended
  double seconds() const;                                                 // since the begin
  const std::map<std::string, int>& endings() const { return endings_; }  // how many tasks ended so; ending()
  bool succeeded() const;

 private:
  double seconds_left() const;
  double usual_s() const;

  const DaemonClient& client_;
  const Store* store_;
  const RevalidationOptions options_;
  const std::chrono::steady_clock::time_point end_;
  std::map<std::string, int> endings_;
  std::vector<double> took_s_;
  size_t done_ = 0;
};

}  // namespace tuner
