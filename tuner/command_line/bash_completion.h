// Completion for bash, generated from the command line's own description (manual.h).
#pragma once

#include <string>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tuner {

// Returns a script for `source` or for share/bash-completion/completions. It completes commands, options,
// values from a list, job files (*.json) where a command takes one, and other files elsewhere.
std::string bash_completion(const CLI::App& program);

}  // namespace tuner
