// Random valid configs of every template that serves a task, built, run and compared with the reference
// answer: in the runner's jail, or, where the back end emulates its kernels, in the emulator, which also
// reports races, accesses out of bounds and the like; the device is not needed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "tuner/jobs/tasks.h"

namespace tuner {

struct VerifyOptions {
  std::string file;                  // of the tasks, for messages
  uint64_t samples = 100, seed = 0;  // configs of each template and task, and what draws them and the inputs
  bool oracle = false;               // also in the plain interpreter, where the shape is small enough
  bool verbose = false;              // also names configs that are right
};

// Prints each template's verdicts and a summary. Returns how many configs were wrong. An error: a task cannot
// be verified here, or nothing could be checked.
Result<int64_t> verify_tasks(const std::vector<CliTask>& tasks, const VerifyOptions& options);

}  // namespace tuner
