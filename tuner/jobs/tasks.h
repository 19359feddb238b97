// Turns a job file into tasks that can be compiled, for query, build, show and verify.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/target.h"
#include "db/store.h"
#include "templates/schedule_template.h"
#include "tuner/jobs/job_file.h"

namespace tuner {

// An entry of a job file, resolved for its target.
struct CliTask {
  Workload workload;
  Target target;
  std::string key, target_name;  // canonical, as in the database
  std::string algorithms;        // algorithms that kernels may use, as in the file; empty: any
  std::string name;              // name in the file, for the C function; empty: kernel_name() makes one
  // The kind of times its answer should rest on, as in the file; warm without constants.
  Constants constants = Constants::kWarm;
  // Limits of a candidate, as in the file; no time: the file states none.
  std::optional<double> run_timeout_s;
  int64_t memory_limit_bytes = MeasureOptions().memory_limit_bytes;
};

// Reads the tasks of a job file. `target` replaces that of every entry unless it is empty, and `any_gpu` the
// GPU of this host, where there is none. Errors name the file.
Result<std::vector<CliTask>> read_tasks(const std::string& file, const std::string& target,
                                        const std::string& any_gpu = {});
Result<CliTask> task_from_keys(std::string_view workload_key, std::string_view target);

// One config of one task, ready to be instantiated.
struct ChosenKernel {
  const AnyTemplate* schedule_template = nullptr;
  std::unique_ptr<TemplateInstance> instance;
  Config config;
  std::optional<TunedConfig> tuned;  // what is known about it; empty for the default config
  std::string note;                  // why it is the default, for stderr; empty if it is not
};

// Returns the tuned config of the task. If the database has none that this program can still build, returns
// the default config of the first template that serves the task. `store` may be null: no database.
Result<ChosenKernel> choose_kernel(const CliTask& task, const Store* store);
// Returns this config of this template.
Result<ChosenKernel> choose_config(const CliTask& task, std::string_view template_name, int template_version,
                                   std::string_view config_text);

// Opens for reading. If there is no database yet, returns null, which is no error.
Result<std::unique_ptr<Store>> open_if_there(const std::string& path);

// Returns "conv2d_1x512x7x7_512x512x3x3_5f3a90c1": a C identifier that differs between workloads and targets.
std::string kernel_name(const CliTask& task);

// False for programs of users: nothing of them could be linked, and `tuner build` writes their knobs only.
bool has_function(const Workload& workload);

// OK unless the workload is a user's kernel: those in CUDA are for GPUs, others for CPUs. InvalidArgument in
// one line: the target is of the other kind.
Status kernel_suits(const Workload& workload, const Target& target);

// OK if this machine can measure the target: without a remote daemon, a GPU task needs its GPU here.
// InvalidArgument: why not and what to do. (A job that nobody can measure would wait for ever.)
Status measurable_here(const std::string& target_name);

// OK for our own operators. Where code of a user's is compiled, compiles the default config and what judges
// it, and runs neither: what no config can mend is found before a job is made. InvalidArgument has what the
// compiler says in one line; Unavailable: it cannot be asked.
Status compiles_here(const Workload& workload, const std::string& target_name);

// OK if memory and disk suffice to measure the workload: a candidate's operands must fit its limit, and so
// must the reference answer if this machine makes it. InvalidArgument has the figures.
Status fits_here(const Workload& workload, int64_t candidate_limit_bytes, bool this_machine);

}  // namespace tuner
