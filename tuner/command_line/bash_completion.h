// Completion for bash, written from what the command line says about itself (manual.h).
#pragma once

#include <string>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tuner {

// A script for `source` or for share/bash-completion/completions. It completes commands, options, values that
// are one of a list, job files (*.json) where a command takes one, and other files where it takes those.
std::string bash_completion(const CLI::App& program);

}  // namespace tuner
