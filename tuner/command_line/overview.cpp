#include "tuner/command_line/overview.h"

#include <algorithm>
#include <array>

#include "compiler_core/base/status.h"

namespace tuner {
namespace {

constexpr size_t kGroupColumns = 9, kNameColumns = 12, kSaysColumns = 25;

std::string padded(std::string_view text, size_t columns) {
  return std::string(text) + std::string(columns - std::min(columns, text.size()), ' ');
}

constexpr size_t kHelpColumns = 80, kDescriptionColumn = 30;  // CLI11's

// Where the line goes on below itself: in the column of descriptions, or a little to the right of where it
// began.
size_t indent_below(std::string_view line) {
  const size_t begin = line.find_first_not_of(' ');
  const bool described =
      begin >= kDescriptionColumn || (line[kDescriptionColumn - 1] == ' ' && line[kDescriptionColumn] != ' ');
  return described ? kDescriptionColumn : begin + 4;
}

void append_wrapped(std::string_view line, std::string& out) {
  const size_t indent = line.size() > kHelpColumns ? indent_below(line) : 0;
  std::string left(line);
  while (left.size() > kHelpColumns) {
    size_t end = left.rfind(' ', kHelpColumns);
    if (end == std::string::npos || end <= indent)
      end = left.rfind(',', kHelpColumns - 1) + 1;  // a long list of words
    if (end <= indent) break;
    out += left.substr(0, end) + "\n";
    left = std::string(indent, ' ') + left.substr(std::min(left.find_first_not_of(' ', end), left.size()));
  }
  out += left;
}

}  // namespace

std::string wrapped_help(std::string_view text) {
  std::string out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    append_wrapped(text.substr(begin, end - begin), out);
    if (end < text.size()) out += "\n";
    begin = end + 1;
  }
  return out;
}

const std::vector<CommandGroup>& command_groups() {
  static const std::vector<CommandGroup> kGroups = {
      {"Daily",
       {{"submit", "tune a job file"},
        {"query", "look up an answer"},
        {"jobs", "list what was submitted"},
        {"watch", "follow a running job"},
        {"cancel", "end a job"},
        {"report", "a page about a job"},
        {"dashboard", "all in a browser"},
        {"estimate", "predict gain and cost"},
        {"show", "a kernel or a network"}}},
      {"Answers",
       {{"build", "kernels as a C library"},
        {"lock", "pin configs in a file"},
        {"records", "export, merge, prune"},
        {"verify", "check kernels, times"},
        {"rerun", "measure a trial again"},
        {"revalidate", "measure stale answers"},
        {"learn", "learn from all records"},
        {"cover", "a few for many shapes"}}},
      {"Models",
       {{"compile", "an ONNX model, tuned"},
        {"run", "run a compiled model"},
        {"extract", "a model as a job file"},
        {"kernel", "draft or judge a source"}}},
      {"Farm",
       {{"serve", "run the daemon"},
        {"workers", "list its workers"},
        {"health", "is it ready?"},
        {"top", "watch it live"},
        {"admin", "keys and access"},
        {"farm", "workers under Slurm"},
        {"pack", "kernels for a GPU host"}}},
      {"Studies", {{"study", "simulate, replay, whatif"}, {"completion", "for your shell"}}},
  };
  return kGroups;
}

std::string command_overview() {
  std::string text =
      "Finds the fastest config of a kernel for each shape and machine, and keeps it.\n"
      "Usage: tuner COMMAND [OPTIONS]    Options of a command: tuner COMMAND --help\n\n";
  for (const CommandGroup& group : command_groups()) {
    std::string line = padded(group.name, kGroupColumns);
    bool left = true;
    for (const CommandInBrief& command : group.commands) {
      line += padded(command.name, kNameColumns);
      line += left ? padded(command.says, kSaysColumns) : str(command.says, "\n", padded("", kGroupColumns));
      left = !left;
    }
    line.resize(line.find_last_not_of(" \n") + 1);
    text += line + "\n";
  }
  text +=
      "\nFirst steps: tuner submit examples/conv2d.json\n"
      "             tuner query examples/conv2d.json\n"
      "Exit codes:  0 done, 1 failed or nothing found, 2 wrong use. Version: --version\n";
  return text;
}

const char* moved_below(std::string_view command) {
  constexpr std::array<std::string_view, 3> kStudies = {"simulate", "replay", "whatif"};
  return std::ranges::find(kStudies, command) != kStudies.end() ? "study" : nullptr;
}

std::vector<const char*> as_spelled_now(std::vector<const char*> words) {
  const char* above = words.size() > 1 ? moved_below(words[1]) : nullptr;
  if (above != nullptr) words.insert(words.begin() + 1, above);
  return words;
}

}  // namespace tuner
