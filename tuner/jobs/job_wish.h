// The jobs that a job file and what is said beside it on the command line ask for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "tuner/jobs/job_groups.h"

namespace tuner {

// Said instead of the file; what is empty is the file's.
struct JobWish {
  std::string target, search;
  std::optional<int> trials;
  bool every_config = false;  // a sweep: every valid config, with all its samples
  std::optional<uint64_t> seed;
  int priority = 0;
  std::optional<double> stop_below;  // a share: 0.05
  std::optional<double> time_limit_s;
};

// Returns the jobs, without ids and request ids. InvalidArgument: the file or a target cannot be read, or a
// space is too large to be swept.
Result<std::vector<JobGroup>> wished_groups(const std::string& file, const JobWish& wish);

// "12" is 12; nothing if the text is no number of trials.
std::optional<int> trials_from_text(const std::string& text);

}  // namespace tuner
