// tuner health: whether a daemon is ready, as an exit code. Kubernetes calls it as an exec probe.
#include <cstdio>
#include <memory>

#include "tuner/cli/command.h"
#include "tuner/client/daemon_health.h"

namespace tuner::cli {
namespace {

struct HealthOptions {
  std::string db, daemon;
  double limit_s = 3;
};

int run(const HealthOptions& options) {
  const Status ready = check_daemon(options.daemon, options.db, options.limit_s);
  if (ready) std::printf("ready\n");
  return report(ready);
}

}  // namespace

void add_health_command(Command app, CommandContext& context) {
  auto options = std::make_shared<HealthOptions>();
  const Command command =
      add_command(app, context, "health", "Tells whether a daemon is ready: exit code 0, else 1",
                  [options] { return run(*options); });
  add_db_option(command, options->db);
  add_daemon_option(command, options->daemon, "; else the one that runs on the database");
  command.add_option("--limit", options->limit_s, "How long an answer may take, seconds")
      .in_range(0.1, 600.0)
      .show_default();
}

}  // namespace tuner::cli
