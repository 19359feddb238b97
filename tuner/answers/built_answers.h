// The configs of what was built: a folder of `tuner build` or `tuner compile`, which says in its index what
// each of its kernels is.
#pragma once

#include <string>
#include <vector>

#include "db/resolve/resolve.h"
#include "tuner/jobs/tasks.h"

namespace tuner {

// True if the folder holds manifest.json or plan.json.
bool is_built(const std::string& folder);

struct BuiltKernel {
  CliTask task;
  Answer answer;  // kind, template, config and note, as they were when it was built
};
// Reads the kernels of the folder, in its order; functions of other people (`--use`) are left out.
// InvalidArgument: the index is damaged, or of another format; the message begins with its path.
Result<std::vector<BuiltKernel>> built_kernels(const std::string& folder);

}  // namespace tuner
