// Tuning what a run needs and a database has not, by the `tuner` command beside this program: what is timed
// is what a user would get.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "templates/workload/workload.h"
#include "tests/bench/cpu/known_configs.h"

namespace tuner {

// One entry of a job file.
std::string job_entry(const Workload& workload, int threads, Algorithms algorithms);

struct TuneOptions {
  Algorithms algorithms = Algorithms::kAny;
  int threads = 1, trials = 0;  // trials each
  std::string db;
  std::optional<uint64_t> seed;  // of the search; none: the command's
};

// Submits these workloads as one job and waits. Kernels of all algorithms and of direct ones are searched
// apart. Failed: the command failed; what it printed is on stderr.
Status tune(const std::vector<Workload>& workloads, const TuneOptions& options);

}  // namespace tuner
