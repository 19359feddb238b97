// Tuning what a run needs and a database has not, by the `tuner` command beside this program: what is timed
// is what a user would get.
#pragma once

#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "templates/workload.h"
#include "tests/bench/cpu/known_configs.h"

namespace tuner {

// One entry of a job file.
std::string job_entry(const Workload& workload, int threads, Algorithms algorithms);

// Submits these workloads with `trials` each and waits. Kernels of all algorithms and of direct ones are
// searched apart. Failed: the command failed; what it printed is on stderr.
Status tune(const std::vector<Workload>& workloads, Algorithms algorithms, int threads, int trials,
            const std::string& db);

}  // namespace tuner
