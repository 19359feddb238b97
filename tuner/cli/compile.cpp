// tuner compile MODEL.onnx -o DIR: a network as one library with tuned kernels inside.
#include "tuner/compile/compile_model.h"

#include <cstdio>
#include <memory>

#include "compiler_core/base/measure_limits.h"
#include "templates/schedule_template.h"
#include "tuner/answers/job_answers.h"
#include "tuner/cli/command.h"
#include "tuner/cli/log.h"
#include "tuner/client/job_run.h"
#include "tuner/command_line/interrupt.h"
#include "tuner/command_line/work_watch.h"
#include "tuner/compile/compile_targets.h"
#include "tuner/jobs/locked_tasks.h"
#include "tuner/model/constant_file.h"
#include "tuner/text/hint.h"

namespace tuner::cli {
namespace {

struct CompileOptions {
  CompileRequest request;
  std::vector<std::string> targets;  // none: "cpu"
  std::string lock, cpus, precision = "float32";
  int64_t batch = 0;  // 0: not given
  int threads = 1;
  std::vector<std::string> dims, constants, algorithms;
  bool no_tune = false;
};

Status complete_options(CompileOptions& options) {
  CompileRequest& r = options.request;
  ASSIGN_OR_RETURN(r.options.extents, model_extents(options.batch, options.dims));
  ASSIGN_OR_RETURN(r.options.constants, model_constants(options.constants));
  if (!options.algorithms.empty()) {
    ASSIGN_OR_RETURN(r.algorithms, canonical_algorithms(options.algorithms));
  }
  if (!options.cpus.empty() && !options.targets.empty())
    return invalid_argument("expected one of --target and --for, found both");
  RETURN_IF_ERROR(options.cpus.empty() ? choose_targets(options.targets, options.threads, r)
                                       : choose_cpus(options.cpus, options.threads, r));
  if (options.precision != "float32") r.precision = dtype_from_name(options.precision);
  ASSIGN_OR_RETURN(r.lock, read_lock(options.lock));
  r.tune = !options.no_tune && !r.lock;
  return Status::ok();
}

std::string megabytes(int64_t bytes) {
  const int64_t hundredths = bytes / 10'000;
  return str(static_cast<double>(hundredths) / 100.0, " MB");
}

std::string stopped_line() { return str("stopped: nothing is written. To continue: ", this_command()); }

// An error, or the end that Ctrl-C put to it.
int report_or_stop(const Status& status) {
  if (status.code() != StatusCode::kAborted || !interrupted()) return report(status);
  std::fprintf(stderr, "%s\n", stopped_line().c_str());
  return kExitFailed;
}

int compile(CompileOptions& options) {
  WorkWatch watch(stopped_line());
  watch.guard(nullptr);
  if (const Status s = complete_options(options); !s) return report(s);
  options.request.progress = [&](const std::string& what) { watch.at(what); };
  options.request.before_publishing = [&] { watch.release(); };
  const CompileRequest& request = options.request;
  Result<PreparedModel> model = prepare_model(request, interrupted);
  if (!model) return report_or_stop(model.status());
  if (const Status s = check_model_lock(request, *model); !s) return report(s);
  const auto folder = open_model_folder(request, *model);
  if (!folder) return report(folder.status());
  watch.release();
  std::fprintf(stderr, "%s: %zu operators, %zu steps by %zu kernels; arena %s\n", request.model.c_str(),
               model->graph.nodes.size(), model->steps.steps.size(), model->kernels.tasks.size(),
               megabytes(model->memory.arena_bytes).c_str());
  if (request.tune && !model->kernels.tasks.empty()) {  // there are none where every result is known already
    JobOutcome outcome;
    const Status tuned = tune_model(request, *model, interrupted, outcome);
    if (tuned && outcome.interrupted) {
      say_interrupted(outcome, this_command());
      return kExitFailed;
    }
    if (!tuned) return report(tuned);
    say_ending(outcome);
  }
  watch.guard([&] { (*folder)->remove_unwritten(); });
  const size_t steps = model->steps.steps.size();
  const Result<CompiledReport> built = build_model(request, *model, **folder, interrupted);
  watch.release();
  if (!built) return report_or_stop(built.status());
  std::string list;
  for (const std::string& file : built->files)
    if (!file.starts_with("include/tuner_") && !file.starts_with("lib/cmake"))
      list += (list.empty() ? "" : ", ") + file;
  std::printf("%s: %s\n", request.output.c_str(), list.c_str());
  for (const std::string& line : built->used) std::printf("%s\n", line.c_str());
  if (request.accelerator)
    std::printf("%zu of %zu steps run on \"%s\", the others on the CPU\n", built->accelerated_steps, steps,
                request.accelerator->name().c_str());
  if (!request.uses.empty())
    std::fprintf(stderr, "tuner: no static library: functions of --use are in shared ones\n");
  for (const std::string& line : checked_lines(*built)) std::printf("%s\n", line.c_str());
  if (!built->not_run.empty()) std::fprintf(stderr, "tuner: %s\n", built->not_run.c_str());
  if (const size_t kernels = built->kernels; built->tuned < kernels)
    std::fprintf(stderr, "tuner: %zu of %zu kernels are not tuned for just their shape\n",
                 kernels - built->tuned, kernels);
  std::printf("next: %s\n", command_line("run " + shell_quoted(request.output)).c_str());
  return kExitDone;
}

}  // namespace

void add_compile_command(Command app, CommandContext& context) {
  auto options = std::make_shared<CompileOptions>();
  const Command command =
      add_command(app, context, "compile",
                  "Compile an ONNX model into one library with tuned kernels inside, for C, C++ and whoever "
                  "loads libraries",
                  [options, &context] {
                    log_to_stderr(context.verbose > 0 ? spdlog::level::info : spdlog::level::err);
                    catch_interrupts();
                    return compile(*options);
                  });
  CompileRequest& request = options->request;
  command.add_option("MODEL", request.model, "ONNX model").required().type_name("FILE");
  command.add_option("-o,--output", request.output, "Folder to write into; created if it is missing")
      .type_name("DIR")
      .required();
  command.add_option("--name", request.name, "C name of the library, if not made from the file's name");
  add_extent_options(command, options->batch, options->dims);
  command
      .add_option(
          "--constant", options->constants,
          "An input that is the same in every run, with its value: .npy, or .pb (a TensorProto of ONNX); "
          "may be given several times")
      .type_name("NAME=FILE");
  command.add_option("--threads", options->threads, "Threads the kernels are made for")
      .in_range(1, 4096)
      .show_default();
  command.add_option("--trials", request.trials, "Trials per kernel on average")
      .in_range(1, static_cast<int>(kJobTrials.most))
      .show_default();
  command
      .add_option("--time-limit", request.time_limit_s,
                  "seconds (or 90s, 10m, 2h) for all trials and races. 0: no limit")
      .as_duration()
      .in_range(0.0, 1e9)
      .show_default();
  command
      .add_option("--use", request.uses,
                  "Use a function of a shared library for the step that has this node. It is checked, and "
                  "timed beside our kernel. May be given several times")
      .type_name("NODE=FILE:FUNCTION");
  command
      .add_option("--state", request.states,
                  "Let an output lie in an input's memory: a state that you keep. May be given several times")
      .type_name("INPUT=OUTPUT")
      .one_each();
  command
      .add_option(
          "--check-input", request.check_inputs,
          "Check the library with these elements of an input: .npy, .pb (a TensorProto of ONNX), or raw; "
          "may be given several times. Others are drawn")
      .type_name("NAME=FILE")
      .one_each();
  command
      .add_option("--accept-error", request.accept_error,
                  "Accept an error of a step, as a part of its largest element. Default: what types allow")
      .in_range(0.0, 1.0);
  command.add_flag("--no-tune", options->no_tune, "Take what is known, and defaults for the rest");
  add_lock_option(command, options->lock);
  command.add_option("--algorithms", options->algorithms, "Algorithms that kernels may use, as in a job file")
      .type_name("ALGORITHMS");
  command
      .add_option("--precision", options->precision,
                  "Numbers that products of weights multiply; bfloat16 needs a CPU with a unit for it")
      .one_of({"float32", "bfloat16"})
      .show_default();
  command.add_flag("--allow-tf32", request.allow_tf32,
                   "Let products on GPUs take 11 bits of each float32 (TF32 of tensor cores)");
  command.add_flag("--blocks", request.blocks,
                   "Keep images in blocks of channels from convolution to convolution (NCHW16c)");
  command
      .add_option(
          "--target", options->targets,
          "Target to compile for: a CPU (cpu, if none is given), or a GPU (cuda -arch=sm_90a). May be "
          "given several times for GPUs: one library for all")
      .type_name("TARGET")
      .one_each();
  add_cpus_option(command, options->cpus);
  add_db_option(command, request.db);
}

}  // namespace tuner::cli
