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

}  // namespace

const std::vector<CommandGroup>& command_groups() {
  static const std::vector<CommandGroup> kGroups = {
      {"Daily",
       {{"submit", "tune a job file"},
        {"query", "look up an answer"},
        {"jobs", "list what was submitted"},
        {"watch", "follow a running job"},
        {"cancel", "end a job"},
        {"report", "a page about a job"},
        {"estimate", "predict gain and cost"},
        {"show", "a kernel or a network"}}},
      {"Answers",
       {{"build", "kernels as a C library"},
        {"lock", "pin configs in a file"},
        {"records", "export, import, merge"},
        {"verify", "check kernels, times"},
        {"rerun", "measure a trial again"},
        {"revalidate", "measure stale answers"},
        {"learn", "learn from all records"},
        {"cover", "a few for many shapes"}}},
      {"Models",
       {{"compile", "an ONNX model, tuned"},
        {"run", "run a compiled model"},
        {"extract", "a model as a job file"}}},
      {"Farm",
       {{"serve", "run the daemon"},
        {"workers", "list its workers"},
        {"top", "watch it live"},
        {"admin", "keys and access"},
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
