// tuner farm slurm status: Slurm's tasks, what the daemon knows of their workers, and their logs.
#include <cstdio>
#include <memory>

#include "tuner/cli/farm_commands.h"
#include "tuner/client/daemon_client.h"
#include "tuner/farm/slurm_view.h"

namespace tuner::cli {

namespace {

struct FarmStatusOptions {
  FarmPlace place;
  std::string daemon;
};

Result<v1::ListWorkersReply> workers_of_farm(const std::string& daemon) {
  ASSIGN_OR_RETURN(const DaemonClient client, DaemonClient::connect({.daemon = daemon, .db = ""}));
  return client.workers();
}

Result<slurm::View> view_of_farm(const FarmStatusOptions& options) {
  ASSIGN_OR_RETURN(const slurm::SlurmFarm farm, slurm::SlurmFarm::open(options.place.path()));
  slurm::View view{.fleet = farm.fleet(), .logs = farm.logs(), .tasks = {}, .nodes = {}, .workers = {}};
  ASSIGN_OR_RETURN(view.tasks, farm.tasks());
  ASSIGN_OR_RETURN(view.nodes, farm.nodes());
  if (options.daemon.empty()) return view;
  ASSIGN_OR_RETURN(view.workers, workers_of_farm(options.daemon));
  return view;
}

int run_farm_status(const FarmStatusOptions& options) {
  const Result<slurm::View> view = view_of_farm(options);
  if (!view) return report(view.status());
  std::printf("%s", slurm::view_text(*view).c_str());
  return kExitDone;
}

}  // namespace

void add_farm_status(Command slurm, CommandContext& context) {
  auto options = std::make_shared<FarmStatusOptions>();
  const Command command =
      add_command(slurm, context, "status",
                  "Slurm's tasks, what the daemon knows of their workers, and their logs", [options] {
                    log_to_stderr(spdlog::level::err);
                    return run_farm_status(*options);
                  });
  options->place.offer(command);
  add_daemon_option(command, options->daemon, ": which also tells what they do");
}

}  // namespace tuner::cli
