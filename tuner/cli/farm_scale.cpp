// tuner farm slurm scale: so many workers, or as many as the daemon's queue keeps busy.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>

#include "tuner/cli/farm_commands.h"
#include "tuner/client/daemon_client.h"
#include "tuner/command_line/interrupt.h"

namespace tuner::cli {

namespace {

using slurm::SlurmFarm;

struct FarmScaleOptions {
  FarmPlace place;
  std::string daemon;
  int wanted = -1, least = -1, most = -1, per_worker = 8;  // negative: not given
  double every_s = 15;
  bool follows() const { return least >= 0 || most >= 0; }
};

Status check_scale(const FarmScaleOptions& o) {
  if (o.follows() == (o.wanted >= 0))
    return invalid_argument("expected N, or --min and --max; found ", o.follows() ? "both" : "neither");
  if (!o.follows()) return Status::ok();
  if (o.least < 0 || o.most < std::max(1, o.least))
    return invalid_argument("--min, --max: expected 0 <= min <= max and max >= 1, found ", o.least, " and ",
                            o.most);
  if (o.daemon.empty())
    return invalid_argument(
        "--daemon: expected credentials with the role query, found none: the daemon's queue decides");
  return Status::ok();
}

void tell_scaled(const SlurmFarm::Scaled& scaled) {
  std::printf("%s", scaled.text().c_str());
  std::fflush(stdout);
}

// Sleeps, but not through an interrupt.
void pause_between_looks(double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!interrupted() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
}

// One look at the daemon's queue, and what it changes.
Status follow_once(const FarmScaleOptions& options, const DaemonClient& client, SlurmFarm& farm,
                   slurm::Follower& follower) {
  ASSIGN_OR_RETURN(const v1::ListReply known, client.known_jobs());
  ASSIGN_OR_RETURN(const std::vector<slurm::Task> tasks, farm.tasks());
  const int64_t open = known.daemon().queued() + known.daemon().leased();
  const int now = farm.staying(tasks);
  const int busy = slurm::wanted_workers(open, options.per_worker, options.least, options.most);
  const int wanted = follower.next(busy, now);
  if (wanted == now) return Status::ok();
  std::printf("%lld trials wait or run, %d workers: %d wanted\n", static_cast<long long>(open), now, wanted);
  ASSIGN_OR_RETURN(const SlurmFarm::Scaled scaled, farm.scale(wanted));
  tell_scaled(scaled);
  return Status::ok();
}

// An error of one round (the daemon starts anew, slurmctld is busy) is told; the next round tries again.
int follow_queue(const FarmScaleOptions& options, SlurmFarm& farm) {
  constexpr int kPatience = 4;
  const Result<DaemonClient> client = DaemonClient::connect({.daemon = options.daemon, .db = ""});
  if (!client) return report(client.status());
  catch_interrupts();
  slurm::Follower follower(kPatience);
  while (!interrupted()) {
    (void)report(follow_once(options, *client, farm, follower));
    pause_between_looks(options.every_s);
  }
  return kExitDone;
}

int run_farm_scale(const FarmScaleOptions& options) {
  if (const Status fit = check_scale(options); !fit) return report(fit);
  Result<SlurmFarm> farm = SlurmFarm::open(options.place.path());
  if (!farm) return report(farm.status());
  if (options.follows()) return follow_queue(options, *farm);
  const Result<SlurmFarm::Scaled> scaled = farm->scale(options.wanted);
  if (!scaled) return report(scaled.status());
  tell_scaled(*scaled);
  return kExitDone;
}

}  // namespace

void add_farm_scale(Command slurm, CommandContext& context) {
  auto options = std::make_shared<FarmScaleOptions>();
  const Command command = add_command(
      slurm, context, "scale",
      "Change how many workers there are: to N, or with --min and --max as many as the daemon's queue keeps "
      "busy, until interrupted",
      [options] {
        log_to_stderr(spdlog::level::err);
        return run_farm_scale(*options);
      });
  options->place.offer(command);
  command.add_option("N", options->wanted, "So many").in_range(0, 10'000);
  command.add_option("--min", options->least, "At least").in_range(0, 10'000);
  command.add_option("--max", options->most, "At most").in_range(1, 10'000);
  command.add_option("--per-worker", options->per_worker, "Trials that keep one worker busy")
      .in_range(1, 10'000)
      .show_default();
  command.add_option("--every", options->every_s, "Seconds between looks at the queue")
      .in_range(0.5, 3600.0)
      .show_default();
  add_daemon_option(command, options->daemon, ": whose queue decides");
}

}  // namespace tuner::cli
