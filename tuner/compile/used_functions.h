// `tuner compile --use NODE=lib.so:symbol`: a function of the user's own, or of a library, takes the place of
// a step.
//
// It has a kernel's signature (tuner_kernel.h: tuner_entry). Its arguments are the operands of the step's
// workload in their order, constants as the model has them, the result last. It gets no workspace.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler_core/base/scratch_folder.h"
#include "compiler_core/target.h"
#include "measure_server/runner/function_trial.h"
#include "tuner/bundle/bundle.h"
#include "tuner/model/model_package.h"
#include "tuner/model/partition.h"
#include "tuner/verify/verify_data.h"

namespace tuner {

// One --use, found.
struct FunctionUse {
  size_t step = 0;
  std::string word;                            // as it was given, for messages
  std::string from, symbol;                    // from: the library's file name
  std::shared_ptr<const std::string> library;  // its bytes
};

// InvalidArgument, one line each: not of the form; no such step, or one that is taken already; no such file,
// none for this CPU, no such function in it; the same function name in two libraries.
Result<std::vector<FunctionUse>> find_uses(const std::vector<std::string>& words, const ModelSteps& steps,
                                           const Target& target);

// One use, held against the reference of its step's workload.
class UseCheck {
 public:
  // Calls the function in a process of its own. InvalidArgument: what try_functions() says, or the answer is
  // wrong. Aborted: `interrupted` said so.
  static Result<UseCheck> run(const FunctionUse& use, const Workload& workload, int threads,
                              const std::function<bool()>& interrupted);

  struct Times {
    double used_ns = 0, ours_ns = 0;  // of a call, warm, in turn with each other
  };
  // Times it beside our kernel for the same workload, and checks it once more. Errors as run().
  Result<Times> time_beside(const BundleKernel& ours, const std::function<bool()>& interrupted) const;

 private:
  Status check_answer(const std::string& ending) const;
  Status add_packed(const BundleKernel& ours, FunctionTrial& trial) const;

  std::string word_;
  std::shared_ptr<const ScratchFolder> folder_;
  std::shared_ptr<const VerifyData> data_;
  FunctionTrial trial_;
  std::chrono::milliseconds limit_{0};
};

// As a kernel of the library: no code, its arguments. `times`: for plan.json; zeros: not timed.
BundleKernel used_kernel(const FunctionUse& use, const CliTask& task, const UseCheck::Times& times);

}  // namespace tuner
