// Which C names a bundle's kernels get, and whether they can live together.
#include <algorithm>
#include <map>

#include "compiler_core/base/c_names.h"
#include "tuner/bundle/bundle.h"

namespace tuner {
namespace {

bool same_task(const CliTask& a, const CliTask& b) {
  return a.key == b.key && a.target_name == b.target_name && a.algorithms == b.algorithms;
}

std::string described(const BundleTask& t) {
  return str("\"", t.function, "\" (", t.task.key, " on ", t.task.target_name, ")");
}

// Every identifier that headers declare for a kernel, and whose it is.
std::vector<std::pair<std::string, std::string>> identifiers_of(const BundleTask& t) {
  std::vector<std::pair<std::string, std::string>> names;
  const std::string shared = str("\"", t.of, "\" (", t.task.key, " on several CPUs)");
  for (const std::string_view ending : backend_of(t.task.target).identifier_endings()) {
    names.emplace_back(str(t.function, ending), described(t));
    if (!t.of.empty()) names.emplace_back(str(t.of, ending), shared);
  }
  if (!t.of.empty()) names.emplace_back(str(t.of, "_variant"), shared);
  return names;
}

// What its user calls it, unless other tasks are called so, too.
std::string usual_name(const CliTask& task, const std::vector<CliTask>& all) {
  const std::string own = task.workload.own_name();
  const auto shares = [&](const CliTask& other) {
    return !same_task(task, other) && (other.workload.own_name() == own || other.name == own);
  };
  return own.empty() || std::ranges::any_of(all, shares) ? kernel_name(task) : own;
}

constexpr std::string_view kWayOut = "Give one of them another \"name\" in its job file";

// Each task once: one that stands there again under the same name, or without one, adds nothing.
Result<std::vector<BundleTask>> without_repeats(std::vector<BundleTask> all) {
  std::vector<BundleTask> out;
  for (BundleTask& t : all) {
    bool is_new = true;
    for (const BundleTask& before : out) {
      if (same_task(before.task, t.task) && (before.function == t.function || t.task.name.empty()))
        is_new = false;
      else if (before.function == t.function)
        return invalid_argument("two kernels have the name ", described(before), " and ", t.task.key, " on ",
                                t.task.target_name,
                                t.task.key == before.task.key && !t.task.algorithms.empty()
                                    ? " with algorithms " + t.task.algorithms
                                    : "",
                                ". ", kWayOut);
    }
    if (is_new) out.push_back(std::move(t));
  }
  return out;
}

}  // namespace

Result<std::vector<BundleTask>> name_functions(const std::vector<CliTask>& tasks, const std::string& library,
                                               const std::string& only_name) {
  std::vector<BundleTask> named;
  for (const CliTask& task : tasks)
    named.push_back({task, !task.name.empty()                        ? task.name
                           : tasks.size() == 1 && !only_name.empty() ? only_name
                                                                     : usual_name(task, tasks)});
  ASSIGN_OR_RETURN(named, without_repeats(std::move(named)));
  RETURN_IF_ERROR(check_names(named, library));
  return named;
}

Status check_names(const std::vector<BundleTask>& tasks, const std::string& library) {
  // Macros are the names in capitals, so names must differ in more than that.
  std::map<std::string, std::string> owner = {{as_macro(library + "_kernels"), "the library's table"},
                                              {as_macro(library + "_find"), "the library's table"}};
  for (const BundleTask& t : tasks) {
    for (const auto& [name, whose] : identifiers_of(t)) {
      const auto [found, fresh] = owner.emplace(as_macro(name), whose);
      if (!fresh && found->second != whose)
        return invalid_argument("the C name ", name, " (or its macro ", as_macro(name), ") is needed by ",
                                found->second, " and by ", whose, ". ", kWayOut);
    }
  }
  return Status::ok();
}

std::vector<std::string> emit_words() {
  std::vector<std::string> words = {"so", "a", "obj"};
  for (const Backend* backend : all_backends())
    for (const CodeForm& form : backend->forms())
      if (!form.ending.empty()) words.emplace_back(form.name);
  std::sort(words.begin() + 3, words.end());
  words.erase(std::unique(words.begin() + 3, words.end()), words.end());  // CPUs and GPUs have some in common
  words.emplace_back("schedule");
  return words;
}

Result<Emit> parse_emit(std::string_view text) {
  Emit emit{.shared = false, .archive = false, .schedule = false};
  const std::map<std::string_view, bool*> flags = {
      {"so", &emit.shared}, {"a", &emit.archive}, {"obj", &emit.object}, {"schedule", &emit.schedule}};
  const std::vector<std::string> words = emit_words();
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    if (std::ranges::find(words, word) == words.end()) {
      std::string known;
      for (const std::string& each : words) known += (known.empty() ? "" : ", ") + each;
      return invalid_argument("--emit: expected words out of ", known, ", joined by commas; found \"", word,
                              "\"");
    }
    if (const auto flag = flags.find(word); flag != flags.end())
      *flag->second = true;
    else
      emit.texts.emplace_back(word);
    begin = end + 1;
  }
  return emit;
}

}  // namespace tuner
