// tuner farm slurm: workers of a daemon that Slurm places (tuner/farm).
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include "proto/daemon_access.h"
#include "tuner/cli/command.h"
#include "tuner/cli/log.h"
#include "tuner/client/daemon_client.h"
#include "tuner/command_line/interrupt.h"
#include "tuner/farm/slurm_farm.h"
#include "tuner/farm/slurm_view.h"

namespace tuner::cli {

namespace {

using slurm::SlurmFarm;

struct FarmOptions {
  slurm::WorkerWish wish;
  std::string folder, daemon, db;
  int workers = 1, wanted = -1, least = -1, most = -1, per_worker = 8;
  double every_s = 15;
  bool now = false;

  std::string place() const {
    return folder.empty() ? slurm::default_folder(wish.name) : folder + "/" + wish.name;
  }
};
using FarmOptionsPointer = std::shared_ptr<FarmOptions>;

void print_scaled(const SlurmFarm::Scaled& scaled) {
  const slurm::ScalePlan& plan = scaled.plan;
  if (plan.submit > 0) std::printf("%d workers submitted as array %s\n", plan.submit, scaled.array.c_str());
  if (!plan.cancel.empty()) std::printf("%zu waiting tasks cancelled\n", plan.cancel.size());
  if (!plan.drain.empty())
    std::printf("%zu workers told to finish what they hold, and to end\n", plan.drain.size());
  if (plan.empty()) std::printf("nothing to change\n");
  std::fflush(stdout);
}

// On the nodes it must have the same path.
std::string beside_this_program(const std::string& name) {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / name;
}

std::string absolute_path(const std::string& path) {
  std::error_code error;
  const std::filesystem::path full = std::filesystem::absolute(path, error);
  return error ? path : full.lexically_normal().string();
}

int run_farm_up(const FarmOptions& options) {
  slurm::WorkerWish wish = options.wish;
  const Result<DaemonAccess> access = find_daemon(wish.credentials);
  if (!access) return report(access.status());
  if (access->worker.ends_with(kOfAFleet))
    wish.fleet = access->worker.substr(0, access->worker.size() - kOfAFleet.size());
  wish.credentials = absolute_path(wish.credentials);
  wish.program = wish.program.empty() ? beside_this_program("measure_server") : absolute_path(wish.program);
  Result<SlurmFarm> farm = SlurmFarm::create(absolute_path(options.place()), wish);
  if (!farm) return report(farm.status());
  const Result<SlurmFarm::Scaled> scaled = farm->scale(options.workers);
  if (!scaled) return report(scaled.status());
  print_scaled(*scaled);
  std::printf("script %s/worker.sh, logs %s\nnext: %s\n", farm->folder().c_str(), farm->logs().c_str(),
              "tuner farm slurm status");
  return kExitDone;
}

int run_farm_status(const FarmOptions& options) {
  const Result<SlurmFarm> farm = SlurmFarm::open(absolute_path(options.place()));
  if (!farm) return report(farm.status());
  slurm::View view{.fleet = farm->fleet(), .logs = farm->logs(), .tasks = {}, .nodes = {}, .workers = {}};
  Result<std::vector<slurm::Task>> tasks = farm->tasks();
  if (!tasks) return report(tasks.status());
  view.tasks = *std::move(tasks);
  Result<std::vector<slurm::Node>> nodes = farm->nodes();
  if (!nodes) return report(nodes.status());
  view.nodes = *std::move(nodes);
  if (!options.daemon.empty()) {
    const Result<DaemonClient> client = DaemonClient::connect({.daemon = options.daemon, .db = ""});
    Result<v1::ListWorkersReply> workers =
        client ? client->workers() : Result<v1::ListWorkersReply>(client.status());
    if (!workers) return report(workers.status());
    view.workers = *std::move(workers);
  }
  std::printf("%s", slurm::view_text(view).c_str());
  return kExitDone;
}

int run_farm_down(const FarmOptions& options) {
  Result<SlurmFarm> farm = SlurmFarm::open(absolute_path(options.place()));
  if (!farm) return report(farm.status());
  const Result<int> jobs = farm->down(options.now);
  if (!jobs) return report(jobs.status());
  std::printf("%d workers %s\n", *jobs,
              options.now ? "cancelled" : "end when they have finished what they hold");
  return kExitDone;
}

// Sleeps, but not through an interrupt.
void pause_of_farm(double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!interrupted() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
}

// One look at the daemon's queue, and what it changes.
Status follow_once(const FarmOptions& options, const DaemonClient& client, SlurmFarm& farm,
                   slurm::Follower& follower) {
  ASSIGN_OR_RETURN(const v1::ListReply known, client.known_jobs());
  ASSIGN_OR_RETURN(const std::vector<slurm::Task> tasks, farm.tasks());
  const int64_t open = known.daemon().queued() + known.daemon().leased();
  const int now = farm.staying(tasks);
  const int wanted =
      follower.next(slurm::wanted_workers(open, options.per_worker, options.least, options.most), now);
  if (wanted == now) return Status::ok();
  std::printf("%lld trials wait or run, %d workers: %d wanted\n", static_cast<long long>(open), now, wanted);
  ASSIGN_OR_RETURN(const SlurmFarm::Scaled scaled, farm.scale(wanted));
  print_scaled(scaled);
  return Status::ok();
}

// An error of one round (the daemon starts anew, slurmctld is busy) is told; the next round tries again.
int follow_queue(const FarmOptions& options, SlurmFarm& farm) {
  constexpr int kPatience = 4;
  const Result<DaemonClient> client = DaemonClient::connect({.daemon = options.daemon, .db = ""});
  if (!client) return report(client.status());
  catch_interrupts();
  slurm::Follower follower(kPatience);
  while (!interrupted()) {
    (void)report(follow_once(options, *client, farm, follower));
    pause_of_farm(options.every_s);
  }
  return kExitDone;
}

int run_farm_scale(const FarmOptions& options) {
  const bool follows = options.least >= 0 || options.most >= 0;
  if (follows == (options.wanted >= 0))
    return report(invalid_argument("expected N, or --min and --max; found ", follows ? "both" : "neither"));
  if (follows && (options.least < 0 || options.most < std::max(1, options.least)))
    return report(invalid_argument("--min, --max: expected 0 <= min <= max and max >= 1, found ",
                                   options.least, " and ", options.most));
  if (follows && options.daemon.empty())
    return report(
        invalid_argument("--daemon: expected credentials with the role query, found none: the daemon's "
                         "queue decides"));
  Result<SlurmFarm> farm = SlurmFarm::open(absolute_path(options.place()));
  if (!farm) return report(farm.status());
  if (follows) return follow_queue(options, *farm);
  const Result<SlurmFarm::Scaled> scaled = farm->scale(options.wanted);
  if (!scaled) return report(scaled.status());
  print_scaled(*scaled);
  return kExitDone;
}

Command add_farm_act(Command slurm, CommandContext& context, const char* name, const char* help,
                     int (*body)(const FarmOptions&), const FarmOptionsPointer& options) {
  const Command act = add_command(slurm, context, name, help, [options, body, &context] {
    log_to_stderr(context.verbose > 0 ? spdlog::level::info : spdlog::level::err);
    return body(*options);
  });
  act.add_option("--name", options->wish.name, "Name of these workers; their jobs are called tuner-NAME")
      .type_name("NAME")
      .show_default();
  act.add_option("--folder", options->folder,
                 "Folder for the farm's script and logs, which all nodes see (default: "
                 "~/.local/state/tuner/slurm)")
      .type_name("DIR");
  return act;
}

void add_farm_up(Command slurm, CommandContext& context, const FarmOptionsPointer& options) {
  slurm::WorkerWish& wish = options->wish;
  const Command up_command =
      add_farm_act(slurm, context, "up", "Submit workers as a job array", run_farm_up, options);
  up_command
      .add_option(
          "--credentials", wish.credentials,
          "Credentials of a fleet (tuner admin worker NAME --fleet), under a path that all nodes know")
      .required()
      .type_name("FILE");
  up_command.add_option("--workers", options->workers, "How many").in_range(1, 10'000).show_default();
  up_command.add_option("--cores", wish.cores, "Whole cores per worker; 0: the whole node")
      .in_range(0, 4096)
      .show_default();
  up_command.add_option("--partition", wish.partition, "As for sbatch").type_name("P");
  up_command.add_option("--constraint", wish.constraint, "Features of the nodes, as for sbatch")
      .type_name("C");
  up_command.add_option("--gres", wish.gres, "Such as gpu:1, as for sbatch").type_name("GRES");
  up_command
      .add_option("--time", wish.time, "Limit per start, as for sbatch; the worker ends a minute before")
      .type_name("T");
  up_command.add_option("--account", wish.account, "As for sbatch").type_name("A");
  up_command.add_option("--qos", wish.qos, "As for sbatch").type_name("Q");
  up_command
      .add_option("--work-root", wish.work_root,
                  "Folder of the nodes' own disks: never on a shared filesystem")
      .type_name("DIR")
      .show_default();
  up_command
      .add_option("--program", wish.program,
                  "measure_server, under a path that all nodes know (default: beside tuner)")
      .type_name("FILE");
}

void add_farm_scale(Command slurm, CommandContext& context, const FarmOptionsPointer& options) {
  const Command scale_command =
      add_farm_act(slurm, context, "scale",
                   "Change how many workers there are: to N, or with --min and --max as "
                   "many as the daemon's queue keeps busy, "
                   "until interrupted",
                   run_farm_scale, options);
  scale_command.add_option("N", options->wanted, "So many").in_range(0, 10'000);
  scale_command.add_option("--min", options->least, "At least").in_range(0, 10'000);
  scale_command.add_option("--max", options->most, "At most").in_range(1, 10'000);
  scale_command.add_option("--per-worker", options->per_worker, "Trials that keep one worker busy")
      .in_range(1, 10'000)
      .show_default();
  scale_command.add_option("--every", options->every_s, "Seconds between looks at the queue")
      .in_range(0.5, 3600.0)
      .show_default();
  add_daemon_option(scale_command, options->daemon, ": whose queue decides");
}

}  // namespace

void add_farm_command(Command app, CommandContext& context) {
  const Command farm = app.add_subcommand("farm", "Workers that a scheduler places");
  farm.need_subcommand();
  const Command slurm = farm.add_subcommand("slurm", "Workers under Slurm");
  slurm.need_subcommand();
  const auto made = [] { return std::make_shared<FarmOptions>(); };
  add_farm_up(slurm, context, made());
  FarmOptionsPointer options = made();
  const Command status_command = add_farm_act(
      slurm, context, "status", "Slurm's tasks, what the daemon knows of their workers, and their logs",
      run_farm_status, options);
  add_daemon_option(status_command, options->daemon, ": which also tells what they do");
  add_farm_scale(slurm, context, made());
  options = made();
  const Command down_command =
      add_farm_act(slurm, context, "down", "End all workers; those that run finish what they hold first",
                   run_farm_down, options);
  down_command.add_flag("--now", options->now, "Cancel them at once: their trials go to other workers");
}

}  // namespace tuner::cli
