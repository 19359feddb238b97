// What a job that has ended came to, for people and as JSON: the output of `tuner submit`.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tuner/client/job_run.h"
#include "tuner/jobs/job_groups.h"

namespace tuner {

// Returns the facts of the job and its tasks; docs/json.md lists the keys.
nlohmann::json job_json(const JobGroup& group, const JobOutcome& out);
// `details`: adds what few people ask for.
void print_job(const JobGroup& group, const JobOutcome& out, bool details);
// Says on stderr why the command leaves before the job has ended. `again`: the command that continues it.
void say_interrupted(const JobOutcome& out, const std::string& again);
// Says on stderr how the job ended, if its answers do not show that.
void say_ending(const JobOutcome& out);

}  // namespace tuner
