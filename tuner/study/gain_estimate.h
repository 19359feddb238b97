// GainEstimate: what tuning a task would gain over the database's present answer, before anything is
// measured. It learns from how the searches in the database went.
//
// For each searched task it knows the curve: the time of the default config, the best time after each trial,
// and the last one. Curves of similar tasks (warm_start.h's distance) give, as weighted quantiles:
//   - what the default leaves to gain: 1 - best / default;
//   - what is still to gain after n trials: 1 - last / best after n;
//   - how many trials most of the gain takes, and the seconds of a trial and of a race.
// One imaginary task is added to them, at no gain and at twice the largest gain, so that few curves give wide
// intervals. `tuner estimate --calibrate` hides each task in turn and prints how often the truth lay inside.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "db/store.h"

namespace tuner {

// Results of one task on one machine, over all its jobs, in order of arrival.
struct TaskHistory {
  JobRow::Task task;
  double default_ns = 0;         // 0: the default config was not measured
  std::vector<double> best_ns;   // after each trial; 0 before the first correct one
  double seconds_per_trial = 0;  // 0: not known
  double race_seconds = 0;       // 0: not known
  double last_ns() const { return best_ns.empty() ? 0 : best_ns.back(); }
  int64_t trials() const { return static_cast<int64_t>(best_ns.size()); }
};

// Share of a call's time that is saved; 0..1.
struct Gain {
  double expected = 0, low = 0, high = 0;  // the truth lies between low and high in 80 % of cases
  double rests_on = 0;                     // number of tasks it rests on, each weighted by its similarity
};

struct Cost {
  int64_t trials = 0;
  double seconds = 0;
  bool known = false;  // true if learned from this kind of target; else from any in the database, or guessed
};

inline constexpr double kSkipBelow = 0.02;

class GainEstimate {
 public:
  // Reads the newest jobs, at most `most_trials` of their trials.
  static Result<GainEstimate> read(const Store& store, int64_t most_trials = 200'000);
  explicit GainEstimate(std::vector<TaskHistory> histories) : histories_(std::move(histories)) {}

  // Returns the gain over the default config; empty if no similar task was searched far enough. `hidden`: a
  // history to ignore.
  std::optional<Gain> over_default(const JobRow::Task& task, const TaskHistory* hidden = nullptr) const;
  // Returns the gain of going on after `trials` trials.
  std::optional<Gain> of_more_trials(const JobRow::Task& task, int64_t trials,
                                     const TaskHistory* hidden = nullptr) const;
  // Returns the cost until nine tenths of the gain, or all but 1 %, are reached, after `trials` so far.
  Cost cost(const JobRow::Task& task, int64_t trials) const;
  // Returns the expected time of a call once tuned, from the rate that similar tasks reached (of arithmetic,
  // or of memory traffic if that bounds the task). 0: not known.
  double tuned_ns(const JobRow::Task& task) const;
  // Returns the history of the task itself with the most trials; null if it was never searched.
  const TaskHistory* history_of(const JobRow::Task& task) const;
  const std::vector<TaskHistory>& histories() const { return histories_; }

 private:
  std::vector<TaskHistory> histories_;
};

// Compares held-out estimates with what was found.
struct Calibration {
  int64_t tasks = 0, inside = 0;  // inside: the truth lay in the interval
  double mean_error = 0;          // mean absolute error of `expected`
  double error_of_constant = 0;   // the same, with the mean gain of the other tasks as the estimate
  double inside_share() const {
    return tasks == 0 ? 0 : static_cast<double>(inside) / static_cast<double>(tasks);
  }
};
Calibration calibrate_over_default(const GainEstimate& estimate);
// Cuts each task off after `trials`; tasks with less than twice as many are left out.
Calibration calibrate_more_trials(const GainEstimate& estimate, int64_t trials);

}  // namespace tuner
