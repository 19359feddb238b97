#include "tuner/study/kernel_text.h"

#include <algorithm>
#include <sstream>

#include "compiler_core/backend.h"
#include "compiler_core/base/input_file.h"
#include "compiler_core/base/json_reader.h"
#include "compiler_core/schedule/schedule.h"
#include "tuner/study/roofline.h"
#include "tuner/text/facts.h"
#include "tuner/text/time_words.h"

namespace tuner {
namespace {

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

// OK if the target has this form.
Status check_form(const CliTask& task, const std::string& as) {
  if (as == "schedule" || as == "loops" || form_of(task.target, as) != nullptr ||
      (as == kRoofline && backend_of(task.target).has_roofs()))
    return Status::ok();
  return invalid_argument("--as ", as, ": not for target \"", task.target_name,
                          "\"; expected schedule, loops, ", words_of(task.target, /*roofline=*/true));
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

Result<std::string> text_of(const CliTask& task, const ChosenKernel& kernel, const std::string& as,
                            const std::string& replay_file, const Store* store) {
  if (!replay_file.empty() && (as == "roofline" || as == "schedule"))
    return invalid_argument("--replay: found --as ", as, ", expected loops, ",
                            words_of(task.target, /*roofline=*/false));
  if (as == "roofline") return roofline_text(task, kernel, store);
  if (as == "schedule") return kernel.instance->schedule_text(kernel.config);
  ASSIGN_OR_RETURN(const Program program, replay_file.empty() ? kernel.instance->instantiate(kernel.config)
                                                              : replayed(kernel, replay_file));
  if (form_of(task.target, as) != nullptr) return backend_of(task.target).text(as, program, task.target);
  return to_text(program) + "\n";
}

}  // namespace

std::vector<std::string> kernel_forms() {
  std::vector<std::string> words = {"schedule", "loops"};
  for (const Backend* backend : all_backends()) {
    for (const CodeForm& form : backend->forms()) words.emplace_back(form.name);
    if (backend->has_roofs() && std::ranges::find(words, kRoofline) == words.end())
      words.emplace_back(kRoofline);
  }
  return words;
}

Result<std::string> kernel_text(const CliTask& task, const ChosenKernel& kernel, const std::string& as,
                                const std::string& replay_file, const Store* store) {
  RETURN_IF_ERROR(check_form(task, as));
  ASSIGN_OR_RETURN(const std::string text, text_of(task, kernel, as, replay_file, store));
  const CodeForm* form = form_of(task.target, as);
  const std::string comment(form != nullptr ? form->comment : "#");
  std::string head =
      str(comment, " ", task.key, "\n", comment, " on ", task.target_name, "\n", comment, " template ",
          kernel.schedule_template->name(), ", ",
          replay_file.empty() ? "config " + kernel.config.to_text() : "schedule of " + replay_file, "\n");
  if (const std::string mark = algorithm_mark(kernel.schedule_template->name()); !mark.empty())
    head += str(comment, " algorithm ", mark, "\n");
  if (kernel.tuned && replay_file.empty())
    head += str(comment, " measured ", time_words(*kernel.tuned).time, ", trial ", kernel.tuned->trial_name,
                "\n");
  return head + text + (text.ends_with('\n') ? "" : "\n");
}

}  // namespace tuner
