// Job files written: what job_file.h reads.
#pragma once

#include <string>
#include <vector>

#include "templates/workload/workload.h"

namespace tuner {

struct JobTextEntry {
  Workload workload;           // valid
  std::string target = "cpu";  // as in a job file
  int64_t uses = 1;
  int trials = 0;  // 0: not said
};

// A list, one entry a line, keys that have their defaults left out. parse_job_text() reads the same
// workloads.
std::string job_text(const std::vector<JobTextEntry>& entries);

}  // namespace tuner
