// The data of a task as files that the runner reads: inputs, which follow from a seed, and the reference
// answer. Beside them lie further inputs, of a seed that candidates are not told, with their answer: what a
// candidate is asked at a moment it cannot know. Constants stay.
//
// task_data.h computes the answers; a runner without a compiler makes the inputs by itself and fetches the
// answers (remote_maker.h).
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
  using Files = std::vector<std::pair<std::string, std::string>>;  // argument name, path
  Files inputs, references;
  struct Set {
    Files inputs, references;
    uint64_t seed = 0;  // 0: not drawn yet
  };
  std::vector<Set> others;            // one, or none where an answer is too expensive to be made twice
  double absolute = 0, relative = 0;  // see templates/workload/tolerance.h
  int64_t made_bytes = 0;             // of files that were not there before
};

// A second answer is made for tasks of at most this much work and this many bytes of operands.
inline constexpr double kOthersUpToFlops = 2e9;
inline constexpr int64_t kOthersUpToBytes = int64_t{64} << 20;

// Returns where the data of the task is, in a folder of its own below `directory`, whether or not it is
// there.
TaskData task_files(const Workload& workload, uint64_t seed, const std::string& directory);
// Whether all of it is there and undamaged; takes the seed of the others from what is there, and marks it as
// used.
bool is_complete(const Workload& workload, TaskData& data);

// The values of the arguments that are given (input, constant, inout), in their order: of the seed, or, where
// `other_seed` is not 0, inputs of that one and constants of the seed.
std::vector<std::vector<float>> given_values(const Workload& workload, const Program& program, uint64_t seed,
                                             uint64_t other_seed = 0);
// The same as bytes, of an operator that says what its operands are, too. InvalidArgument: what it brings is
// of another type or shape.
Result<std::vector<std::string>> given_bytes(const Workload& workload, const Program& program, uint64_t seed,
                                             uint64_t other_seed = 0);
// Makes the folder and writes the inputs among these.
Status write_inputs(const Program& program, const std::vector<std::string>& bytes, bool others,
                    const TaskData::Files& files);
// Data in the making: `data` in a folder beside its own, which no other process looks into, for all workers
// of a host share that place, and each draws a seed of its own for the others. What was not put in its place
// is removed with this.
class TaskDataMaking {
 public:
  explicit TaskDataMaking(const TaskData& of);
  ~TaskDataMaking();
  TaskDataMaking(const TaskDataMaking&) = delete;
  // Puts it in its place, whole, where from now on who finds it uses it; `to` is what is there afterwards. If
  // another process was first, that is its work. Failed: the disk.
  Status put_in_place(const Workload& workload, TaskData& to) const;

  TaskData data;
};

}  // namespace tuner
