#include "tuner/compile/compile_model.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/backend.h"
#include "compiler_core/base/c_names.h"
#include "compiler_core/base/input_file.h"
#include "compiler_core/base/mapped_file.h"
#include "compiler_core/base/process_emulator.h"
#include "compiler_core/codegen/compile.h"
#include "compiler_core/graph/passes.h"
#include "db/resolve/resolve.h"
#include "tuner/bundle/bundle_folder.h"
#include "tuner/client/job_run.h"
#include "tuner/compile/check_inputs.h"
#include "tuner/compile/library_check.h"
#include "tuner/gpu_model/gpu_package.h"
#include "tuner/jobs/job_file.h"
#include "tuner/jobs/job_groups.h"
#include "tuner/jobs/locked_tasks.h"
#include "tuner/model/layouts.h"
#include "tuner/model/model_file.h"
#include "tuner/model/model_package.h"
#include "tuner/model/model_run.h"
#include "tuner/model/named_file.h"
#include "tuner/model/narrow_products.h"
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

// Products and convolutions of float32 may take TF32.
void allow_tf32(ModelSteps& model) {
  for (ModelStep& step : model.steps) {
    std::visit(
        [&]<class W>(W w) {
          if constexpr (requires { w.allow_tf32; }) {
            w.allow_tf32 = w.dtype == DType::kFloat32;
            step.workload = std::move(w);
          }
        },
        step.workload.op());
  }
}

// Its kernels are launches that the emulator checks: models of them are tuner/gpu_model's.
bool is_for_gpus(const Target& target) { return backend_of(target).emulates(); }

// Kernels are tuned for those CPUs of the library that this machine is.
Status check_some_cpu_is_here(const CompileRequest& request) {
  const auto is_here = [](const Target& t) { return backend_of(t).runs_here(t).is_ok(); };
  if (is_here(request.target) || std::ranges::any_of(request.more_targets, is_here)) return Status::ok();
  return invalid_argument(
      "--for: this machine has none of the CPUs, so it cannot tune for them. Compile on one of them, or add "
      "--no-tune, which takes what is known and predicts the rest");
}

// A CPU, or GPUs; and what models for GPUs cannot have.
Status check_targets(const CompileRequest& request) {
  const Target& first = request.target;
  const bool on_gpu = is_for_gpus(first);
  if (!on_gpu && !backend_of(first).ships_objects())
    return invalid_argument(
        "--target ", first.name(),
        ": models are libraries, and kernels for it are not linked; expected a CPU, as \"cpu\", or a GPU, as "
        "\"cuda -arch=sm_90a\"");
  for (const Target& other : request.more_targets)
    if (!request.several_cpus && (!on_gpu || !is_for_gpus(other)))
      return invalid_argument("--target ", other.name(),
                              ": a library is for one CPU, or for several GPUs, not for \"", first.name(),
                              "\" and this; give one --target, or several CPUs by --for");
  if (!on_gpu && request.allow_tf32)
    return invalid_argument("--allow-tf32: \"", first.name(), "\" has no TF32; it is for GPUs. Leave it out");
  if (request.several_cpus && request.tune) RETURN_IF_ERROR(check_some_cpu_is_here(request));
  if (!on_gpu) return Status::ok();
  if (first.emulated)
    return invalid_argument("--target ", first.name(),
                            ": stands for the emulator's CPU Programs, of which no library is made; leave "
                            "-emulated out");
  if (!request.uses.empty())
    return invalid_argument("--use ", request.uses.front(),
                            ": a step of a model for GPUs cannot be a function of the host; leave --use out");
  if (request.blocks) return invalid_argument("--blocks: images of models for GPUs are plain; leave it out");
  if (request.tune && !request.more_targets.empty())
    return invalid_argument(
        "several --target: kernels are tuned on the GPU that is here, for one target; add --no-tune");
  return Status::ok();
}

// Every CPU that the library is for has a unit for the products that are asked for.
Status check_precision(const CompileRequest& request) {
  if (!request.precision) return Status::ok();
  const DType dtype = *request.precision;
  RETURN_IF_ERROR(check_has_unit(request.target, dtype));
  for (const Target& other : request.more_targets) RETURN_IF_ERROR(check_has_unit(other, dtype));
  const std::string option = str("--precision ", dtype_name(dtype), ": ");
  if (request.accelerator)
    return invalid_argument(option, "is for CPUs, found \"", request.accelerator->name(), "\"; leave it out");
  if (!request.uses.empty())
    return invalid_argument(option, "functions of --use take float32 (", request.uses.front(),
                            "); leave one of the two out");
  return Status::ok();
}

// The steps of the optimized graph for a target, whose images lie as the request says.
Result<ModelSteps> steps_for(const CompileRequest& request, graph::Graph graph, std::vector<StatePair> states,
                             const Target& target, const Target* accelerator) {
  auto steps = partition(std::move(graph), std::move(states), kLeastGuarded, accelerator,
                         target.family->in_process() ? &target : nullptr);
  if (!steps) return steps;
  if (request.precision) narrow_products(*steps, *request.precision);
  const Layouts layouts = accelerator != nullptr ? accelerated_layouts(*steps)
                          : request.blocks       ? blocked_layouts(*steps, target)
                                                 : chosen_layouts(*steps, target);
  RETURN_IF_ERROR(apply_layouts(*steps, layouts, target, accelerator));
  return steps;
}

// Vectors differ in length, and with them layouts and what may lie where: each CPU has a plan of its own.
Status plan_more_cpus(const CompileRequest& request, const graph::Graph& graph,
                      const std::vector<StatePair>& states, PreparedModel& out) {
  for (const Target& target : request.more_targets) {
    CpuPlan& plan = out.more_cpus.emplace_back();
    ASSIGN_OR_RETURN(plan.steps, steps_for(request, graph, states, target, nullptr));
    plan.memory = plan_memory(plan.steps, target, request.algorithms);
    plan.kernels = kernels_of(plan.steps, target, request.algorithms);
  }
  return Status::ok();
}

}  // namespace

Result<PreparedModel> prepare_model(const CompileRequest& request, const std::function<bool()>& interrupted) {
  PreparedModel out;
  out.name =
      request.name.empty() ? as_c_name(std::filesystem::path(request.model).stem().string()) : request.name;
  RETURN_IF_ERROR(check_c_name(out.name).with_context("--name: "));
  RETURN_IF_ERROR(check_targets(request));
  RETURN_IF_ERROR(check_precision(request));
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
  if (request.accelerator)
    RETURN_IF_ERROR(join_quantized_rows(graph, model_evaluator()).with_context(request.model + ": "));
  // CPUs and accelerators multiply bytes; on GPUs the float templates are faster than what serves the rest.
  const bool on_bytes = request.target.family->in_process() || request.accelerator.has_value();
  RETURN_IF_ERROR(optimize(graph, model_evaluator(), {}, on_bytes).with_context(request.model + ": "));
  RETURN_IF_ERROR(stopped());
  const Target* const accelerator = request.accelerator ? &*request.accelerator : nullptr;
  if (!is_for_gpus(request.target))
    RETURN_IF_ERROR(plan_more_cpus(request, graph, states, out).with_context(request.model + ": "));
  auto steps = steps_for(request, std::move(graph), std::move(states), request.target, accelerator);
  if (!steps) return steps.status().with_context(request.model + ": ");
  out.steps = *std::move(steps);
  RETURN_IF_ERROR(stopped());
  if (request.allow_tf32) allow_tf32(out.steps);
  out.narrowed = static_cast<size_t>(std::ranges::count_if(out.steps.steps, is_narrowed));
  ASSIGN_OR_RETURN(out.uses, find_uses(request.uses, out.steps, request.target));
  if (backend_of(request.target).runs_here(request.target))
    for (const FunctionUse& use : out.uses) {
      ASSIGN_OR_RETURN(UseCheck check, UseCheck::run(use, out.steps.steps[use.step].workload,
                                                     request.target.threads, interrupted));
      out.checks.push_back(std::move(check));
    }
  RETURN_IF_ERROR(stopped());
  plan_with_uses(request, out);
  out.kernels = kernels_of(out.steps, request.target, request.algorithms, accelerator);
  if (is_for_gpus(request.target))
    for (const Target& target : request.more_targets)
      out.more_kernels.push_back(kernels_of(out.steps, target, request.algorithms));
  return out;
}

namespace {

// Whether a step of ours runs the kernel. The others stand beside functions of --use, to be compared with
// them.
bool is_run(const ModelSteps& steps, const ModelKernels& kernels, size_t kernel) {
  for (size_t s = 0; s < kernels.of_step.size(); ++s)
    if (kernels.of_step[s] == kernel && !steps.steps[s].foreign) return true;
  return false;
}

// The kernels that are tuned here: of a library for several CPUs those of the CPUs that this machine has.
std::vector<const ModelKernels*> kernels_to_tune(const CompileRequest& request, const PreparedModel& model) {
  if (model.more_cpus.empty()) return {&model.kernels};
  std::vector<const ModelKernels*> here;
  const auto add = [&](const Target& target, const ModelKernels& kernels) {
    if (backend_of(target).runs_here(target)) here.push_back(&kernels);
  };
  add(request.target, model.kernels);
  for (size_t c = 0; c < model.more_cpus.size(); ++c)
    add(request.more_targets[c], model.more_cpus[c].kernels);
  CHECK(!here.empty()) << "check_targets() lets no such request pass";
  return here;
}

}  // namespace

Status check_model_lock(const CompileRequest& request, const PreparedModel& model) {
  if (!request.lock) return Status::ok();
  std::vector<CliTask> tasks;
  for (size_t k = 0; k < model.kernels.tasks.size(); ++k)
    if (is_run(model.steps, model.kernels, k)) tasks.push_back(model.kernels.tasks[k]);
  for (const CpuPlan& cpu : model.more_cpus)
    tasks.insert(tasks.end(), cpu.kernels.tasks.begin(), cpu.kernels.tasks.end());
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
  const std::vector<const ModelKernels*> tuned = kernels_to_tune(request, model);
  JobRow job = model_job(request, *tuned.front());
  for (size_t t = 1; t < tuned.size(); ++t) {
    JobRow more = model_job(request, *tuned[t]);
    std::ranges::move(more.tasks, std::back_inserter(job.tasks));
  }
  job.request_id = new_request_id();
  for (const ModelKernels* kernels : tuned)
    for (const CliTask& task : kernels->tasks) {
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
Status time_inside(const std::string& folder, std::optional<size_t> cpu, std::vector<BundleFile>& files) {
  constexpr bool kEveryStep = true;
  RunOptions options;
  options.cpu = cpu;
  ASSIGN_OR_RETURN(ModelRun run, ModelRun::open(folder, options));
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
  files.back().bytes = plan_with_times(files.back().bytes, times[0], rounds, cpu.value_or(0));
  return Status::ok();
}

// GPUs have no kernel for some operators: whose step that is.
std::string context_of(const CompileRequest& request, const PreparedModel& model, size_t kernel) {
  if (!is_for_gpus(request.target)) return "";
  const auto step = std::ranges::find(model.kernels.of_step, kernel) - model.kernels.of_step.begin();
  return str(request.model, ": step ", model.steps.steps[static_cast<size_t>(step)].name, ": ");
}

Result<std::vector<BundleKernel>> build_kernels(const CompileRequest& request, const PreparedModel& model,
                                                const ModelSteps& steps, const ModelKernels& wanted,
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
  for (size_t k = 0; k < wanted.tasks.size(); ++k) {
    if (interrupted()) return Status(StatusCode::kAborted, "interrupted");
    const CliTask& task = wanted.tasks[k];
    tell(request, str("building kernel ", k + 1, " of ", wanted.tasks.size()));
    const BundleTask named{task, kernel_name(task)};
    Result<BundleKernel> kernel =
        build_kernel(named, model.name, is_run(steps, wanted, k) ? chosen : best, {.schedule = false});
    if (!kernel) return kernel.status().with_context(context_of(request, model, k));
    // Files of its own are in the model's library.
    for (const ShippedKernel::File& file : kernel->code.files) kernel->facts.erase(file.role);
    kernels.push_back(*std::move(kernel));
  }
  return kernels;
}

// Holds the library in the folder against the model as it was read.
Status check(const CompileRequest& request, const PreparedModel& model, const ModelToPack& pack,
             const std::string& folder, std::optional<size_t> cpu, const std::function<bool()>& interrupted,
             CompiledReport& report) {
  tell(request, "checking");
  const LibraryToCheck library{folder, model.graph, pack.model, pack.memory, model.check_inputs, cpu};
  // Of two numbers with 11 bits each, and of sums of their products.
  constexpr double kErrorOfTf32 = 4e-3;
  const double accepted =
      request.allow_tf32 && request.accept_error == 0 ? kErrorOfTf32 : request.accept_error;
  const auto checked = check_library(library, {.accept_error = accepted,
                                               .interrupted = interrupted,
                                               .progress = request.progress,
                                               .whole = request.precision.has_value()});
  if (!checked) return checked.status().with_context(request.model + ": ");
  report.error = std::max(report.error.value_or(0), checked->error);
  if (checked->output_error)
    report.output_error = std::max(report.output_error.value_or(0), *checked->output_error);
  report.checked_steps += checked->steps;
  return Status::ok();
}

std::string time_line(const FunctionUse& use, const std::string& step, const UseCheck::Times& times) {
  char ratio[32];
  std::snprintf(ratio, sizeof ratio, "%.2f", times.ours_ns / times.used_ns);
  return str(step, ": ", use.symbol, " of ", use.from, " takes ", format_time(times.used_ns), ", our kernel ",
             format_time(times.ours_ns), " (", ratio, " times as long; warm, in turn)");
}

// Where libraries of ours lie, counted from the folder of this program: as built, and as installed.
Result<std::string> own_library(std::string_view file) {
  const std::filesystem::path bin = std::filesystem::path(path_of_this_program()).parent_path();
  for (const char* folder : {"../lib", "../" TUNER_LIBRARY_FOLDER}) {
    const std::filesystem::path path = bin / folder / file;
    std::error_code error;
    if (std::filesystem::exists(path, error))
      return read_file(path.string(), "a library of ours", size_t{1} << 30);
  }
  return failed((bin / "../lib" / file).lexically_normal().string(),
                ": is not there; build or install it, it runs kernels of the accelerator");
}

// Kernels for the accelerator: a library of ours runs them.
Status add_accelerated(ModelToPack& pack, CompiledReport& report) {
  std::map<std::string, std::shared_ptr<const std::string>, std::less<>> libraries;
  std::vector<bool> known(pack.kernels.size(), false);
  for (size_t s = 0; s < pack.model.steps.size(); ++s) {
    if (!pack.model.steps[s].accelerated) continue;
    ++report.accelerated_steps;
    const size_t k = pack.kernel_of_step[s];
    if (known[k]) continue;
    known[k] = true;
    const auto host = backend_of(pack.kernels[k].task.target).host_library();
    CHECK(host) << pack.kernels[k].task.target_name << " runs no steps of models";
    auto& library = libraries[std::string(host->file)];
    if (library == nullptr) {
      ASSIGN_OR_RETURN(std::string bytes, own_library(host->file));
      library = std::make_shared<const std::string>(std::move(bytes));
    }
    pack.used.push_back({.kernel = k,
                         .from = std::string(host->file),
                         .library = library,
                         .step = std::string(host->step),
                         .costs = std::string(host->costs),
                         .timeline = std::string(host->timeline)});
  }
  return Status::ok();
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

std::vector<std::string> checked_lines(const CompiledReport& report) {
  std::vector<std::string> lines = report.cpus;
  const EmulatedKernels& e = report.emulated;
  if (e.checked + e.skipped > 0)
    lines.push_back(str("checked in the emulator: ", e.checked, " of ", e.checked + e.skipped, " kernels",
                        e.sampled > 0 ? str(", ", e.sampled, " of them by a sample of their blocks") : ""));
  if (!report.device.empty()) lines.push_back("run on " + report.device);
  if (report.error) {
    char number[32];
    std::snprintf(number, sizeof number, "%.2g", *report.error);
    lines.push_back(str("checked: largest error ", number, " of a value's largest element; all outputs, ",
                        report.checked_steps, " steps"));
  }
  if (report.output_error) {
    char number[32];
    std::snprintf(number, sizeof number, "%.2g", *report.output_error);
    lines.push_back(str(report.narrowed, " products in bfloat16: outputs are at most ", number,
                        " of their largest element off the model in double precision"));
  }
  return lines;
}

Result<std::unique_ptr<BundleFolder>> open_model_folder(const CompileRequest& request,
                                                        const PreparedModel& model) {
  return BundleFolder::open(request.output, model.name, kModelIndex);
}

namespace {

ModelToPack to_pack(const CompileRequest& request, const PreparedModel& model, const Target& target,
                    std::vector<BundleKernel> kernels, const CpuPlan* cpu = nullptr) {
  return {.name = model.name,
          .target = target,
          .model = cpu != nullptr ? cpu->steps : model.steps,
          .memory = cpu != nullptr ? cpu->memory : model.memory,
          .kernels = std::move(kernels),
          .kernel_of_step = cpu != nullptr ? cpu->kernels.of_step : model.kernels.of_step,
          .source = std::filesystem::path(request.model).filename().string(),
          .source_digest = model.digest,
          .used = {}};
}

// A function of a user's is no kernel of ours; a library that runs an accelerator's kernel is not one.
void count_kernels(const ModelToPack& pack, CompiledReport& report) {
  for (size_t k = 0; k < pack.kernels.size(); ++k) {
    const BundleKernel& kernel = pack.kernels[k];
    const bool is_used = std::ranges::find(pack.used, k, &UsedFunction::kernel) != pack.used.end();
    if (is_used && !backend_of(kernel.task.target).host_library()) continue;
    ++report.kernels;
    report.tuned += is_choice(kernel.kind) ? 1 : 0;
    if (!kernel.note.empty()) report.notes.push_back(str(kernel.task.key, ": ", kernel.note));
  }
}

// The files of the folder, written into its staging place.
Result<std::vector<BundleFile>> write_files(const CompileRequest& request,
                                            const std::vector<ModelToPack>& variants, BundleFolder& folder,
                                            const std::function<bool()>& interrupted,
                                            CompiledReport& report) {
  const std::string staging = folder.staging().string();
  if (!is_for_gpus(request.target)) {
    tell(request, "packing the weights");
    return model_files(variants, staging);
  }
  for (const ModelToPack& variant : variants) {
    ASSIGN_OR_RETURN(const EmulatedKernels emulated,
                     check_in_emulator(variant.kernels, interrupted, request.progress));
    report.emulated.checked += emulated.checked;
    report.emulated.sampled += emulated.sampled;
    report.emulated.skipped += emulated.skipped;
  }
  tell(request, "packing the weights");
  return gpu_model_files(variants, host_target(), staging);
}

// The same model for all other targets of the library.
Status add_variants(const CompileRequest& request, const PreparedModel& model,
                    const std::function<bool()>& interrupted, std::vector<ModelToPack>& variants) {
  for (size_t v = 0; v < request.more_targets.size(); ++v) {
    const CpuPlan* const cpu = model.more_cpus.empty() ? nullptr : &model.more_cpus[v];
    ASSIGN_OR_RETURN(std::vector<BundleKernel> kernels,
                     build_kernels(request, model, cpu != nullptr ? cpu->steps : model.steps,
                                   cpu != nullptr ? cpu->kernels : model.more_kernels[v], interrupted));
    variants.push_back(to_pack(request, model, request.more_targets[v], std::move(kernels), cpu));
  }
  return Status::ok();
}

// Runs a library for several CPUs as each of them that this machine has: held against the model, then timed.
Status run_on_cpus(const CompileRequest& request, const PreparedModel& model,
                   const std::vector<ModelToPack>& cpus, BundleFolder& folder, std::vector<BundleFile>& files,
                   const std::function<bool()>& interrupted, CompiledReport& report) {
  const std::string staging = folder.staging().string();
  for (size_t c = 0; c < cpus.size(); ++c) {
    const Target& target = cpus[c].target;
    const auto tuned =
        std::ranges::count_if(cpus[c].kernels, [](const BundleKernel& k) { return is_choice(k.kind); });
    std::string line =
        str("\"", target.name(), "\": ", cpus[c].kernels.size(), " kernels, ", tuned, " tuned; ");
    if (const Status runs = backend_of(target).runs_here(target); !runs) {
      report.cpus.push_back(str(line, "not checked: ", runs.message()));
      continue;
    }
    RETURN_IF_ERROR(check(request, model, cpus[c], staging, c, interrupted, report));
    if (interrupted()) return {StatusCode::kAborted, "interrupted"};
    tell(request, "timing the steps");
    RETURN_IF_ERROR(time_inside(staging, c, files));
    RETURN_IF_ERROR(folder.stage({files.back()}));
    report.cpus.push_back(line + "checked");
  }
  return Status::ok();
}

// Runs the library in the folder where this machine can: held against the model, then timed.
Status run_library(const CompileRequest& request, const PreparedModel& model, const ModelToPack& pack,
                   BundleFolder& folder, std::vector<BundleFile>& files,
                   const std::function<bool()>& interrupted, CompiledReport& report) {
  const Backend& backend = backend_of(request.target);
  std::vector<Target> targets = {request.target};
  targets.insert(targets.end(), request.more_targets.begin(), request.more_targets.end());
  const auto here =
      std::ranges::find_if(targets, [&](const Target& t) { return backend.runs_here(t).is_ok(); });
  if (here == targets.end()) {
    report.not_run = str(is_for_gpus(request.target) ? "not run, and not measured: " : "not checked: ",
                         request.target.name(), " is not this machine");
    return Status::ok();
  }
  if (is_for_gpus(*here)) report.device = backend.hardware_here(*here);
  const std::string staging = folder.staging().string();
  RETURN_IF_ERROR(check(request, model, pack, staging, std::nullopt, interrupted, report));
  if (interrupted()) return {StatusCode::kAborted, "interrupted"};
  tell(request, "timing the steps");
  RETURN_IF_ERROR(time_inside(staging, std::nullopt, files));
  return folder.stage({files.back()});
}

}  // namespace

Result<CompiledReport> build_model(const CompileRequest& request, const PreparedModel& model,
                                   BundleFolder& folder, const std::function<bool()>& interrupted) {
  ASSIGN_OR_RETURN(std::vector<BundleKernel> kernels,
                   build_kernels(request, model, model.steps, model.kernels, interrupted));
  CompiledReport report;
  report.narrowed = model.narrowed;
  std::vector<ModelToPack> variants = {to_pack(request, model, request.target, std::move(kernels))};
  ModelToPack& pack = variants.front();
  RETURN_IF_ERROR(add_accelerated(pack, report));
  RETURN_IF_ERROR(use_functions(model, interrupted, pack, report));
  drop_unused(pack);
  RETURN_IF_ERROR(add_variants(request, model, interrupted, variants));
  const bool several_cpus = !model.more_cpus.empty();
  for (size_t v = 0; v < (several_cpus ? variants.size() : 1); ++v) count_kernels(variants[v], report);
  ASSIGN_OR_RETURN(std::vector<BundleFile> files,
                   write_files(request, variants, folder, interrupted, report));
  RETURN_IF_ERROR(folder.stage(files));
  RETURN_IF_ERROR(several_cpus
                      ? run_on_cpus(request, model, variants, folder, files, interrupted, report)
                      : run_library(request, model, variants.front(), folder, files, interrupted, report));
  if (request.before_publishing) request.before_publishing();
  RETURN_IF_ERROR(folder.publish(files));
  for (const BundleFile& file : files) report.files.push_back(file.path);
  return report;
}

}  // namespace tuner
