// Writes job files that job_file.h reads.
#pragma once

#include <string>
#include <vector>

#include "db/records.h"
#include "templates/workload/workload.h"

namespace tuner {

struct JobTextEntry {
  Workload workload;           // valid
  std::string target = "cpu";  // as in a job file
  int64_t uses = 1;
  int trials = 0;  // 0: left out of the file
  Constants constants = Constants::kWarm;
};

// Returns a list with one entry per line; keys with default values are left out. parse_job_text() reads back
// the same workloads.
std::string job_text(const std::vector<JobTextEntry>& entries);

}  // namespace tuner
