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

// A list in parts: {"KEY": rows, "from": ..., "total": ...}.
std::string list_text(const char* key, const std::vector<std::string>& rows, const Part& part);

// Whether a job may be seen.
bool sees(const Tenant& tenant, const JobRow& job);
Status no_such_job(const std::string& id);

}  // namespace tuner::dashboard
