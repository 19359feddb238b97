// Manual pages, generated from the command line's own description. Names, descriptions, options and defaults
// come from the CLI::App, so no text is written twice.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tuner {

// A command and the words that call it: {"records", "export"}. The program itself has no words.
struct CommandPath {
  std::vector<std::string> words;
  const CLI::App* app = nullptr;
};

// Returns the program and its commands, parents first, in the order of help, without hidden ones.
std::vector<CommandPath> commands_of(const CLI::App& program);

// Return the named options that help lists for a command, and its positionals.
std::vector<const CLI::Option*> named_options(const CLI::App& command);
std::vector<const CLI::Option*> positionals(const CLI::App& command);

// Returns the values of an option that takes one of a list (CLI::IsMember); empty otherwise.
std::vector<std::string> listed_values(const CLI::Option& option);

struct ManualPage {
  std::string name;  // file name: tuner-records-export.1
  std::string text;  // troff, for man(7)
};

// Returns one page for the program and one for each command. A path below $HOME in a default is written with
// ~, so that a page does not depend on who generated it.
std::vector<ManualPage> manual_pages(const CLI::App& program, std::string_view version);

// Makes the page of another program from the output of its --help; treats paths below $HOME as above.
ManualPage page_of_help(std::string_view program, std::string_view help, std::string_view version);

}  // namespace tuner
