// The parts of one task's report. Each is null, or has "why", where the records do not tell it.
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

// One task of a job with all that was measured of it.
struct JobTask {
  const JobRow* job = nullptr;
  int index = 0;
  CliTask task;
  std::string hardware;                 // that most of its records are of; others are left out
  std::vector<TrialWithRecord> trials;  // with a record, in the order of their records
  std::vector<RaceRow> races;           // of this task, oldest first
  std::optional<TaskSpace> space;       // none: this program has no template for it any more
};

nlohmann::ordered_json convergence_facts(const JobTask& t);
// The model-free search beside it: another job of this task that searched without a model, else annealing
// played on the recorded rows.
Result<nlohmann::ordered_json> baseline_facts(const Store& store, const JobTask& t,
                                              const ReportOptions& options);
Result<nlohmann::ordered_json> importance_facts(const JobTask& t);
nlohmann::ordered_json failure_facts(const JobTask& t);
nlohmann::ordered_json race_facts(const JobTask& t);
nlohmann::ordered_json phase_facts(const JobTask& t);
nlohmann::ordered_json stopping_facts(const JobTask& t);
nlohmann::ordered_json roofline_facts(const JobTask& t, double best_ns, const ReportOptions& options);
// The task's result in this job: its race's winner, else its fastest trial; null without a right answer.
nlohmann::ordered_json best_facts(const JobTask& t);

}  // namespace tuner
