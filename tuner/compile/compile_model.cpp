#include "tuner/compile/compile_model.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/backend.h"
#include "compiler_core/base/c_names.h"
#include "compiler_core/base/mapped_file.h"
#include "compiler_core/graph/passes.h"
#include "db/resolve/resolve.h"
#include "tuner/bundle/bundle_folder.h"
#include "tuner/compile/check_inputs.h"
#include "tuner/compile/library_check.h"
#include "tuner/jobs/job_file.h"
#include "tuner/jobs/job_groups.h"
#include "tuner/jobs/locked_tasks.h"
#include "tuner/model/layouts.h"
#include "tuner/model/model_file.h"
#include "tuner/model/model_package.h"
#include "tuner/model/model_run.h"
#include "tuner/model/named_file.h"
#include "tuner/model/plan_file.h"
#include "tuner/study/present.h"
#include "tuner/text/format.h"
#include "tuner/text/hint.h"

namespace tuner {

namespace {

void tell(const CompileRequest& request, const std::string& what) {
  if (request.progress) request.progress(what);
}

// Steps that are no work go, and with them the numbers of others: uses are found again by what their steps
// write.
void plan_with_uses(const CompileRequest& request, PreparedModel& model) {
  std::vector<graph::ValueId> written;
  for (const FunctionUse& use : model.uses) {
    model.steps.steps[use.step].foreign = true;
    written.push_back(model.steps.steps[use.step].writes);
  }
  model.memory = plan_memory(model.steps, request.target, request.algorithms);
  for (size_t u = 0; u < written.size(); ++u) {
    const auto step = std::ranges::find(model.steps.steps, written[u], &ModelStep::writes);
    CHECK(step != model.steps.steps.end()) << "the step of " << model.uses[u].word << " is gone";
    model.uses[u].step = static_cast<size_t>(step - model.steps.steps.begin());
  }
}

}  // namespace

Result<PreparedModel> prepare_model(const CompileRequest& request, const std::function<bool()>& interrupted) {
  PreparedModel out;
  out.name =
      request.name.empty() ? as_c_name(std::filesystem::path(request.model).stem().string()) : request.name;
  RETURN_IF_ERROR(check_c_name(out.name).with_context("--name: "));
  if (!backend_of(request.target).ships_objects())
    return invalid_argument(
        "--target ", request.target.name(),
        ": models are libraries, and kernels for it are not linked; expected a CPU, as \"cpu\"");
  const auto stopped = [&] {
    return interrupted() ? Status(StatusCode::kAborted, "interrupted") : Status::ok();
  };
  tell(request, "reading the model");
  ASSIGN_OR_RETURN(out.graph, read_model_file(request.model, request.options));
  RETURN_IF_ERROR(stopped());
  std::vector<std::string> names;
  for (const graph::ValueId v : out.graph.inputs) names.push_back(out.graph[v].name);
  ASSIGN_OR_RETURN(const auto given, named_files(request.check_inputs, "--check-input", names));
  ASSIGN_OR_RETURN(out.check_inputs, check_inputs(out.graph, given));
  ASSIGN_OR_RETURN(std::vector<StatePair> states, state_pairs(out.graph, request.states));
  ASSIGN_OR_RETURN(const MappedFile file, map_input(request.model, "an ONNX model"));
  out.digest = sha256_hex(file.bytes());
  graph::Graph graph = out.graph;
  number_values(graph);
  tell(request, "rewriting the graph");
  RETURN_IF_ERROR(optimize(graph, model_evaluator()).with_context(request.model + ": "));
  RETURN_IF_ERROR(stopped());
  auto steps = partition(std::move(graph), std::move(states));
  if (!steps) return steps.status().with_context(request.model + ": ");
  out.steps = *std::move(steps);
  RETURN_IF_ERROR(stopped());
  const Layouts layouts = (request.blocks ? blocked_layouts : plain_layouts)(out.steps, request.target);
  RETURN_IF_ERROR(apply_layouts(out.steps, layouts, request.target).with_context(request.model + ": "));
  ASSIGN_OR_RETURN(out.uses, find_uses(request.uses, out.steps, request.target));
  if (backend_of(request.target).runs_here(request.target))
    for (const FunctionUse& use : out.uses) {
      ASSIGN_OR_RETURN(UseCheck check, UseCheck::run(use, out.steps.steps[use.step].workload,
                                                     request.target.threads, interrupted));
      out.checks.push_back(std::move(check));
    }
  RETURN_IF_ERROR(stopped());
  plan_with_uses(request, out);
  out.kernels = kernels_of(out.steps, request.target, request.algorithms);
  return out;
}

namespace {

// Whether a step of ours runs the kernel. The others stand beside functions of --use, to be compared with
// them.
bool is_run(const PreparedModel& model, size_t kernel) {
  for (size_t s = 0; s < model.kernels.of_step.size(); ++s)
    if (model.kernels.of_step[s] == kernel && !model.steps.steps[s].foreign) return true;
  return false;
}

}  // namespace

Status check_model_lock(const CompileRequest& request, const PreparedModel& model) {
  if (!request.lock) return Status::ok();
  std::vector<CliTask> tasks;
  for (size_t k = 0; k < model.kernels.tasks.size(); ++k)
    if (is_run(model, k)) tasks.push_back(model.kernels.tasks[k]);
  return check_locked(*request.lock, tasks,
                      str("compile it without --lock, which tunes it, then tuner lock ",
                          shell_quoted(request.output), " -o ", shell_quoted(request.lock->path())));
}

JobRow model_job(const CompileRequest& request, const ModelKernels& kernels) {
  const JobEntry defaults;
  JobRow job{.trials = request.trials,
             .search = defaults.search,
             .seed = defaults.seed,
             .options = defaults.measure,
             .stop = defaults.stop};
  job.stop.time_limit_s = request.time_limit_s;
  for (size_t k = 0; k < kernels.tasks.size(); ++k) {
    const CliTask& task = kernels.tasks[k];
    job.tasks.push_back({task.key, task.target_name, task.algorithms, kernels.uses[k], task.constants});
  }
  return job;
}

Status tune_model(const CompileRequest& request, const PreparedModel& model,
                  const std::function<bool()>& interrupted, JobOutcome& outcome) {
  JobRow job = model_job(request, model.kernels);
  job.request_id = new_request_id();
  for (const CliTask& task : model.kernels.tasks) {
    RETURN_IF_ERROR(measurable_here(task.target_name));
    RETURN_IF_ERROR(fits_here(task.workload, job.options.memory_limit_bytes, /*this_machine=*/true));
  }
  JobRun run(job, /*fresh=*/false, {.db = request.db, .own_worker = true}, interrupted);
  const Status done = run.run();
  outcome = run.outcome();
  return done;
}

namespace {

// Runs the library in the folder for about a second, step by step and whole, and no step is left out. Writes
// the times into its plan, the last file.
Status time_inside(const std::string& folder, std::vector<BundleFile>& files) {
  constexpr bool kEveryStep = true;
  ASSIGN_OR_RETURN(ModelRun run, ModelRun::open(folder, {}));
  ASSIGN_OR_RETURN(const std::vector<ModelTimes> first, time_models({&run}, 1, kEveryStep));
  constexpr double kNanoseconds = 1e9;
  // A run of more than a fifth of a second is long enough to be measured once.
  constexpr double kLong = kNanoseconds / 5;
  const bool is_long = first[0].whole_ns > kLong;
  const int rounds =
      is_long ? 1 : static_cast<int>(std::clamp(kNanoseconds / 2 / first[0].whole_ns, 3.0, 50.0));
  std::vector<ModelTimes> times = first;
  if (!is_long) {
    ASSIGN_OR_RETURN(times, time_models({&run}, rounds, kEveryStep));
  }
  files.back().bytes = plan_with_times(files.back().bytes, times[0], rounds);
  return Status::ok();
}

Result<std::vector<BundleKernel>> build_kernels(const CompileRequest& request, const PreparedModel& model,
                                                const std::function<bool()>& interrupted) {
  Result<std::unique_ptr<Store>> opened = open_if_there(request.db);
  if (!opened && !request.lock) return opened.status();
  const std::unique_ptr<Store> store = opened ? *std::move(opened) : nullptr;
  const ResolverOptions known{.present = [](const Target& target) { return present_here(target); },
                              .learn_if_missing = true};
  ResolverOptions locked = known;
  locked.lock = request.lock ? &*request.lock : nullptr;
  const Resolver best(store.get(), known), chosen(store.get(), locked);
  std::vector<BundleKernel> kernels;
  for (size_t k = 0; k < model.kernels.tasks.size(); ++k) {
    if (interrupted()) return Status(StatusCode::kAborted, "interrupted");
    const CliTask& task = model.kernels.tasks[k];
    tell(request, str("building kernel ", k + 1, " of ", model.kernels.tasks.size()));
    const BundleTask named{task, kernel_name(task)};
    ASSIGN_OR_RETURN(BundleKernel kernel,
                     build_kernel(named, model.name, is_run(model, k) ? chosen : best, {.schedule = false}));
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

// Holds the library in the folder against the model as it was read.
Status check(const CompileRequest& request, const PreparedModel& model, const ModelToPack& pack,
             const std::string& folder, const std::function<bool()>& interrupted, CompiledReport& report) {
  tell(request, "checking");
  const LibraryToCheck library{folder, model.graph, pack.model, pack.memory, model.check_inputs};
  const auto checked = check_library(library, {request.accept_error, interrupted, request.progress});
  if (!checked) return checked.status().with_context(request.model + ": ");
  report.error = checked->error;
  report.checked_steps = checked->steps;
  return Status::ok();
}

std::string time_line(const FunctionUse& use, const std::string& step, const UseCheck::Times& times) {
  char ratio[32];
  std::snprintf(ratio, sizeof ratio, "%.2f", times.ours_ns / times.used_ns);
  return str(step, ": ", use.symbol, " of ", use.from, " takes ", format_time(times.used_ns), ", our kernel ",
             format_time(times.ours_ns), " (", ratio, " times as long; warm, in turn)");
}

// Puts the used functions in the place of our kernels, and times each beside the one it replaces.
Status use_functions(const PreparedModel& model, const std::function<bool()>& interrupted, ModelToPack& pack,
                     CompiledReport& report) {
  for (size_t u = 0; u < model.uses.size(); ++u) {
    const FunctionUse& use = model.uses[u];
    size_t& kernel = pack.kernel_of_step[use.step];
    UseCheck::Times times;
    if (u < model.checks.size()) {
      ASSIGN_OR_RETURN(times, model.checks[u].time_beside(pack.kernels[kernel], interrupted));
      report.used.push_back(time_line(use, pack.model.steps[use.step].name, times));
    }
    pack.used.push_back({pack.kernels.size(), use.from, use.library});
    pack.kernels.push_back(used_kernel(use, CliTask(pack.kernels[kernel].task), times));
    kernel = pack.kernels.size() - 1;
  }
  return Status::ok();
}

// Kernels that no step runs any more.
void drop_unused(ModelToPack& pack) {
  std::vector<size_t> place(pack.kernels.size());
  size_t kept = 0;
  for (size_t k = 0; k < pack.kernels.size(); ++k) {
    if (std::ranges::find(pack.kernel_of_step, k) == pack.kernel_of_step.end()) continue;
    if (kept != k) pack.kernels[kept] = std::move(pack.kernels[k]);
    place[k] = kept++;
  }
  pack.kernels.resize(kept);
  for (size_t& kernel : pack.kernel_of_step) kernel = place[kernel];
  for (UsedFunction& used : pack.used) used.kernel = place[used.kernel];
}

}  // namespace

Result<std::unique_ptr<BundleFolder>> open_model_folder(const CompileRequest& request,
                                                        const PreparedModel& model) {
  return BundleFolder::open(request.output, model.name, kModelIndex);
}

Result<CompiledReport> build_model(const CompileRequest& request, PreparedModel model, BundleFolder& folder,
                                   const std::function<bool()>& interrupted) {
  ASSIGN_OR_RETURN(std::vector<BundleKernel> kernels, build_kernels(request, model, interrupted));
  CompiledReport report;
  ModelToPack pack{.name = model.name,
                   .target = request.target,
                   .model = std::move(model.steps),
                   .memory = std::move(model.memory),
                   .kernels = std::move(kernels),
                   .kernel_of_step = model.kernels.of_step,
                   .source = std::filesystem::path(request.model).filename().string(),
                   .source_digest = model.digest,
                   .used = {}};
  RETURN_IF_ERROR(use_functions(model, interrupted, pack, report));
  drop_unused(pack);
  for (const BundleKernel& kernel : pack.kernels) {
    if (kernel.stands_alone()) continue;
    ++report.kernels;
    report.tuned += is_choice(kernel.kind) ? 1 : 0;
    if (!kernel.note.empty()) report.notes.push_back(str(kernel.task.key, ": ", kernel.note));
  }
  tell(request, "packing the weights");
  ASSIGN_OR_RETURN(std::vector<BundleFile> files, model_files(pack, folder.staging().string()));
  RETURN_IF_ERROR(folder.stage(files));
  if (backend_of(request.target).runs_here(request.target)) {
    RETURN_IF_ERROR(check(request, model, pack, folder.staging().string(), interrupted, report));
    if (interrupted()) return Status(StatusCode::kAborted, "interrupted");
    tell(request, "timing the steps");
    RETURN_IF_ERROR(time_inside(folder.staging().string(), files));
    RETURN_IF_ERROR(folder.stage({files.back()}));
  }
  if (request.before_publishing) request.before_publishing();
  RETURN_IF_ERROR(folder.publish(files));
  for (const BundleFile& file : files) report.files.push_back(file.path);
  return report;
}

}  // namespace tuner
