// tuner study: searches without a device. One file a subcommand.
#include "tuner/cli/study_commands.h"

namespace tuner::cli {

void add_study_command(Command app, CommandContext& context) {
  const Command study =
      app.add_subcommand("study", "Studies searches without a device, from what was recorded");
  study.need_subcommand();
  add_simulate_command(study, context);
  add_replay_command(study, context);
  add_whatif_command(study, context);
}

}  // namespace tuner::cli
