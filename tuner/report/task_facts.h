// The parts of one task's report. If the records do not tell a part, it is null or has a "why".
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "db/store.h"
#include "tuner/daemon/search/task_space.h"
#include "tuner/jobs/tasks.h"
#include "tuner/report/report_facts.h"

namespace tuner {

// One task of a job with everything measured for it.
struct JobTask {
  const JobRow* job = nullptr;
  int index = 0;
  CliTask task;
  std::string hardware;                 // fingerprint that most of its records have; other records are left
                                        // out
  std::vector<TrialWithRecord> trials;  // trials with a record, in the order of the records
  std::vector<RaceRow> races;           // of this task, oldest first
  std::optional<TaskSpace> space;       // empty: this program no longer has a template for it
};

// The config as its template describes it, or as it is stored where that is not known.
std::string described(const JobTask& t, const TrialRow& trial);

// The race that the task's result rests on: the newest certified one whose winner has a record here; or null.
const RaceRow* deciding_race(const JobTask& t);
// That, or else the newest one, which decided nothing; null: the task was not raced.
const RaceRow* shown_race(const JobTask& t);
// Position in `t.trials`; their number: it is not among them.
size_t position_of(const JobTask& t, const std::string& trial_id);
// The fastest of those timed to the end; the number of trials: there is none.
size_t fastest_trial(const JobTask& t);

// `marks`: at most so many trials are listed with their configs; all of them are in "points".
nlohmann::ordered_json convergence_facts(const JobTask& t, size_t marks);
// Compares with a search without a model: another job of this task that used one, else annealing replayed on
// the recorded rows.
Result<nlohmann::ordered_json> baseline_facts(const Store& store, const JobTask& t,
                                              const ReportOptions& options);
Result<nlohmann::ordered_json> importance_facts(const JobTask& t);
nlohmann::ordered_json failure_facts(const JobTask& t);
nlohmann::ordered_json race_facts(const JobTask& t);
nlohmann::ordered_json phase_facts(const JobTask& t);
nlohmann::ordered_json stopping_facts(const JobTask& t);
nlohmann::ordered_json roofline_facts(const JobTask& t, double best_ns, const ReportOptions& options);
// Returns the task's result in this job: the winner of its race, else its fastest trial; null without a
// correct answer.
nlohmann::ordered_json best_facts(const JobTask& t);

}  // namespace tuner
