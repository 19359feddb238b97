// Manual pages, written from what the command line says about itself: names, descriptions, options and their
// defaults are those of the CLI::App, so that no text stands in two places.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tuner {

// A command of a program with the words that call it: {"records", "export"}; none: the program itself.
struct CommandPath {
  std::vector<std::string> words;
  const CLI::App* app = nullptr;
};

// The program and each of its commands, parents first, in the order in which help lists them. Hidden ones are
// left out.
std::vector<CommandPath> commands_of(const CLI::App& program);

// Named options of a command that help lists; and its positionals.
std::vector<const CLI::Option*> named_options(const CLI::App& command);
std::vector<const CLI::Option*> positionals(const CLI::App& command);

// The values an option may have when it is one of a list (CLI::IsMember); else empty.
std::vector<std::string> listed_values(const CLI::Option& option);

struct ManualPage {
  std::string name;  // of the file: tuner-records-export.1
  std::string text;  // troff, for man(7)
};

// One page for the program and one for each command. A path below $HOME in a default is written with ~, so
// that a page does not depend on who wrote it.
std::vector<ManualPage> manual_pages(const CLI::App& program, std::string_view version);

// The page of another program, from what its --help prints; paths below $HOME as above.
ManualPage page_of_help(std::string_view program, std::string_view help, std::string_view version);

}  // namespace tuner
