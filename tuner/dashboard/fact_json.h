// Facts that databases and daemons both tell, as JSON with the keys of docs/json.md.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "db/records.h"
#include "tuner/dashboard/fact_source.h"

namespace tuner::dashboard {

// A task of a job, or an answer. `best`: what is known of it; null: nothing.
nlohmann::ordered_json task_row(const JobRow::Task& task, const TunedConfig* best);
// A row of the list of answers.
nlohmann::ordered_json answer_row(const TunedConfig& best);
// A job without its tasks' answers. `state` as people see it (JobStates).
nlohmann::ordered_json job_row(const JobRow& job, const std::string& state, const std::string& message,
                               int64_t trials_done);

// A result as a row of a task's records, and as a point of a job's curve.
nlohmann::ordered_json record_row(const TrialWithRecord& trial);
nlohmann::ordered_json curve_point(const TrialWithRecord& trial);
// Races of a job, those of a task, and one with every sample. `trials`: its finalists, in its order; without
// a template where a trial is not there any more.
nlohmann::ordered_json races_of_job(const std::vector<RaceRow>& races);
nlohmann::ordered_json races_of_task(const std::vector<RaceRow>& races);
nlohmann::ordered_json whole_race(const RaceRow& race, const std::vector<TrialRow>& trials);

// A list in parts: {"KEY": rows, "from": ..., "total": ...}.
std::string list_text(const char* key, const std::vector<std::string>& rows, const Part& part);

// A job of one task, searched as usual.
Result<JobRow> usual_job(const TaskName& task);
// The job once more, for so many more trials per task than the `done` of all tasks.
JobRow job_on(const JobRow& before, int64_t done, int more);
// Whether a daemon takes both for one job: the same tasks, search and seed.
bool is_same_search(const JobRow& a, const JobRow& b);
Result<JobRow::Task> task_of_name(const TaskName& name);

// Whether a job may be seen.
bool sees(const Tenant& tenant, const JobRow& job);
Status no_such_job(const std::string& id);

}  // namespace tuner::dashboard
