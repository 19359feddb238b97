// GainEstimate: what tuning a task would gain over the database's present answer, before anything is
// measured. It learns from how the searches in the database went (task_history.h).
//
// Of each searched task it knows the curve: the time of the default config, the best time after each trial,
// and the last one. The curves of similar tasks (task_likeness.h) predict, with intervals (likely_value.h):
//   - what the default leaves to gain: 1 - best / default;
//   - what an answer that was chosen by prediction leaves: 1 - best / the faster of the default and a config
//     that a similar task lends;
//   - what is still to gain after n trials: 1 - last / best after n;
//   - the time of a call now, as a multiple of the roofline's bound (recorded_roofs.h);
//   - how many trials most of the gain takes, and the seconds of a trial and of a race.
// No time and no gain passes the bound. `tuner estimate --calibrate` hides each task in turn and prints how
// often the truth lay inside.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler_core/base/status.h"
#include "db/store.h"
#include "tuner/study/likely_value.h"
#include "tuner/study/recorded_roofs.h"
#include "tuner/study/task_history.h"
#include "tuner/study/task_likeness.h"

namespace tuner {

// Share of a call's time that is saved; 0..1.
struct Gain {
  double expected = 0, low = 0, high = 0;  // the truth lies between low and high in 80 % of cases
  double rests_on = 0;                     // number of tasks it rests on, each weighted by its similarity
  bool cut = false;                        // the roofline's bound made it smaller
};

struct Cost {
  int64_t trials = 0;
  double seconds = 0;
  bool known = false;  // true if learned from this kind of target; else from any in the database, or guessed
};

// What a gain is over.
enum class Before : uint8_t {
  kDefault,  // the default config
  kChosen,   // the config that a predictor chose among the default and those of similar tasks
};

// Tuning is not worth its time where less than kSkipBelow is expected and more than kSkipHigh unlikely. A
// config that was only predicted is never left at that: it was not measured, half of such answers leave 2 %
// or more, and no prediction told which (README.md).
inline constexpr double kSkipBelow = 0.01, kSkipHigh = 0.2, kSmallGain = 0.05;
bool worth_skipping(const Gain& gain, Before before);

class GainEstimate {
 public:
  static Result<GainEstimate> read(const Store& store);
  explicit GainEstimate(std::vector<TaskHistory> histories, RecordedRoofs roofs = {});

  // Returns the gain of tuning an untuned task; empty if no similar task was searched far enough.
  // `hidden`: a history to ignore.
  std::optional<Gain> of_tuning(const JobRow::Task& task, Before before,
                                const TaskHistory* hidden = nullptr) const;
  // Returns the gain of going on after `trials` trials.
  std::optional<Gain> of_more_trials(const JobRow::Task& task, int64_t trials,
                                     const TaskHistory* hidden = nullptr) const;
  // Returns the cost until nine tenths of the gain, or all but 1 %, are reached, after `trials` so far.
  Cost cost(const JobRow::Task& task, int64_t trials) const;
  // Returns the time of a call before tuning: the usual multiple of the bound of its operator's tasks, or
  // without a bound their usual rate of arithmetic or memory traffic. 0: not known.
  double now_ns(const JobRow::Task& task, Before before, const TaskHistory* hidden = nullptr) const;
  // Returns the roofline's time, which no call goes below. 0: not known.
  double bound_ns(const JobRow::Task& task) const;
  // Returns the history of the task itself with the most trials; null if it was never searched.
  const TaskHistory* history_of(const JobRow::Task& task) const;
  const std::vector<TaskHistory>& histories() const { return histories_; }

 private:
  template <class ValueOf>
  std::vector<KnownValue> known(const ValueOf& value_of, const TaskHistory* hidden) const;

  std::vector<TaskHistory> histories_;
  std::vector<TaskLikeness> likeness_;  // of each history
  std::vector<double> bounds_;          // of each history; 0: not known
  RecordedRoofs roofs_;
};

// Cuts a gain, and its interval, where the task would become faster than the roofline. Times of 0 are not
// known and cut nothing.
void cut_by_bound(Gain& gain, double now_ns, double bound_ns);

// The truth that a history tells; empty if it was not searched far enough.
std::optional<double> gain_of(const TaskHistory& history, Before before);

// Compares held-out estimates with what was found.
struct Calibration {
  int64_t tasks = 0, inside = 0;       // inside: the truth lay in the interval
  double median_width = 0;             // of the intervals
  double mean_error = 0;               // mean absolute error of `expected`
  double error_of_constant = 0;        // the same, with the mean gain of the other tasks as the estimate
  int64_t skips = 0, right_skips = 0;  // said that tuning is not worth it; and the gain was below kSmallGain
  double inside_share() const {
    return tasks == 0 ? 0 : static_cast<double>(inside) / static_cast<double>(tasks);
  }
};
// At most 200 of the tasks are hidden in turn.
Calibration calibrate_tuning(const GainEstimate& estimate, Before before);
// Cuts each task off after `trials`; tasks with less than twice as many are left out.
Calibration calibrate_more_trials(const GainEstimate& estimate, int64_t trials);

}  // namespace tuner
