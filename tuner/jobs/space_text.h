// Text of `tuner show --as space`: the knobs of each template that serves a task, and the number of valid
// configs.
#pragma once

#include <string>

#include "tuner/jobs/tasks.h"

namespace tuner {

// NotFound: no template serves the task; one line per template.
Result<std::string> space_text(const CliTask& task);

// Returns the number of valid configs of all templates that serve the task.
Result<uint64_t> space_size(const CliTask& task);

}  // namespace tuner
