// A program of a user's, built in a folder of its own: what a config is, where a user brings no function.
#pragma once

#include <string>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/stmt.h"

namespace tuner {

// Runs the command that builds it, confined as compilers are, and takes all regular files that are then in
// the folder: a CommandBundle. Links are left out. Requires program.foreign->command. InvalidConfig: it does
// not end well, or leaves more than an artifact may hold; the message has what it said. NotFound: a program
// that is not on this host's list (commands.h).
Result<Artifact> build_command(const Program& program, const std::string& target_name, int threads);

// InvalidArgument: it has no function that could be shown or linked.
Status no_function(const Program& program);

}  // namespace tuner
