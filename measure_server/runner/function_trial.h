// FunctionTrial: a function with a kernel's signature that somebody else wrote, run in a process of its own:
// what it answers, and how long it takes beside another. Used by `tuner compile --use`.
//
// No jail: the function goes into its user's programs anyway, and may need threads, files and libraries. A
// process of its own and a deadline keep a crash or a hang from ending the command.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {

struct FunctionTrial {
  // An operand. Each ends at an unmapped page; those that are given are filled from their file, and read-only
  // unless they are a result too. Results are written to FILE.first and FILE.last.
  struct Buffer {
    std::string file;
    int64_t bytes = 0;
    bool given = false, result = false;
  };
  // An argument: `offset` bytes behind the beginning of a buffer.
  struct Argument {
    size_t buffer = 0;
    int64_t offset = 0;
  };
  struct Function {
    std::string library, symbol;
    std::vector<Argument> args;
    int64_t workspace_bytes = 0, workspace_bytes_per_thread = 0;  // none: it gets a null pointer
  };
  int threads = 1;
  std::vector<Buffer> buffers;
  std::vector<Function> functions;  // the first is on trial; all are timed in turn if there are more
};

struct FunctionTimes {
  // Of each function, the median a call, with warm operands; empty: one was tried alone.
  std::vector<double> ns;
};

// Runs it in a runner, whose files go to `folder`. InvalidArgument: the function cannot be loaded, returns
// something else than 0, crashes, writes beside a result, or has not returned after `limit`. Failed: this
// could not be found out. Aborted: `interrupted`, which is asked some twenty times a second, said so; the
// runner is gone then.
Result<FunctionTimes> try_functions(const FunctionTrial& trial, const std::string& folder,
                                    std::chrono::milliseconds limit,
                                    const std::function<bool()>& interrupted);

// In the runner: `runner --try-function REQUEST`, where REQUEST was written by try_functions(). Returns the
// exit status.
int try_functions_here(const std::string& request);

}  // namespace tuner
