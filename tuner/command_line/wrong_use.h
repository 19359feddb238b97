// Explains a command line that cannot be understood: in one line, with the word that was probably meant.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tuner {

// "tuner help submit" is "tuner submit --help".
std::vector<const char*> help_as_option(int argc, const char* const* argv);

// Says why the words that should name a command do not; empty if they do. The rest of the line does not
// matter: `tuner sbumit --help` is not a request for help.
std::string unknown_command(const CLI::App& app, int argc, const char* const* argv);

// Says which option has an empty value behind "=", as `--target=$UNSET`; empty if none has. The parser would
// take the next word for the value.
std::string empty_value(const CLI::App& app, int argc, const char* const* argv);

// Says what the parser found wrong, in one line, with the option that was probably meant and how to get help.
std::string wrong_use(const CLI::App& app, int argc, const char* const* argv, const std::string& found);

}  // namespace tuner
