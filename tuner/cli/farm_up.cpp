// tuner farm slurm up: submits workers as a job array.
#include <cstdio>
#include <filesystem>
#include <memory>

#include "proto/daemon_access.h"
#include "tuner/cli/farm_commands.h"

namespace tuner::cli {

namespace {

struct FarmUpOptions {
  FarmPlace place;
  slurm::WorkerWish wish;
  int workers = 1;
};

// On the nodes it must have the same path.
std::string beside_this_program(const std::string& name) {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / name;
}

int run_farm_up(const FarmUpOptions& options) {
  slurm::WorkerWish wish = options.wish;
  const Result<DaemonAccess> access = find_daemon(wish.credentials);
  if (!access) return report(access.status());
  if (access->worker.ends_with(kOfAFleet))
    wish.fleet = access->worker.substr(0, access->worker.size() - kOfAFleet.size());
  wish.name = options.place.name;
  wish.credentials = absolute_path(wish.credentials);
  wish.program = wish.program.empty() ? beside_this_program("measure_server") : absolute_path(wish.program);
  Result<slurm::SlurmFarm> farm = slurm::SlurmFarm::create(options.place.path(), wish);
  if (!farm) return report(farm.status());
  const Result<slurm::SlurmFarm::Scaled> scaled = farm->scale(options.workers);
  if (!scaled) return report(scaled.status());
  std::printf("%sscript %s/worker.sh, logs %s\nnext: tuner farm slurm status\n", scaled->text().c_str(),
              farm->folder().c_str(), farm->logs().c_str());
  return kExitDone;
}

}  // namespace

void add_farm_up(Command slurm, CommandContext& context) {
  auto options = std::make_shared<FarmUpOptions>();
  slurm::WorkerWish& wish = options->wish;
  const Command command = add_command(slurm, context, "up", "Submit workers as a job array",
                                      [options] { return run_farm_up(*options); });
  options->place.offer(command);
  command
      .add_option(
          "--credentials", wish.credentials,
          "Credentials of a fleet (tuner admin worker NAME --fleet), under a path that all nodes know")
      .required()
      .type_name("FILE");
  command.add_option("--workers", options->workers, "How many").in_range(1, 10'000).show_default();
  command.add_option("--cores", wish.cores, "Whole cores per worker; 0: the whole node")
      .in_range(0, 4096)
      .show_default();
  command.add_option("--partition", wish.partition, "As for sbatch").type_name("P");
  command.add_option("--constraint", wish.constraint, "Features of the nodes, as for sbatch").type_name("C");
  command.add_option("--gres", wish.gres, "Such as gpu:1, as for sbatch").type_name("GRES");
  command.add_option("--time", wish.time, "Limit per start, as for sbatch; the worker ends a minute before")
      .type_name("T");
  command.add_option("--account", wish.account, "As for sbatch").type_name("A");
  command.add_option("--qos", wish.qos, "As for sbatch").type_name("Q");
  command
      .add_option("--work-root", wish.work_root,
                  "Folder of the nodes' own disks: never on a shared filesystem")
      .type_name("DIR")
      .show_default();
  command
      .add_option("--program", wish.program,
                  "measure_server, under a path that all nodes know (default: beside tuner)")
      .type_name("FILE");
}

}  // namespace tuner::cli
