// Makes the data of a task: inputs, and the reference answer, which is computed here. Made once per
// (workload, seed) and kept.
#pragma once

#include "measure_server/worker/task_files.h"

namespace tuner {

// Returns the data in its own folder below `directory`; computes it if it is not there yet, by `threads`
// threads (0: as many as reference_threads() tells).
Result<TaskData> task_data(const Workload& workload, uint64_t seed, const std::string& directory,
                           int threads = 0);

}  // namespace tuner
