// A job file of a user's kernel with another source in the kernel's place: `tuner kernel judge`.
#pragma once

#include <string>

#include "compiler_core/base/status.h"
#include "tuner/jobs/tasks.h"

namespace tuner {

struct JudgeWish {
  std::string file, job;  // the kernel to judge; the job file that says what it has to compute
  std::string function;   // of the file; empty: that of the job file
  std::string against, against_function;  // the kernel to race with; empty: the reference function, of a
                                          // kernel in CUDA the job file's own kernel
  std::string target;                     // empty: that of the job file
};

// Each is a task of its own, whose kernel is its default config.
struct JudgedKernels {
  CliTask candidate, rival;
  CliTask truth;           // whose answers are right: the reference, or the job file's own source
  std::string rival_name;  // for people: "sgemm_plain of sgemm_plain.c"
  MeasureOptions measure;
};

// Reads all of them. The file's own includes are looked for beside it, then in the job file's folder. It is
// C, C++ or CUDA by its ending (.c; .cc, .cpp, .cxx; .cu), otherwise what the job file says. InvalidArgument
// in one line: the job file has no kernel or several, a file is missing, nothing is there to race with.
Result<JudgedKernels> read_judged_kernels(const JudgeWish& wish);

}  // namespace tuner
