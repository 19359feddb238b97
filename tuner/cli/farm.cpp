// tuner farm: workers of a daemon that a scheduler places (tuner/farm). One file a subcommand: farm_*.cpp.
#include "tuner/cli/farm_commands.h"

namespace tuner::cli {

void add_farm_command(Command app, CommandContext& context) {
  const Command farm = app.add_subcommand("farm", "Workers that a scheduler places");
  farm.need_subcommand();
  const Command slurm = farm.add_subcommand("slurm", "Workers under Slurm");
  slurm.need_subcommand();
  add_farm_up(slurm, context);
  add_farm_status(slurm, context);
  add_farm_scale(slurm, context);
  add_farm_down(slurm, context);
}

}  // namespace tuner::cli
