// A kernel as text, for `tuner show`.
#pragma once

#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "db/store.h"
#include "tuner/jobs/tasks.h"

namespace tuner {

// Every form that some target has: schedule, loops, roofline, and those of the back ends.
std::vector<std::string> kernel_forms();

// The lowering passes of some target, each once: "reductions, simplify, ...".
std::string kernel_pass_names();
// Which targets have which, for help: "on llvm targets reductions, ...; on cuda targets fragments, ...".
std::string kernel_passes_text();

struct KernelView {
  std::string as = "loops";  // a form
  std::string after;         // a pass of lowering, or "all": the loops behind it; empty: as scheduled
  // A schedule to print it under, in the form that `as` schedule has; empty: its own.
  std::string replay_file;
};

// InvalidArgument: the task's target has no such form or pass, or the two do not go together.
Status check_view(const CliTask& task, const KernelView& view);

// The kernel as `view` says, under a heading of comments. `store`: where a roofline reads the course of the
// search; may be null. InvalidArgument: check_view(), or the schedule cannot be read or replayed.
Result<std::string> kernel_text(const CliTask& task, const ChosenKernel& kernel, const KernelView& view,
                                const Store* store);

}  // namespace tuner
