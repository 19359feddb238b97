// Are the published times true? Measures the tuned kernel of each task again and compares: `tuner verify FILE
// --times`.
#pragma once

#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "tuner/jobs/tasks.h"

namespace tuner {

struct TimesOptions {
  std::string file;        // of the tasks, for messages
  std::string db, daemon;  // empty `daemon`: this machine measures
  int processes = 3;
  bool json = false;
};

// Every task must have a certified answer. It is measured in fresh processes, and the new time must lie in
// the published 95 % interval (tuner/verify/published.h has the rule). A measurement that is not inside is
// repeated, after a pause. Prints a block per task, then how many were inside. False: a time is OUTSIDE or
// cannot be judged, or a task has no certified answer.
Result<bool> verify_times(const std::vector<CliTask>& tasks, const TimesOptions& options);

}  // namespace tuner
