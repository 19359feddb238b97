// What is said of a command line that cannot be understood: one line, with the word that was probably meant.
#pragma once

#include <string>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tuner {

// Why the words that should name a command name none, however the rest reads: `tuner sbumit --help` is no
// request for help. Empty when they do.
std::string unknown_command(const CLI::App& app, int argc, const char* const* argv);

// What the parser found wrong, in one line, with the option that was probably meant and where help is.
std::string wrong_use(const CLI::App& app, int argc, const char* const* argv, const std::string& found);

}  // namespace tuner
