// What a model is compiled for: CPUs, GPUs, or an accelerator beside this CPU.
#pragma once

#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "tuner/compile/compile_model.h"

namespace tuner {

// Sets `target`, `more_targets` and `accelerator` of the request from the words of --target; none: "cpu". An
// accelerator's model is for this CPU, which has the steps that it lacks. `threads` are the CPU's. Refuses an
// accelerator beside other targets or beside --blocks, which `request` says, in a line that names the option.
Status choose_targets(std::vector<std::string> words, int threads, CompileRequest& request);

// The same for the words of --for: one library for several CPUs, those with more instruction sets first.
// InvalidArgument, with the option: a word is no CPU of x86-64 (parse_cpus()), or `request` has --use.
Status choose_cpus(const std::string& words, int threads, CompileRequest& request);

}  // namespace tuner
