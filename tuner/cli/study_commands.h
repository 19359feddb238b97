// The commands below `tuner study`.
#pragma once

#include "tuner/cli/command.h"

namespace tuner::cli {

void add_replay_command(Command study, CommandContext& context);
void add_simulate_command(Command study, CommandContext& context);
void add_whatif_command(Command study, CommandContext& context);

}  // namespace tuner::cli
