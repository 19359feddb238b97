// A kernel as text, for `tuner show`.
#pragma once

#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "db/store.h"
#include "tuner/jobs/tasks.h"

namespace tuner {

// Every form that some target has: schedule, loops, roofline, and those of the back ends.
std::vector<std::string> kernel_forms();

// The kernel in the form `as`, under a heading of comments. `replay_file`: a schedule to print it under instead of its own, in
// the form that `as` schedule has; empty: its own. `store`: where a roofline reads the course of the search; may be null.
// InvalidArgument: the target has no such form, or the schedule cannot be read or replayed.
Result<std::string> kernel_text(const CliTask& task, const ChosenKernel& kernel, const std::string& as,
                                const std::string& replay_file, const Store* store);

}  // namespace tuner
