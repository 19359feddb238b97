// TaskData: the inputs of a task and its reference answer, as files that the runner reads. Made once per
// (workload, seed) and kept.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "compiler_core/base/status.h"
#include "measure_server/runner/input_data.h"
#include "templates/workload/workload.h"

namespace tuner {

struct TaskData {
  std::vector<std::pair<std::string, std::string>> inputs, references;  // argument name, path
  double absolute = 0, relative = 0;                                    // see templates/workload/tolerance.h
};

// Returns the data in its own folder below `directory`; computes it if it is not there yet.
Result<TaskData> task_data(const Workload& workload, uint64_t seed, const std::string& directory);

}  // namespace tuner
