// tuner show FILE|TRIAL: a kernel as its schedule, its loops, LLVM IR, assembler, or what bounds it
// (roofline); for a GPU its lowered kernels, CUDA source, resources or machine code. Or the space that is
// searched for it.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <sstream>

#include "compiler_core/backend.h"
#include "compiler_core/base/input_file.h"
#include "compiler_core/base/statistics.h"
#include "compiler_core/schedule/schedule.h"
#include "db/quarantine.h"
#include "db/store.h"
#include "templates/workload/json_input.h"
#include "tuner/cli/command.h"
#include "tuner/daemon/log_lines.h"
#include "tuner/jobs/space_text.h"
#include "tuner/jobs/tasks.h"
#include "tuner/study/roofline.h"
#include "tuner/text/facts.h"
#include "tuner/text/format.h"
#include "tuner/text/hint.h"

namespace tuner::cli {

namespace {

struct Options {
  std::string what, as = "loops", db, target;
  std::string replay;  // file with a schedule, as --as schedule prints it; empty: the kernel's own
};

bool is_trial_id(const std::string& text) {
  return text.size() > 1 && text[0] == 't' && text.find_first_not_of("0123456789", 1) == std::string::npos &&
         !std::filesystem::exists(text);
}

constexpr std::string_view kRoofline = "roofline";

// "llvm, asm or roofline": what a target has beside the words that all have.
std::string words_of(const Target& target, bool roofline) {
  const Backend& backend = backend_of(target);
  std::vector<std::string_view> words;
  for (const CodeForm& form : backend.forms()) words.push_back(form.name);
  if (roofline && backend.has_roofs()) words.push_back(kRoofline);
  std::string text;
  for (size_t i = 0; i < words.size(); ++i)
    text += str(i == 0 ? "" : i + 1 < words.size() ? ", " : " or ", words[i]);
  return text;
}

const CodeForm* form_of(const Target& target, std::string_view name) {
  const std::span<const CodeForm> forms = backend_of(target).forms();
  const auto it = std::ranges::find(forms, name, &CodeForm::name);
  return it == forms.end() ? nullptr : &*it;
}

// Whether a target has this form.
Status check_form(const CliTask& task, const std::string& as) {
  if (as == "schedule" || as == "loops" || form_of(task.target, as) != nullptr ||
      (as == kRoofline && backend_of(task.target).has_roofs()))
    return Status::ok();
  return invalid_argument("--as ", as, ": not for target \"", task.target_name,
                          "\"; expected schedule, loops, ", words_of(task.target, /*roofline=*/true));
}

// Every word of --as.
std::vector<std::string> all_words() {
  std::vector<std::string> words = {"schedule", "loops", "space"};
  for (const Backend* backend : all_backends()) {
    for (const CodeForm& form : backend->forms()) words.emplace_back(form.name);
    if (backend->has_roofs() && std::ranges::find(words, kRoofline) == words.end())
      words.emplace_back(kRoofline);
  }
  return words;
}

// The kernel's Program under the schedule of a file, whose lines that begin with # are comments.
Result<Program> replayed(const ChosenKernel& kernel, const std::string& file) {
  constexpr size_t kMostBytes = 16 << 20;
  Result<std::string> read = read_file(file, "a schedule, as --as schedule prints it", kMostBytes);
  if (!read) return read.status().with_context("--replay: ");
  std::istringstream lines(*std::move(read));
  std::string text;
  for (std::string line; std::getline(lines, line);)
    text += (line.starts_with('#') ? "" : line) + "\n";  // line numbers stay those of the file
  Result<Program> program = replay(kernel.instance->math(), text);
  if (!program)
    return invalid_argument(json_input::one_line(str(
        file, ": ", program.message(), ". The math is that of template ", kernel.schedule_template->name())));
  return program;
}

Result<std::string> text_of(const CliTask& task, const ChosenKernel& kernel, const Options& options,
                            const Store* store) {
  const std::string& as = options.as;
  if (!options.replay.empty() && (as == "roofline" || as == "schedule"))
    return invalid_argument("--replay: found --as ", as, ", expected loops, ",
                            words_of(task.target, /*roofline=*/false));
  if (as == "roofline") return roofline_text(task, kernel, store);
  if (as == "schedule") return kernel.instance->schedule_text(kernel.config);
  ASSIGN_OR_RETURN(const Program program, options.replay.empty() ? kernel.instance->instantiate(kernel.config)
                                                                 : replayed(kernel, options.replay));
  if (form_of(task.target, as) != nullptr) return backend_of(task.target).text(as, program, task.target);
  return to_text(program) + "\n";
}

Status show(const CliTask& task, const ChosenKernel& kernel, const Options& options, const Store* store) {
  const std::string& as = options.as;
  RETURN_IF_ERROR(check_form(task, as));
  ASSIGN_OR_RETURN(const std::string text, text_of(task, kernel, options, store));
  if (!kernel.note.empty())
    std::fprintf(stderr, "tuner: %s: %s\n", task.key.c_str(), with_commands(kernel.note).c_str());
  const CodeForm* form = form_of(task.target, as);
  const std::string comment(form != nullptr ? form->comment : "#");
  std::printf("%s %s\n%s on %s\n%s template %s, %s %s\n", comment.c_str(), task.key.c_str(), comment.c_str(),
              task.target_name.c_str(), comment.c_str(),
              std::string(kernel.schedule_template->name()).c_str(),
              options.replay.empty() ? "config" : "schedule of",
              options.replay.empty() ? kernel.config.to_text().c_str() : options.replay.c_str());
  if (const std::string mark = algorithm_mark(kernel.schedule_template->name()); !mark.empty())
    std::printf("%s algorithm %s\n", comment.c_str(), mark.c_str());
  if (kernel.tuned && options.replay.empty())
    std::printf(
        "%s measured %s in trial %s\n", comment.c_str(),
        format_time(kernel.tuned->time_ns, kernel.tuned->time_low_ns, kernel.tuned->time_high_ns).c_str(),
        kernel.tuned->trial_id.c_str());
  std::printf("%s%s", text.c_str(), text.ends_with('\n') ? "" : "\n");
  return Status::ok();
}

Status show_trial(const Options& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, Store::open(options.db, Store::Mode::kRead));
  ASSIGN_OR_RETURN(const TrialWithRecord trial, store->trial(options.what));
  ASSIGN_OR_RETURN(const CliTask task, task_from_keys(trial.task.workload_key, trial.task.target));
  if (options.as == "space") {
    ASSIGN_OR_RETURN(const std::string text, space_text(task));
    std::printf("%s", text.c_str());
    return Status::ok();
  }
  Result<ChosenKernel> kernel =
      choose_config(task, trial.trial.template_name, trial.trial.template_version, trial.trial.config);
  if (!kernel) return Status(kernel.status()).with_context(str("trial ", options.what, " rests on "));
  ASSIGN_OR_RETURN(const std::vector<QuarantineRow> quarantine, store->quarantine(options.what));
  for (const QuarantineRow& q : quarantine)
    std::fprintf(stderr, "trial %s: in quarantine: attempt %d of worker %s on %s: %s\n", options.what.c_str(),
                 q.attempt, q.worker_id.c_str(), without_controls(q.host).c_str(), q.why.c_str());
  if (trial.record)
    std::fprintf(stderr, "trial %s: %s%s%s\n", options.what.c_str(),
                 std::string(outcome_name(trial.record->outcome)).c_str(),
                 trial.record->message.empty() ? "" : ": ", trial.record->message.c_str());
  if (trial.record && trial.record->outcome == Outcome::kOk && !trial.record->cut) {
    const Interval interval = median_interval(trial.record->run_ns);
    kernel->tuned = TunedConfig{.time_ns = record_time_ns(*trial.record),
                                .time_low_ns = interval.low,
                                .time_high_ns = interval.high,
                                .peak_gflops = trial.record->peak_gflops,
                                .trial_id = trial.trial.id};
  }
  return show(task, *kernel, options, store.get());
}

Status show_file(const Options& options) {
  ASSIGN_OR_RETURN(const std::vector<CliTask> tasks, read_tasks(options.what, options.target));
  ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, open_if_there(options.db));
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (options.as == "space") {
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

}  // namespace

void add_show_command(Command app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  const Command command = add_command(
      app, context, "show", "Print a kernel: the tuned one of a job file's tasks, or that of a trial",
      [options] { return report(is_trial_id(options->what) ? show_trial(*options) : show_file(*options)); });
  command.add_option("FILE|TRIAL", options->what, "Job file, or a trial such as t812").required();
  command
      .add_option(
          "--as", options->as,
          "What to print; space: the knobs to search and how many configs are valid; of CPU targets also "
          "llvm, "
          "asm and roofline (what bounds it); of CUDA ones kernels (as lowered), cuda (the source), "
          "resources and sass (the machine code's hot loop, with counts)")
      .one_of(all_words())
      .show_default();
  command
      .add_option(
          "--replay", options->replay,
          "Print the kernel under the schedule of this file (- is standard input), in the form that --as "
          "schedule prints: to see what a change of it does")
      .type_name("SCHEDULE");
  add_db_option(command, options->db);
  add_target_option(command, options->target);
}

}  // namespace tuner::cli
