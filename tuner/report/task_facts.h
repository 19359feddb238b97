// The parts of one task's report. If the records do not tell a part, it is null or has a "why".
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "db/store.h"
#include "tuner/daemon/task_space.h"
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

nlohmann::ordered_json convergence_facts(const JobTask& t);
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
