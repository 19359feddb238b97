// `tuner show --as space`: the knobs of each template that serves a task, and how many configs are valid.
#pragma once

#include <string>

#include "tuner/jobs/tasks.h"

namespace tuner {

// NotFound, one line a template, when none serves the task.
Result<std::string> space_text(const CliTask& task);

// Valid configs of all templates that serve the task.
Result<uint64_t> space_size(const CliTask& task);

}  // namespace tuner
