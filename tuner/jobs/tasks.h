// From a job file to something that can be compiled: what query, build, show and verify share.
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

// An entry of a job file for the device it is meant for.
struct CliTask {
  Workload workload;
  Target target;
  std::string key, target_name;  // canonical, as in the database
  std::string algorithms;        // that kernels may use, as the file allows; empty: any
  std::string name;              // the file's own, for the C function; empty: kernel_name() makes one
  // What the times of its answer mean: as the file asks; warm without constants.
  Constants constants = Constants::kWarm;
};

// The tasks of a job file; `target` replaces that of every entry unless it is empty. Errors name the file.
Result<std::vector<CliTask>> read_tasks(const std::string& file, const std::string& target);
Result<CliTask> task_from_keys(std::string_view workload_key, std::string_view target);

// One config of one task, ready to be instantiated.
struct ChosenKernel {
  const AnyTemplate* schedule_template = nullptr;
  std::unique_ptr<TemplateInstance> instance;
  Config config;
  std::optional<TunedConfig> tuned;  // what is known about it; none: it is the default config
  std::string note;                  // why it is the default, for stderr; else empty
};

// The tuned config of the task, or the default config of the first template that serves it when the database
// has none that this program can still build. `store` may be null: no database.
Result<ChosenKernel> choose_kernel(const CliTask& task, const Store* store);
// This config of this template.
Result<ChosenKernel> choose_config(const CliTask& task, std::string_view template_name, int template_version,
                                   std::string_view config_text);

// Opens for reading. No database yet is not an error here: null.
Result<std::unique_ptr<Store>> open_if_there(const std::string& path);

// "conv2d_1x512x7x7_512x512x3x3_5f3a90c1": a C identifier, different for different workloads and targets.
std::string kernel_name(const CliTask& task);

// Without a daemon elsewhere this machine measures, and a GPU task needs its GPU here: OK, or InvalidArgument
// saying why not and what to do. A job that nobody can measure would wait for ever.
Status measurable_here(const std::string& target_name);

// Whether there is the memory and disk to measure the workload: a candidate's operands within its limit and,
// when this machine makes the reference answer, that too. InvalidArgument with the figures else.
Status fits_here(const Workload& workload, int64_t candidate_limit_bytes, bool this_machine);

}  // namespace tuner
