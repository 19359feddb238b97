// tuner show FILE|TRIAL: a kernel as its schedule, its loops, LLVM IR, assembler, or what bounds it
// (roofline); for a GPU its lowered kernels, CUDA source, resources or machine code. Or the space that is
// searched for it. --after shows the loops, or a model's graph, behind a pass.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <regex>

#include "db/quarantine.h"
#include "db/store.h"
#include "tuner/cli/command.h"
#include "tuner/daemon/edge/log_lines.h"
#include "tuner/jobs/space_text.h"
#include "tuner/jobs/tasks.h"
#include "tuner/model/model_extents.h"
#include "tuner/model/model_view.h"
#include "tuner/model/plan_view.h"
#include "tuner/study/kernel_text.h"
#include "tuner/text/hint.h"
#include "tuner/text/terminal.h"

namespace tuner::cli {

namespace {

struct ShowOptions {
  std::string what, db, target;
  KernelView kernel;
  ModelView model;  // without `as` and `after`, which are the kernel's, too
  bool as_given = false;
};

// Whether the text has this form and is no file.
bool is_name(const std::string& text, const char* form) {
  std::error_code ignored;
  return std::regex_match(text, std::regex(form)) && !std::filesystem::exists(text, ignored);
}
bool is_trial(const std::string& text) { return is_name(text, "(t|[^/]+[.])[0-9]+"); }  // "j3.17", "t812"
bool is_job(const std::string& text) { return is_name(text, "j[0-9]+"); }

// Every word of --as.
std::vector<std::string> all_words() {
  std::vector<std::string> words = kernel_forms();
  words.insert(words.begin() + 2, "space");
  for (const std::string_view view : compiled_views()) words.emplace_back(view);
  return words;
}

Status show(const CliTask& task, const ChosenKernel& kernel, const ShowOptions& options, const Store* store) {
  ASSIGN_OR_RETURN(const std::string text, kernel_text(task, kernel, options.kernel, store));
  if (!kernel.note.empty())
    std::fprintf(stderr, "tuner: %s: %s\n", task.key.c_str(), with_commands(kernel.note).c_str());
  std::printf("%s", text.c_str());
  return Status::ok();
}

Status show_trial(const ShowOptions& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, Store::open(options.db, Store::Mode::kRead));
  ASSIGN_OR_RETURN(const TrialWithRecord trial, store->trial(options.what));
  ASSIGN_OR_RETURN(const CliTask task, task_from_keys(trial.task.workload_key, trial.task.target));
  if (options.kernel.as == "space") {
    ASSIGN_OR_RETURN(const std::string text, space_text(task));
    std::printf("%s", text.c_str());
    return Status::ok();
  }
  Result<ChosenKernel> kernel =
      choose_config(task, trial.trial.template_name, trial.trial.template_version, trial.trial.config);
  if (!kernel) return Status(kernel.status()).with_context(str("trial ", trial.trial.name(), " rests on "));
  ASSIGN_OR_RETURN(const std::vector<QuarantineRow> quarantine, store->quarantine(trial.trial.id));
  for (const QuarantineRow& q : quarantine)
    std::fprintf(stderr, "trial %s: in quarantine: attempt %d of worker %s on %s: %s\n",
                 trial.trial.name().c_str(), q.attempt, q.worker_id.c_str(), without_controls(q.host).c_str(),
                 q.why.c_str());
  if (trial.record)
    std::fprintf(stderr, "trial %s: %s%s%s\n", trial.trial.name().c_str(),
                 std::string(outcome_name(trial.record->outcome)).c_str(),
                 trial.record->message.empty() ? "" : ": ", trial.record->message.c_str());
  if (trial.record && trial.record->outcome == Outcome::kOk && !trial.record->cut) {
    kernel->tuned = TunedConfig{.time_ns = record_time_ns(*trial.record),
                                .peak_gflops = trial.record->peak_gflops,
                                .trial_id = trial.trial.id,
                                .trial_name = trial.trial.name()};
  }
  return show(task, *kernel, options, store.get());
}

Status show_file(const ShowOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<CliTask> tasks, read_tasks(options.what, options.target));
  ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, open_if_there(options.db));
  if (options.kernel.as != "space")
    for (const CliTask& task : tasks) RETURN_IF_ERROR(check_view(task, options.kernel));
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (options.kernel.as == "space") {
      ASSIGN_OR_RETURN(const std::string text, space_text(tasks[i]));
      std::printf("%s%s", i > 0 ? "\n" : "", text.c_str());
      continue;
    }
    ASSIGN_OR_RETURN(const ChosenKernel kernel, choose_kernel(tasks[i], store.get()));
    if (i > 0) std::printf("\n");
    RETURN_IF_ERROR(show(tasks[i], kernel, options, store.get()));
  }
  return Status::ok();
}

Status show_model(const ShowOptions& options) {
  ModelView view = options.model;
  view.after = options.kernel.after;
  if (options.as_given) view.as = options.kernel.as;
  ASSIGN_OR_RETURN(const ModelText shown, model_text(options.what, view));
  std::printf("%s", shown.text.c_str());
  if (!shown.note.empty()) std::fprintf(stderr, "%s\n", shown.note.c_str());
  return Status::ok();
}

Status show_compiled(const ShowOptions& options) {
  if (!is_compiled_model(options.what))
    return invalid_argument(
        options.what, ": is a folder, expected a job file, or a folder with plan.json (a compiled model)");
  ASSIGN_OR_RETURN(const CompiledPlan plan, read_plan(options.what));
  ASSIGN_OR_RETURN(const std::string text,
                   compiled_text(plan, options.as_given ? options.kernel.as : "plan", text_width()));
  if (!options.model.is_default() || !options.kernel.after.empty())
    return invalid_argument("--after, --batch, --dim: not for a compiled model; found ", options.what);
  std::printf("%s", text.c_str());
  return Status::ok();
}

Status show_what(const ShowOptions& options) {
  std::error_code ignored;
  if (std::filesystem::is_directory(options.what, ignored)) return show_compiled(options);
  if (options.what.ends_with(".onnx")) return show_model(options);
  if (options.kernel.as == "graph" || !options.model.is_default())
    return invalid_argument("--as graph, --batch, --dim: for a file whose name ends with .onnx; found ",
                            options.what);
  if (std::ranges::find(compiled_views(), options.kernel.as) != compiled_views().end())
    return invalid_argument("--as ", options.kernel.as, ": for the folder of a compiled model; found ",
                            options.what);
  if (options.kernel.as == "space" && !options.kernel.after.empty())
    return invalid_argument("--after: found --as space, expected loops");
  if (is_trial(options.what)) return show_trial(options);
  if (is_job(options.what))
    return invalid_argument(options.what, ": is a job, expected one of its trials, such as ", options.what,
                            ".3, or a job file. For the job: tuner report ", options.what, " -o report.html");
  return show_file(options);
}

}  // namespace

void add_show_command(Command app, CommandContext& context) {
  auto options = std::make_shared<ShowOptions>();
  const Command command = add_command(
      app, context, "show",
      "Print a kernel: the tuned one of a job file's tasks, or that of a trial; a network as a graph; or a "
      "compiled model",
      [options] { return report(show_what(*options)); });
  command
      .add_option("FILE|TRIAL|DIR", options->what,
                  "Job file, a trial such as j3.17, an ONNX model, or a folder of tuner compile")
      .offers({.files = true, .endings = {".json", ".onnx"}, .names = "trial"})
      .required();
  command
      .add_option(
          "--as", options->kernel.as,
          "What to print. Kernels: schedule, loops, space (knobs, number of valid configs), roofline. For a "
          "CPU also llvm and asm. For CUDA also kernels, cuda (the source), resources and sass (the hot "
          "loop, with counts). A model: graph. A compiled model: graph, plan, layers (times), memory")
      .one_of(all_words())
      .show_default()
      .when_given([options] { options->as_given = true; });
  command
      .add_option("--after", options->kernel.after,
                  str("Print what this pass and those before it leave, or all. Passes of a kernel, whose "
                      "loops are printed: ",
                      kernel_passes_text(), ". Passes of a model, whose graph is printed: ", pass_names()))
      .type_name("PASS")
      .offers(offer_words_in(str(kernel_pass_names(), ", ", pass_names(), ", all")));
  add_extent_options(command, options->model.batch, options->model.dims);
  command
      .add_option(
          "--replay", options->kernel.replay_file,
          "Print the kernel under the schedule of this file (- is standard input), in the form that --as "
          "schedule prints: to see what a change of it does")
      .type_name("SCHEDULE");
  add_db_option(command, options->db);
  add_target_option(command, options->target);
}

}  // namespace tuner::cli
