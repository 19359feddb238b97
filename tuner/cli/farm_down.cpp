// tuner farm slurm down: ends all workers.
#include <cstdio>
#include <memory>

#include "tuner/cli/farm_commands.h"

namespace tuner::cli {

namespace {

struct FarmDownOptions {
  FarmPlace place;
  bool now = false;
};

int run_farm_down(const FarmDownOptions& options) {
  Result<slurm::SlurmFarm> farm = slurm::SlurmFarm::open(options.place.path());
  const Result<int> jobs = farm ? farm->down(options.now) : Result<int>(farm.status());
  if (!jobs) return report(jobs.status());
  std::printf("%d workers %s\n", *jobs,
              options.now ? "cancelled" : "end when they have finished what they hold");
  return kExitDone;
}

}  // namespace

void add_farm_down(Command slurm, CommandContext& context) {
  auto options = std::make_shared<FarmDownOptions>();
  const Command command =
      add_command(slurm, context, "down", "End all workers; those that run finish what they hold first",
                  [options] { return run_farm_down(*options); });
  options->place.offer(command);
  command.add_flag("--now", options->now, "Cancel them at once: their trials go to other workers");
}

}  // namespace tuner::cli
