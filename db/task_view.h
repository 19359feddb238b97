// TaskView: what is known of one (workload, target) at one moment: the rows that tuned.cpp decides from. An
// engine implements it; Store::with_task hands one out, for as long as the call lasts.
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

  // Newest first, without job_id; of finalists only the trial ids: samples are most of a race.
  virtual Result<std::vector<RaceRow>> races() const = 0;
  virtual Result<TrialRow> trial(std::string_view trial_id) const = 0;  // without job_id. NotFound
  virtual Result<std::optional<Measured>> measured(std::string_view trial_id) const = 0;
  // Ids of all trials with a terminal record, oldest first.
  virtual Result<std::vector<std::string>> measured_trials() const = 0;
  // The fastest right and uncut trial, of the named templates (none: of any). Ties go to the older record.
  virtual Result<std::optional<Measured>> fastest(const std::vector<std::string>& templates) const = 0;
  // The same of what was measured by this compiler and harness on this machine.
  virtual Result<std::optional<Measured>> fastest_of_environment(
      const Environment& environment, const std::vector<std::string>& templates) const = 0;
  // Whether the job of the race, one of races(), measured this config for the race's task.
  virtual Result<bool> measured_by_job_of(const RaceRow& race, std::string_view template_name,
                                          std::string_view config) const = 0;
  // How many terminal records have each outcome.
  virtual Result<std::vector<std::pair<Outcome, int64_t>>> outcomes() const = 0;
};

}  // namespace tuner
