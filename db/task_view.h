// TaskView: what is known of one (workload, target) at one moment, from which tuned.cpp decides. An engine
// implements it. Store::with_task passes one to its callback; it is valid only during that call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler_core/base/status.h"
#include "db/records.h"

namespace tuner {

class TaskView {
 public:
  // A trial and its terminal record.
  struct Measured {
    TrialRow trial;  // without job_id
    MeasureRecord record;
    int64_t record_id = 0;
  };

  virtual ~TaskView() = default;

  // Newest first, without job_id. Finalists have only their trial ids, because samples are most of a race.
  virtual Result<std::vector<RaceRow>> races() const = 0;
  virtual Result<TrialRow> trial(std::string_view trial_id) const = 0;  // without job_id. NotFound
  virtual Result<std::optional<Measured>> measured(std::string_view trial_id) const = 0;
  // Returns the ids of all trials with a terminal record, oldest first.
  virtual Result<std::vector<std::string>> measured_trials() const = 0;
  // The same of those whose terminal record came after this one, at most so many, in the order of records.
  virtual Result<std::vector<std::string>> measured_trials_after(int64_t record_id, int64_t most) const = 0;
  // Returns the fastest correct, uncut trial of the named templates (empty: of any); the older record if
  // equal.
  virtual Result<std::optional<Measured>> fastest(const std::vector<std::string>& templates) const = 0;
  // The hardware that terminal records tell of, each once; "" where one tells of none.
  virtual Result<std::vector<std::string>> hardware() const = 0;
  // Like fastest(), but only among records of this hardware.
  virtual Result<std::optional<Measured>> fastest_on(const std::string& hardware,
                                                     const std::vector<std::string>& templates) const = 0;
  // Like fastest(), but only among records of this compiler, harness and machine.
  virtual Result<std::optional<Measured>> fastest_of_environment(
      const Environment& environment, const std::vector<std::string>& templates) const = 0;
  // True if the job of `race`, one of races(), measured this config for the race's task.
  virtual Result<bool> measured_by_job_of(const RaceRow& race, std::string_view template_name,
                                          std::string_view config) const = 0;
  // Counts the terminal records by outcome, with those that were pruned.
  virtual Result<std::vector<std::pair<Outcome, int64_t>>> outcomes() const = 0;
  // The same of records of this hardware; of those that were pruned nobody knows the hardware.
  virtual Result<std::vector<std::pair<Outcome, int64_t>>> outcomes_on(const std::string& hardware) const = 0;
};

// Whether what was measured in the one can be compared with what was measured in the other.
bool same_environment(const Environment& a, const Environment& b);

}  // namespace tuner
