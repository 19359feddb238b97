// What `tuner submit` tells: of a job that has ended, for people and as JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tuner/client/job_run.h"
#include "tuner/jobs/job_groups.h"

namespace tuner::cli {

// Facts of the job and its tasks; keys as of docs/json.md.
nlohmann::json job_json(const JobGroup& group, const JobOutcome& out);
// `details`: also what few people ask for.
void print_job(const JobGroup& group, const JobOutcome& out, bool details);
// On stderr: why the command leaves before the job has ended. `again`: the command that continues it.
void say_interrupted(const JobOutcome& out, const std::string& again);
// On stderr: how the job ended, where that is not plain from its answers.
void say_ending(const JobOutcome& out);

}  // namespace tuner::cli
