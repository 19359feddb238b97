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

constexpr std::string_view kRoofline = "roofline", kLoops = "loops", kAllPasses = "all";

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

std::string joined(const std::vector<std::string_view>& names) {
  std::string text;
  for (const std::string_view name : names) text += str(text.empty() ? "" : ", ", name);
  return text;
}

const CodeForm* form_of(const Target& target, std::string_view name) {
  const std::span<const CodeForm> forms = backend_of(target).forms();
  const auto it = std::ranges::find(forms, name, &CodeForm::name);
  return it == forms.end() ? nullptr : &*it;
}

// OK if the target has this form.
Status check_form(const CliTask& task, const std::string& as) {
  if (as == "schedule" || as == kLoops || form_of(task.target, as) != nullptr ||
      (as == kRoofline && backend_of(task.target).has_roofs()))
    return Status::ok();
  return invalid_argument("--as ", as, ": not for target \"", task.target_name,
                          "\"; expected schedule, loops, ", words_of(task.target, /*roofline=*/true));
}

// Where it stands among the passes, from 1; 0: it is none of them.
size_t place_of(std::string_view pass, const std::vector<std::string_view>& passes) {
  const auto found = std::ranges::find(passes, pass);
  return found == passes.end() ? 0 : static_cast<size_t>(found - passes.begin()) + 1;
}

Status check_pass(const CliTask& task, const KernelView& view) {
  if (view.after.empty()) return Status::ok();
  if (view.as != kLoops) return invalid_argument("--after: found --as ", view.as, ", expected loops");
  const std::vector<std::string_view> passes = backend_of(task.target).passes();
  if (passes.empty())
    return invalid_argument("--after: target \"", task.target_name, "\" shows no passes; leave it out");
  if (view.after == kAllPasses || place_of(view.after, passes) > 0) return Status::ok();
  return invalid_argument("--after: no pass for target \"", task.target_name, "\" is called \"", view.after,
                          "\"; expected all or one of ", joined(passes));
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

// "# after pass 3 of 6, partition".
Result<std::string> text_after(const Program& program, const Target& target, std::string_view after) {
  const std::vector<std::string_view> passes = backend_of(target).passes();
  const std::string_view last = after == kAllPasses ? passes.back() : after;
  ASSIGN_OR_RETURN(const std::string text, backend_of(target).text_after(last, program, target));
  return str("# after pass ", place_of(last, passes), " of ", passes.size(), ", ", last, "\n", text);
}

Result<std::string> text_of(const CliTask& task, const ChosenKernel& kernel, const KernelView& view,
                            const Store* store) {
  const auto& [as, after, replay_file] = view;
  if (!replay_file.empty() && (as == "roofline" || as == "schedule"))
    return invalid_argument("--replay: found --as ", as, ", expected loops, ",
                            words_of(task.target, /*roofline=*/false));
  if (as == "roofline") return roofline_text(task, kernel, store);
  if (as == "schedule") return kernel.instance->schedule_text(kernel.config);
  ASSIGN_OR_RETURN(const Program program, replay_file.empty() ? kernel.instance->instantiate(kernel.config)
                                                              : replayed(kernel, replay_file));
  if (!after.empty()) return text_after(program, task.target, after);
  if (form_of(task.target, as) != nullptr) return backend_of(task.target).text(as, program, task.target);
  return to_text(program) + "\n";
}

}  // namespace

std::vector<std::string> kernel_forms() {
  std::vector<std::string> words = {"schedule", std::string(kLoops)};
  for (const Backend* backend : all_backends()) {
    std::vector<std::string_view> more;
    for (const CodeForm& form : backend->forms()) more.push_back(form.name);
    if (backend->has_roofs()) more.push_back(kRoofline);
    for (const std::string_view word : more)  // several back ends have some in common
      if (std::ranges::find(words, word) == words.end()) words.emplace_back(word);
  }
  return words;
}

std::string kernel_pass_names() {
  std::vector<std::string_view> names;
  for (const Backend* backend : all_backends())
    for (const std::string_view pass : backend->passes())
      if (std::ranges::find(names, pass) == names.end()) names.push_back(pass);
  return joined(names);
}

std::string kernel_passes_text() {
  std::string text;
  for (const Backend* backend : all_backends())
    if (const auto passes = backend->passes(); !passes.empty())
      text += str(text.empty() ? "" : "; ", "on ", backend->family().word(), " targets ", joined(passes));
  return text;
}

Status check_view(const CliTask& task, const KernelView& view) {
  RETURN_IF_ERROR(check_form(task, view.as));
  return check_pass(task, view);
}

Result<std::string> kernel_text(const CliTask& task, const ChosenKernel& kernel, const KernelView& view,
                                const Store* store) {
  RETURN_IF_ERROR(check_view(task, view));
  ASSIGN_OR_RETURN(const std::string text, text_of(task, kernel, view, store));
  const CodeForm* form = form_of(task.target, view.as);
  const std::string comment(form != nullptr ? form->comment : "#");
  if (comment.empty()) return text;  // a file of another program's, which has no comments
  std::string head =
      str(comment, " ", task.key, "\n", comment, " on ", task.target_name, "\n", comment, " template ",
          kernel.schedule_template->name(), ", ",
          view.replay_file.empty() ? "config " + kernel.config.to_text() : "schedule of " + view.replay_file,
          "\n");
  if (const std::string mark = algorithm_mark(kernel.schedule_template->name()); !mark.empty())
    head += str(comment, " algorithm ", mark, "\n");
  if (kernel.tuned && view.replay_file.empty())
    head += str(comment, " measured ", time_words(*kernel.tuned).time, ", trial ", kernel.tuned->trial_name,
                "\n");
  return head + text + (text.ends_with('\n') ? "" : "\n");
}

}  // namespace tuner
