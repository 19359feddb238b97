// A program that is built and run with knobs in its words or its environment, in place of a function
// ("language": "command" in job files, docs/own_kernels.md).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {

struct SourceKernel;

struct SourceCommand {
  // Words; {NAME} stands for a knob or size. The first one is ./FILE, of the job's folder or made by the
  // build, or the name of a program. `build`: may be empty.
  std::vector<std::string> build, run;
  std::map<std::string, std::string> environment;  // of both; {NAME} in values, too
  std::string pattern;     // of the result: PrintedResult; empty: the wall clock of `run`
  std::string unit = "s";  // of the number: kResultUnits
};

inline constexpr std::string_view kResultUnits = "ns, us, ms, s, 1/s, GFLOP/s, GB/s";

// How the number becomes nanoseconds: number * scale_ns, or scale_ns / number if it is a rate. A rate of work
// takes the kernel's own count of it, so that the time is that of one run. InvalidArgument: the unit is not
// known, or the kernel does not say its `flops` or `bytes`.
struct ResultScale {
  double scale_ns = 1;
  bool is_rate = false;
};
Result<ResultScale> result_scale(const SourceKernel& kernel);

// What a host must offer (compiler_core/foreign/commands.h): "command:make,command:python3", or "command:./"
// if it needs no program but its own.
std::string commands_needed(const SourceCommand& command);
// A name of C for it, after the first of its own files that `run` names, or else after its program.
std::string command_name(const SourceCommand& command);

// What must hold of the command of a kernel that has one; all but names, knobs and constraints.
// InvalidArgument in one line that begins with the key.
Status check_command(const SourceKernel& kernel);

}  // namespace tuner
