#include "db/resolve/answer_lock.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "compiler_core/base/input_file.h"
#include "compiler_core/base/json_reader.h"
#include "templates/schedule_template.h"

namespace tuner {
namespace {

constexpr std::string_view kMagic = "tuner-lock ";
constexpr int kLockVersion = 1;
constexpr std::string_view kFirstComment =
    "# Configs that builds and programs use (--lock). `tuner lock` writes this file: commit it.\n";
constexpr std::string_view kAnyAlgorithm = "any";
constexpr size_t kFields = 6;

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

// Of a file that anybody may have written, for a message.
std::string quoted_piece(std::string_view text) {
  constexpr size_t kMost = 60;
  return json_input::one_line(str('"', text.substr(0, kMost), text.size() > kMost ? "..." : "", '"'));
}

Result<int> number_of(std::string_view digits) {
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || number < 1)
    return invalid_argument("expected a number from 1 on, found ", quoted_piece(digits));
  return number;
}

Status check_first_line(std::string_view line) {
  const auto refuse = [&] {
    return invalid_argument("expected \"", kMagic, kLockVersion, "\", found ", quoted_piece(line),
                            ". To write a lock file: tuner lock FILE -o answers.lock");
  };
  if (!line.starts_with(kMagic)) return refuse();
  const Result<int> version = number_of(line.substr(kMagic.size()));
  if (!version) return refuse();
  if (*version != kLockVersion)
    return invalid_argument(
        "format: expected ", kLockVersion, ", found ", *version,
        "; a newer tuner wrote this file. Use that one, or write the file anew: tuner lock "
        "FILE -o answers.lock");
  return Status::ok();
}

// Splits an entry at its bars.
Result<std::array<std::string_view, kFields>> fields_of(std::string_view line) {
  std::array<std::string_view, kFields> fields;
  size_t count = 0;
  for (size_t begin = 0; begin <= line.size(); ++count) {
    const size_t end = std::min(line.find('|', begin), line.size());
    if (count < kFields) fields[count] = trimmed(line.substr(begin, end - begin));
    begin = end + 1;
  }
  if (count != kFields)
    return invalid_argument("expected ", kFields,
                            " fields with | between them (target, workload, constants, algorithms, template, "
                            "config), found ",
                            count);
  return fields;
}

// The canonical name of a target; that of a back end which is not in this program stays as it is.
Result<std::string> canonical_target(std::string_view text) {
  const std::string_view family = text.substr(0, text.find(' '));
  if (std::ranges::find(target_families(), family, &TargetFamily::word) == target_families().end()) {
    if (!family.empty() && family != "cpu") return std::string(text);
    return invalid_argument("target: expected the full name, as \"llvm -mcpu=haswell -threads=1\", found ",
                            quoted_piece(text));
  }
  ASSIGN_OR_RETURN(const Target target, parse_target(text));
  return target.name();
}

Result<std::string> algorithms_of(std::string_view text) {
  if (text == kAnyAlgorithm) return std::string();
  std::vector<std::string> names(1);
  for (const char c : text)
    if (c == ',')
      names.emplace_back();
    else
      names.back() += c;
  return canonical_algorithms(names);
}

Status read_template(std::string_view text, LockedChoice& choice) {
  const size_t space = text.rfind(" v");
  const std::string_view name = space == std::string_view::npos ? text : trimmed(text.substr(0, space));
  const auto in_name = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  if (space == std::string_view::npos || name.empty() || !std::ranges::all_of(name, in_name))
    return invalid_argument("template: expected a name and a version, as \"matmul_cpu v7\", found ",
                            quoted_piece(text));
  const Result<int> version = number_of(text.substr(space + 2));
  if (!version) return version.status().with_context("template: version: ");
  choice.template_name = name;
  choice.template_version = *version;
  return Status::ok();
}

Result<LockEntry> entry_of(std::string_view line) {
  ASSIGN_OR_RETURN(const auto fields, fields_of(line));
  LockEntry entry;
  ASSIGN_OR_RETURN(entry.task.target, canonical_target(fields[0]));
  const Result<Workload> workload = workload_from_key(fields[1]);
  if (!workload) return workload.status().with_context("workload: ");
  if (const Status valid = validate(*workload); !valid) return valid.with_context("workload: ");
  entry.task.workload_key = workload->key();
  const std::optional<Constants> constants = constants_from_name(fields[2]);
  if (!constants)
    return invalid_argument("constants: expected warm or cold, found ", quoted_piece(fields[2]));
  entry.task.constants = workload->has_constants() ? *constants : Constants::kWarm;
  Result<std::string> algorithms = algorithms_of(fields[3]);
  if (!algorithms) return algorithms.status().with_context("algorithms: ");
  entry.task.algorithms = *std::move(algorithms);
  RETURN_IF_ERROR(read_template(fields[4], entry.choice));
  ASSIGN_OR_RETURN(const Config config, config_from_text(fields[5]));
  entry.choice.config = config.to_text();
  return entry;
}

// Lines that git leaves where two branches changed the same entries.
bool is_conflict(std::string_view line) {
  return line.starts_with("<<<<<<<") || line.starts_with("=======") || line.starts_with(">>>>>>>") ||
         line.starts_with("|||||||");
}

Status check_characters(std::string_view line) {
  for (const char c : line)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      return invalid_argument("expected text, found a control character with the number ",
                              static_cast<int>(static_cast<unsigned char>(c)));
  return Status::ok();
}

}  // namespace

LockedTask locked_task(const Workload& workload, const Target& target, std::string_view algorithms,
                       Constants constants) {
  return {.target = target.name(),
          .workload_key = workload.key(),
          .constants = workload.has_constants() ? constants : Constants::kWarm,
          .algorithms = std::string(algorithms)};
}

std::string described(const LockedTask& task) {
  return str(task.workload_key, " on \"", task.target, "\"",
             task.constants == Constants::kCold ? ", constants cold" : "",
             task.algorithms.empty() ? "" : ", algorithms ", task.algorithms);
}

std::string described(const LockedChoice& choice) {
  return str(choice.template_name, " v", choice.template_version, ", ", choice.config);
}

Result<AnswerLock> AnswerLock::parse(std::string_view text, const std::string& path) {
  AnswerLock lock(path);
  std::string comment;  // above the line that comes
  int number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::string place = str(path, ":", ++number, ": ");
    if (number == 1)
      if (const Status first = check_first_line(line); !first) return first.with_context(place);
    if (const Status good = check_characters(line); !good) return good.with_context(place);
    if (number == 1) {
      continue;
    } else if (is_conflict(line)) {
      return invalid_argument(place, "expected an entry, found ", quoted_piece(line),
                              ": a merge is not finished. Keep one line for each task");
    } else if (line.starts_with('#')) {
      comment += str(line, "\n");
    } else if (trimmed(line).empty()) {
      lock.head_ += std::exchange(comment, {});
    } else {
      Result<LockEntry> entry = entry_of(line);
      if (!entry) return invalid_argument(place, json_input::one_line(entry.message()));
      entry->line = number;
      entry->comment = std::exchange(comment, {});
      lock.entries_.push_back(*std::move(entry));
    }
  }
  if (number == 0) return check_first_line({}).with_context(str(path, ":1: "));
  lock.head_ += comment;
  std::ranges::stable_sort(lock.entries_, {}, &LockEntry::task);
  const auto twice = std::ranges::adjacent_find(lock.entries_, {}, &LockEntry::task);
  if (twice != lock.entries_.end())
    return invalid_argument(path, ":", std::next(twice)->line, ": ", described(twice->task),
                            " stands in line ", twice->line, " already. Keep one of the two lines");
  return lock;
}

Result<AnswerLock> AnswerLock::read(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text,
                   read_file(path, "a lock file, as the command lock writes it", kMostBytes));
  return parse(text, path);
}

std::string AnswerLock::text() const {
  const bool is_new =
      head_.empty() && std::ranges::all_of(entries_, [](const LockEntry& e) { return e.line == 0; });
  std::string out = str(kMagic, kLockVersion, "\n", is_new ? kFirstComment : std::string_view(head_), "\n");
  for (const LockEntry& e : entries_)
    out += str(e.comment, e.task.target, " | ", e.task.workload_key, " | ", constants_name(e.task.constants),
               " | ", e.task.algorithms.empty() ? kAnyAlgorithm : std::string_view(e.task.algorithms), " | ",
               e.choice.template_name, " v", e.choice.template_version, " | ", e.choice.config, "\n");
  return out;
}

const LockEntry* AnswerLock::find(const LockedTask& task) const {
  const auto at = std::ranges::lower_bound(entries_, task, {}, &LockEntry::task);
  return at != entries_.end() && at->task == task ? &*at : nullptr;
}

void AnswerLock::put(LockEntry entry) {
  const auto at = std::ranges::lower_bound(entries_, entry.task, {}, &LockEntry::task);
  if (at == entries_.end() || at->task != entry.task) {
    entries_.insert(at, std::move(entry));
    return;
  }
  at->choice = std::move(entry.choice);
}

std::vector<LockEntry> AnswerLock::keep_only(const std::vector<LockedTask>& tasks) {
  std::vector<LockEntry> removed, kept;
  for (LockEntry& entry : entries_)
    (std::ranges::find(tasks, entry.task) == tasks.end() ? removed : kept).push_back(std::move(entry));
  entries_ = std::move(kept);
  return removed;
}

std::string AnswerLock::place(const LockEntry& entry) const {
  return entry.line == 0 ? path_ : str(path_, ":", entry.line);
}

Status AnswerLock::missing(const LockedTask& task, std::string_view fix) const {
  constexpr size_t kMost = 3;
  std::string others;
  size_t count = 0;
  for (const LockEntry& e : entries_) {
    if (e.task.workload_key != task.workload_key || ++count > kMost) continue;
    others += str(others.empty() ? "" : ", ", "\"", e.task.target, "\"",
                  e.task.constants == Constants::kCold ? " with constants cold" : "",
                  e.task.algorithms.empty() ? "" : " by ", e.task.algorithms);
  }
  if (count > kMost) others += str(" and ", count - kMost, " more");
  return not_found(path_, " has no entry for ", described(task),
                   others.empty() ? "" : str("; it has this workload for ", others), ". To add it: ", fix);
}

}  // namespace tuner
