// TaskData: the inputs of a task and its reference answer, as files that the runner reads. Made once per
// (workload, seed) and kept. Beside them lie further inputs, of a seed that was drawn when they were made and
// that nobody is told, with their answer: what a candidate is asked at a moment it cannot know. Constants stay.
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
  struct Set {
    std::vector<std::pair<std::string, std::string>> inputs, references;
  };
  std::vector<Set> others;            // one, or none where an answer is too expensive to be made twice
  double absolute = 0, relative = 0;  // see templates/workload/tolerance.h
  int64_t made_bytes = 0;             // of files that were not there before
};

// A second answer is made for tasks of at most this much work and this many bytes of operands.
inline constexpr double kOthersUpToFlops = 2e9;
inline constexpr int64_t kOthersUpToBytes = int64_t{64} << 20;

// Returns the data in its own folder below `directory`; computes it if it is not there yet.
Result<TaskData> task_data(const Workload& workload, uint64_t seed, const std::string& directory);

}  // namespace tuner
