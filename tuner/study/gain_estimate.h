// GainEstimate: what tuning a task would gain over what the database answers now, before anything is
// measured; learned from how the searches in the database went.
//
// Of each task that was searched the curve is known: the default config's time, the best time after each
// trial, the last. From the curves of similar tasks (warm_start.h's distance) come, as weighted quantiles:
//   - what a default leaves: 1 - best / default;
//   - what goes on to be gained after n trials: 1 - last / best after n;
//   - how many trials most of it takes, and the seconds a trial and a race take.
// One task that nobody has seen counts beside them, at nothing gained and at twice the most: so few curves
// give wide intervals. `tuner estimate --calibrate` hides each task in turn and prints how often the truth
// lay inside.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "db/store.h"

namespace tuner {

// One task's results on one machine, of all its jobs, in the order they came.
struct TaskHistory {
  JobRow::Task task;
  double default_ns = 0;         // 0: the default config was not measured
  std::vector<double> best_ns;   // after each trial; 0 before the first right one
  double seconds_per_trial = 0;  // 0: not known
  double race_seconds = 0;       // 0: not known
  double last_ns() const { return best_ns.empty() ? 0 : best_ns.back(); }
  int64_t trials() const { return static_cast<int64_t>(best_ns.size()); }
};

// Share of the time of a call that is saved; 0..1.
struct Gain {
  double expected = 0, low = 0, high = 0;  // the truth is expected to lie inside in 80 % of cases
  double rests_on = 0;                     // tasks, each counted by how similar it is
};

struct Cost {
  int64_t trials = 0;
  double seconds = 0;
  bool known = false;  // from this kind of target; else from any in the database, or a guess
};

inline constexpr double kSkipBelow = 0.02;

class GainEstimate {
 public:
  // Reads the newest jobs, at most `most_trials` of their trials.
  static Result<GainEstimate> read(const Store& store, int64_t most_trials = 200'000);
  explicit GainEstimate(std::vector<TaskHistory> histories) : histories_(std::move(histories)) {}

  // Over the default config. None: no task like this one was searched far enough. `hidden`: a history that
  // is taken for not there.
  std::optional<Gain> over_default(const JobRow::Task& task, const TaskHistory* hidden = nullptr) const;
  // Of going on after `trials` trials.
  std::optional<Gain> of_more_trials(const JobRow::Task& task, int64_t trials,
                                     const TaskHistory* hidden = nullptr) const;
  // Until nine tenths of the gain are there, or all but 1 %: after `trials` so far.
  Cost cost(const JobRow::Task& task, int64_t trials) const;
  // Time of a call once it is tuned, from the rate (of arithmetic, or of memory traffic where that bounds it)
  // that tasks like it reached. 0: not known.
  double tuned_ns(const JobRow::Task& task) const;
  // Of the task itself, with the most trials; null: it was never searched.
  const TaskHistory* history_of(const JobRow::Task& task) const;
  const std::vector<TaskHistory>& histories() const { return histories_; }

 private:
  std::vector<TaskHistory> histories_;
};

// How a held-out estimate compares with what was found.
struct Calibration {
  int64_t tasks = 0, inside = 0;  // the truth lay in the interval
  double mean_error = 0;          // of expected, absolute
  double error_of_constant = 0;   // of the mean gain of the others as estimate, absolute
  double inside_share() const {
    return tasks == 0 ? 0 : static_cast<double>(inside) / static_cast<double>(tasks);
  }
};
Calibration calibrate_over_default(const GainEstimate& estimate);
// Each task cut off after `trials`; those with less than twice as many are left out.
Calibration calibrate_more_trials(const GainEstimate& estimate, int64_t trials);

}  // namespace tuner
