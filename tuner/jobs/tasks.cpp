#include "tuner/jobs/tasks.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/backend.h"
#include "compiler_core/base/c_names.h"
#include "compiler_core/base/room.h"
#include "compiler_core/graph/graph.h"
#include "compiler_core/host_spelling.h"
#include "compiler_core/ir/foreign_code.h"
#include "db/device_records.h"
#include "templates/workload/task_memory.h"

namespace tuner {

namespace {

Result<CliTask> make_task(const Workload& workload, const std::string& target_text) {
  CliTask task{.workload = workload};
  ASSIGN_OR_RETURN(task.target, resolve_target(target_text));
  RETURN_IF_ERROR(kernel_suits(workload, task.target));
  task.key = workload.key();
  task.target_name = task.target.name();
  return task;
}

Result<ChosenKernel> default_kernel(const CliTask& task, std::string note) {
  ASSIGN_OR_RETURN(const std::vector<const AnyTemplate*> serving,
                   templates_for(task.workload, task.target, task.algorithms));
  ChosenKernel chosen{.schedule_template = serving.front(), .note = std::move(note)};
  ASSIGN_OR_RETURN(chosen.instance, serving.front()->apply(task.workload, task.target));
  chosen.config = chosen.instance->space().at(chosen.instance->space().default_index());
  return chosen;
}

}  // namespace

Status kernel_suits(const Workload& workload, const Target& target) {
  if (workload.op_name() != "kernel" || templates_for(workload, target)) return Status::ok();
  return invalid_argument("found \"", target.name(),
                          "\", expected one that runs such a kernel: \"cuda -arch=sm_90a\" if it is in CUDA, "
                          "else \"cpu\"");
}

Result<std::vector<CliTask>> read_tasks(const std::string& file, const std::string& target,
                                        const std::string& any_gpu) {
  ASSIGN_OR_RETURN(const std::vector<JobEntry> entries, read_job_file(file));
  std::vector<CliTask> tasks;
  for (size_t i = 0; i < entries.size(); ++i) {
    const std::string where = target.empty()
                                  ? str(file, ": ", entries.size() > 1 ? str("[", i, "].") : "", "target: ")
                                  : "--target: ";
    std::string wanted = target.empty() ? entries[i].target : target;
    if (!any_gpu.empty() && means_gpu_of_host(wanted) && !resolve_target(wanted)) wanted = any_gpu;
    Result<CliTask> task = make_task(entries[i].workload, wanted);
    if (!task) return task.status().with_context(where);
    task->algorithms = entries[i].algorithms;
    task->name = entries[i].name;
    task->constants = constants_of(entries[i]);
    if (entries[i].states_run_timeout) task->run_timeout_s = entries[i].measure.run_timeout_s;
    task->memory_limit_bytes = entries[i].measure.memory_limit_bytes;
    tasks.push_back(*std::move(task));
  }
  return tasks;
}

Result<CliTask> task_from_keys(std::string_view workload_key, std::string_view target) {
  ASSIGN_OR_RETURN(const Workload workload, workload_from_key(workload_key));
  return make_task(workload, std::string(target));
}

Result<ChosenKernel> choose_config(const CliTask& task, std::string_view template_name, int template_version,
                                   std::string_view config_text) {
  ChosenKernel chosen{.schedule_template = find_template(template_name)};
  if (chosen.schedule_template == nullptr)
    return not_found("template ", template_name, ", which this program does not have");
  if (chosen.schedule_template->version() != template_version)
    return not_found("version ", template_version, " of template ", template_name,
                     "; this program has version ", chosen.schedule_template->version(),
                     ", where the config may mean something else");
  const Support support = chosen.schedule_template->supports(task.workload, task.target);
  if (!support.yes)
    return not_found("template ", template_name, ", which does not serve this task: ", support.reason);
  ASSIGN_OR_RETURN(chosen.config, config_from_text(config_text));
  ASSIGN_OR_RETURN(chosen.instance, chosen.schedule_template->apply(task.workload, task.target));
  const Result<ConfigIndex> index = chosen.instance->space().index_of(chosen.config);
  if (!index) return not_found("a config that is not valid here: ", index.message());
  return chosen;
}

Result<ChosenKernel> choose_kernel(const CliTask& task, const Store* store) {
  if (store == nullptr) return default_kernel(task, "no database yet: this is the default config");
  Result<TunedConfig> best = best_on_device(*store, {.workload_key = task.key, .target = task.target_name},
                                            templates_of(task.algorithms));
  if (!best && best.status().code() != StatusCode::kNotFound) return best.status();
  if (!best)
    return default_kernel(task, "nothing tuned for this task on this target: this is the default config");
  Result<ChosenKernel> chosen =
      choose_config(task, best->template_name, best->template_version, best->config);
  if (!chosen && chosen.status().code() == StatusCode::kNotFound)
    return default_kernel(task, str("trial ", best->trial_name, " rests on ", chosen.message(),
                                    ". This is the default config"));
  if (!chosen) return chosen.status();
  chosen->tuned = *std::move(best);
  return chosen;
}

Result<std::unique_ptr<Store>> open_if_there(const std::string& path) {
  Result<std::unique_ptr<Store>> store = Store::open(path, Store::Mode::kRead);
  if (!store && store.status().code() == StatusCode::kNotFound) return std::unique_ptr<Store>();
  return store;
}

std::string kernel_name(const CliTask& task) {
  // Extents are good inside a name; words of others need not be.
  const std::string said = task.workload.shape_name();
  const bool extents = !said.empty() && said[0] >= '0' && said[0] <= '9';
  const std::string shape = extents ? said : as_c_name(said);
  return str(task.workload.op_name(), "_", shape, "_",
             sha256_hex(task.key + "\n" + task.target_name).substr(0, 8));
}

Status measurable_here(const std::string& target_name) {
  ASSIGN_OR_RETURN(const Target target, parse_target(target_name));
  const Backend& backend = backend_of(target);
  const Status runs = backend.runs_here(target);
  if (runs) return runs;
  if (target.emulated && backend.emulates())
    return invalid_argument("no worker measures \"", target_name, "\": ", runs.message());
  return invalid_argument(
      "no worker on this machine measures \"", target_name, "\": ", runs.message(),
      ". Submit to a daemon with a worker on such a machine (--daemon)",
      backend.emulates()
          ? ", or compile here and measure there (tuner pack); tuner verify proves the schedules here"
          : "");
}

namespace {

// The first line that says what is wrong, with what the compiler wrote around it left out.
std::string first_error(const std::string& said) {
  std::istringstream lines(said);
  std::string first, line;
  while (std::getline(lines, line)) {
    if (first.empty()) first = line;
    // The assembler writes Error.
    if (line.find("rror:") != std::string::npos || line.find("undefined") != std::string::npos)
      return first == line ? line : str(first, " ", line);
  }
  return first;
}

}  // namespace

Status compiles_here(const Workload& workload, const std::string& target_name) {
  const Program reference = workload.compute();
  if (reference.foreign == nullptr) return Status::ok();
  ASSIGN_OR_RETURN(const Target target, parse_target(target_name));
  const Backend& backend = backend_of(target);
  ASSIGN_OR_RETURN(const std::vector<const AnyTemplate*> serving, templates_for(workload, target));
  ASSIGN_OR_RETURN(const auto instance, serving.front()->apply(workload, target));
  ASSIGN_OR_RETURN(const Program first,
                   instance->instantiate(instance->space().at(instance->space().default_index())));
  for (const auto& [what, program] : {std::pair("the default config", &first), {"the reference", &reference}})
    if (const Status compiled = backend.compile(*program, target).status(); !compiled) {
      if (compiled.code() == StatusCode::kNotFound)
        return invalid_argument(program->foreign->command == nullptr ? "compiler: " : "", compiled.message());
      if (compiled.code() != StatusCode::kInvalidConfig) return compiled.with_context(str(what, ": "));
      return invalid_argument(what, ": ", first_error(compiled.message()));
    }
  return Status::ok();
}

bool has_function(const Workload& workload) {
  const Program reference = workload.compute();
  return reference.foreign == nullptr || reference.foreign->command == nullptr;
}

Status fits_here(const Workload& workload, int64_t candidate_limit_bytes, bool this_machine) {
  Room room{.candidate_bytes = candidate_limit_bytes};
  if (this_machine) {
    room.memory_bytes = available_memory();
    room.disk_bytes = available_disk(shared_cache_folder());
  }
  return fits(workload, room);
}

}  // namespace tuner
