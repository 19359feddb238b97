// Subcommands of `tuner admin` about a farm's database and daemon, one file each.
#pragma once

#include "tuner/cli/command.h"

namespace tuner::cli {

void add_admin_usage(Command admin, CommandContext& context);
void add_admin_backup(Command admin, CommandContext& context);
void add_admin_drain(Command admin, CommandContext& context);

}  // namespace tuner::cli
