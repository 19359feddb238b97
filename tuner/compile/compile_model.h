// From a model's file to a library: read, rewritten, parted into steps, tuned, built, written, checked. What
// `tuner compile` does; the steps before and after tuning are tuner/model's.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/runtime/kernel.h"
#include "compiler_core/target.h"
#include "db/resolve/answer_lock.h"
#include "tuner/bundle/bundle_folder.h"
#include "tuner/compile/emulator_check.h"
#include "tuner/compile/used_functions.h"
#include "tuner/model/memory_plan.h"
#include "tuner/model/model_kernels.h"
#include "tuner/model/partition.h"
#include "tuner/model/read_model.h"

namespace tuner {

struct JobOutcome;  // tuner/client/job_run.h, which brings the messages of the daemon
struct JobRow;      // db/records.h

struct CompileRequest {
  std::string model;  // path of the .onnx file
  ModelOptions options;
  std::string name;                  // C name of the library; empty: made from the file's
  std::string output;                // folder
  Target target;                     // of an accelerator's model the CPU that has the rest
  std::vector<Target> more_targets;  // other GPUs that the library is for; `target` is one then, too
  bool several_cpus = false;         // they are CPUs, those with more instruction sets first (--for)
  // What its templates serve of a network in 8 bits becomes kernels for it; all else runs on the CPU.
  std::optional<Target> accelerator;
  std::string algorithms;   // that kernels may use, canonical; empty: any
  bool allow_tf32 = false;  // products of models for GPUs may take 11 bits of each float32
  // Products of weights multiply numbers of this type (tuner/model/narrow_products.h); nothing: float32.
  std::optional<DType> precision;
  bool blocks = false;  // images in blocks of channels (tuner/model/layouts.h)
  std::string db;
  std::vector<std::string>
      uses;          // NODE=LIBRARY:FUNCTION, of steps that somebody else's functions take (used_functions.h)
  bool tune = true;  // without a lock file
  std::optional<AnswerLock> lock;   // its entries are built, whatever the database says
  int trials = 128;                 // a distinct kernel, on average
  double time_limit_s = 600;        // for all trials and races; 0: no limit
  std::vector<std::string> states;  // INPUT=OUTPUT: what a caller may give one memory (state_pairs.h)
  std::vector<std::string>
      check_inputs;         // NAME=FILE: inputs that the library is checked with; others are drawn
  double accept_error = 0;  // accepted of a step in the check, of its largest element; 0: what types allow
  std::function<void(const std::string&)> progress;  // told what is done now; empty: nobody asks
  std::function<void()> before_publishing;           // called before the folder gets its files; may be empty
};

// What one CPU has of a library for several.
struct CpuPlan {
  ModelSteps steps;
  MemoryPlan memory;
  ModelKernels kernels;
};

// A model as far as it goes without measuring.
struct PreparedModel {
  std::string name, digest;  // C name of the library; SHA-256 of the file
  graph::Graph graph;        // as it was read
  ModelSteps steps;
  MemoryPlan memory;
  ModelKernels kernels;
  std::vector<ModelKernels> more_kernels;  // the same for each of more_targets, if those are GPUs
  std::vector<CpuPlan> more_cpus;          // steps, memory and kernels for each, if those are CPUs
  std::vector<FunctionUse> uses;
  std::vector<UseCheck> checks;             // one a use; empty where the target does not run here
  std::vector<AlignedBuffer> check_inputs;  // one per input of the graph, for the check at the end
  size_t narrowed = 0;                      // products that multiply numbers of request.precision
};
// `interrupted` is asked while functions are tried; Aborted: it said so. Other errors as read_model_file(),
// optimize() and partition(); of find_uses(), check_inputs() and UseCheck::run().
Result<PreparedModel> prepare_model(const CompileRequest& request, const std::function<bool()>& interrupted);

// OK if the lock file, if there is one, has an entry that can be built for each kernel that a step of ours
// runs. NotFound as check_locked(), with what to do.
Status check_model_lock(const CompileRequest& request, const PreparedModel& model);

// The job that tunes the kernels, without a request id: a gain of a kernel weighs as many times as steps run
// it.
JobRow model_job(const CompileRequest& request, const ModelKernels& kernels);

// Tunes the model's kernels here, all as one job that continues where an earlier one was stopped. OK also
// after an interruption: outcome.interrupted tells. Errors as JobRun::run().
Status tune_model(const CompileRequest& request, const PreparedModel& model,
                  const std::function<bool()>& interrupted, JobOutcome& outcome);

struct CompiledReport {
  std::vector<std::string> files;  // written, below the folder
  size_t kernels = 0;              // of ours
  size_t tuned = 0;                // of them, those tuned for just their task
  std::vector<std::string> notes;  // of kernels that are not, one line each: what is lost
  std::vector<std::string> cpus;   // of a library for several CPUs, one line each
  std::vector<std::string> used;   // of used functions, one line each: their time beside that of our kernel
  // Of what steps made of inputs that were drawn or given, against the model as it was read, in double
  // precision: the largest error of any element, relative to the largest element of its value. Nothing where
  // the target is not this machine.
  std::optional<double> error;
  size_t checked_steps = 0;  // that were compared
  // With request.precision: the largest difference of an output to the model in double precision, relative to
  // the output's largest element. Nothing where the target is not this machine.
  std::optional<double> output_error;
  size_t narrowed = 0;           // as PreparedModel
  size_t accelerated_steps = 0;  // that the accelerator runs
  std::string device;            // GPU that the library ran on; empty: this CPU, or it did not run
  std::string not_run;           // that it did not, for people; empty: it did
  EmulatedKernels emulated;      // of a model for GPUs
};
// What was checked, and how: a line each, for people.
std::vector<std::string> checked_lines(const CompiledReport& report);
// The folder to write to, locked; opened before minutes of tuning, so that one that cannot be written is told
// at once.
Result<std::unique_ptr<BundleFolder>> open_model_folder(const CompileRequest& request,
                                                        const PreparedModel& model);

// Builds the best known kernels, times used functions beside those they replace, and holds what the library
// computes against the reference. Only then the folder gets its files; it stays as it was where there is an
// error. Failed, one line: a step computes something else than the model (library_check.h).
// Aborted: `interrupted`, which is asked between kernels and while functions are timed, said so.
Result<CompiledReport> build_model(const CompileRequest& request, const PreparedModel& model,
                                   BundleFolder& folder, const std::function<bool()>& interrupted);

}  // namespace tuner
