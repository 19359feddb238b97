// Subcommands of `tuner kernel` that have files of their own.
#pragma once

#include "tuner/cli/command.h"

namespace tuner::cli {

void add_kernel_judge_command(Command kernel, CommandContext& context);

}  // namespace tuner::cli
