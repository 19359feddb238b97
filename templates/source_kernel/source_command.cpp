#include "templates/source_kernel/source_command.h"

#include <algorithm>
#include <regex>
#include <set>

#include "compiler_core/base/c_names.h"
#include "compiler_core/base/printable.h"
#include "templates/source_kernel/flag_rule.h"
#include "templates/source_kernel/source_kernel.h"
#include "templates/source_kernel/source_kernel_json.h"

namespace tuner {
namespace {

constexpr std::string_view kOwn = "./";
constexpr size_t kMostWords = 256, kLongestWord = 4096, kMostVariables = 64, kLongestPattern = 200;

template <class... Args>
Status refused_at(std::string_view key, const Args&... what) {
  return invalid_argument(key, ": ", what...);
}

std::string shown(const std::string& text) { return str("\"", printable(text.substr(0, 80)), "\""); }

class CommandChecker {
 public:
  explicit CommandChecker(const SourceKernel& kernel) : k_(kernel), c_(*kernel.command) {}

  Status all() {
    if (c_.run.empty()) return refused_at("run", "expected the words of a command: [\"./prog\", \"{TILE}\"]");
    RETURN_IF_ERROR(words("build", c_.build));
    RETURN_IF_ERROR(words("run", c_.run));
    RETURN_IF_ERROR(environment());
    RETURN_IF_ERROR(result());
    for (const SourceKnob& knob : k_.knobs)
      if (!used_.contains(knob.name))
        return refused_at("knobs." + knob.name, "neither build nor run nor environment has {", knob.name,
                          "}: it would change nothing");
    if (k_.compiler != commands_needed(c_)) return refused_at("compiler", "is not what build and run need");
    return own_file();
  }

 private:
  Status program(const std::string& key, const std::string& word) const {
    static const std::regex name(R"([A-Za-z0-9_][A-Za-z0-9_.+-]{0,63})");
    if (word.find('{') != std::string::npos)
      return refused_at(key, "the program is the same for all configs, found ", shown(word));
    if (word.starts_with(kOwn)) return check_file_name(word.substr(kOwn.size())).with_context(key + ": ");
    if (std::regex_match(word, name)) return Status::ok();
    return refused_at(key, "expected ./FILE or the name of a program such as \"make\", found ", shown(word));
  }
  Status words(const std::string& key, const std::vector<std::string>& all) {
    if (all.size() > kMostWords)
      return refused_at(key, "expected at most ", kMostWords, " words, found ", all.size());
    for (size_t i = 0; i < all.size(); ++i) RETURN_IF_ERROR(text(str(key, "[", i, "]"), all[i]));
    return all.empty() ? Status::ok() : program(key + "[0]", all.front());
  }
  Status text(const std::string& key, const std::string& word) {
    if (word.size() > kLongestWord) return refused_at(key, "expected at most ", kLongestWord, " characters");
    if (printable_lines(word) != word) return refused_at(key, "has characters that are no text");
    const Result<std::vector<std::string>> names = names_in_flag(word);
    if (!names) return refused_at(key, names.message());
    for (const std::string& name : *names) {
      if (std::ranges::find(k_.knobs, name, &SourceKnob::name) == k_.knobs.end() && !k_.sizes.contains(name))
        return refused_at(key, "there is no knob and no size {", printable(name.substr(0, 80)), "}");
      used_.insert(name);
    }
    return Status::ok();
  }
  Status environment() {
    static constexpr std::string_view kOurs[] = {"PATH", "LC_ALL", "TMPDIR", "HOME", "OMP_NUM_THREADS"};
    if (c_.environment.size() > kMostVariables)
      return refused_at("environment", "expected at most ", kMostVariables, " variables");
    for (const auto& [name, value] : c_.environment) {
      const std::string key = "environment." + printable(name.substr(0, 80));
      static const std::regex right(R"([A-Za-z_][A-Za-z0-9_]{0,63})");
      if (!std::regex_match(name, right)) return refused_at(key, "expected a name of letters, digits and _");
      if (std::ranges::find(kOurs, name) != std::end(kOurs))
        return refused_at(key, "tuner sets this variable");
      RETURN_IF_ERROR(text(key, value));
    }
    return Status::ok();
  }
  Status result() const {
    constexpr std::string_view kHole = "{number}";
    RETURN_IF_ERROR(result_scale(k_).status());
    const std::string& pattern = c_.pattern;
    if (pattern.empty()) return Status::ok();
    const size_t hole = pattern.find(kHole);
    if (pattern.size() > kLongestPattern || printable(pattern) != pattern)
      return refused_at("result.pattern", "expected text of at most ", kLongestPattern, " characters");
    if (hole == std::string::npos || pattern.find(kHole, hole + 1) != std::string::npos)
      return refused_at(
          "result.pattern",
          "expected a text with {number} once, where the number stands, and * for anything: \"time: "
          "{number} ms\", found ",
          shown(pattern));
    return Status::ok();
  }
  // Where nothing is built, the file that is run is one of the job's.
  Status own_file() const {
    const std::string& first = c_.build.empty() ? c_.run.front() : c_.build.front();
    if (!first.starts_with(kOwn) || k_.file(first.substr(kOwn.size())) != nullptr) return Status::ok();
    return refused_at(c_.build.empty() ? "run[0]" : "build[0]", "there is no file ",
                      printable(first.substr(kOwn.size(), 200)), " in \"files\"",
                      c_.build.empty() ? ", and no \"build\" that makes it" : "");
  }

  const SourceKernel& k_;
  const SourceCommand& c_;
  std::set<std::string> used_;  // names in words and values
};

}  // namespace

Result<ResultScale> result_scale(const SourceKernel& kernel) {
  static const std::map<std::string_view, double> kTimes = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
  const std::string& unit = kernel.command->unit;
  if (const auto time = kTimes.find(unit); time != kTimes.end()) return ResultScale{time->second, false};
  if (unit == "1/s") return ResultScale{1e9, true};
  // G of work a second are so many of it in a nanosecond.
  for (const auto& [rate, key, work] :
       {std::tuple("GFLOP/s", "flops", kernel.flops), {"GB/s", "bytes", kernel.bytes}})
    if (unit == rate) {
      if (work > 0) return ResultScale{static_cast<double>(work), true};
      return refused_at("result.unit", "with ", rate, " the work of one run must be known: say it as \"", key,
                        "\", or print a time");
    }
  return refused_at("result.unit", "expected one of ", kResultUnits, ", found ", shown(unit),
                    "; only times and rates can be tuned");
}

std::string commands_needed(const SourceCommand& command) {
  std::set<std::string> programs;
  for (const std::vector<std::string>* words : {&command.build, &command.run})
    if (!words->empty() && !words->front().starts_with(kOwn)) programs.insert(words->front());
  std::string all;
  for (const std::string& program : programs) all += (all.empty() ? "command:" : ",command:") + program;
  return all.empty() ? str("command:", kOwn) : all;
}

std::string command_name(const SourceCommand& command) {
  const auto own =
      std::ranges::find_if(command.run, [](const std::string& w) { return w.starts_with(kOwn); });
  std::string name = own != command.run.end() ? *own : command.run.empty() ? "" : command.run.front();
  name.erase(0, name.rfind('/') + 1);
  name.erase(std::min(name.find('.'), name.size()));
  return as_c_name(name.empty() ? "program" : name.substr(0, 80));
}

Status check_command(const SourceKernel& kernel) { return CommandChecker(kernel).all(); }

}  // namespace tuner
