// What help prints: of `tuner` every command with a few words about it, in groups, on a screen of 80 x 24; of
// a command its options, in lines of at most 80 columns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tuner {

struct CommandInBrief {
  std::string_view name, says;  // says: at most 22 characters
};
struct CommandGroup {
  std::string_view name;
  std::vector<CommandInBrief> commands;
};

// All commands of `tuner`; tests/tuner/cli/terminal_cli_test.cpp holds them against the command line.
const std::vector<CommandGroup>& command_groups();

std::string command_overview();

// A command's help as CLI11 writes it, with long lines broken: descriptions go on in their own column.
std::string wrapped_help(std::string_view text);

// The command below which this one stands today, `study` for `replay`; null for one that did not move. The
// old spelling works, too.
const char* moved_below(std::string_view command);
// The words of a command line, with commands that moved as they are spelled now: `tuner replay j1` is `tuner
// study replay j1`.
std::vector<const char*> as_spelled_now(std::vector<const char*> words);

}  // namespace tuner
