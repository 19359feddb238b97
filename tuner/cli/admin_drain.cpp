// tuner admin drain WORKER: a worker finishes what it holds and ends.
#include <cstdio>
#include <memory>

#include "tuner/cli/admin_commands.h"
#include "tuner/client/daemon_client.h"

namespace tuner::cli {
namespace {

struct DrainOptions {
  std::string db, identity, daemon, worker;
};

int drain(const DrainOptions& options) {
  const Result<DaemonClient> client = DaemonClient::connect({.daemon = options.daemon, .db = options.db});
  const Result<int> leases = client ? client->drain(options.worker) : Result<int>(client.status());
  if (!leases) return report(leases.status());
  std::printf("%s: finishes %d leases, then ends\n", options.worker.c_str(), *leases);
  return kExitDone;
}

}  // namespace

void add_admin_drain(Command admin, CommandContext& context) {
  auto options = std::make_shared<DrainOptions>();
  const Command command = add_command(admin, context, "drain", "Lets a worker finish what it holds, and end",
                                      [options] { return drain(*options); });
  add_db_option(command, options->db);
  add_identity_option(command, options->identity);
  command.add_option("WORKER", options->worker, "As tuner workers calls it").required();
  add_daemon_option(command, options->daemon, "; else the one that runs on the database");
}

}  // namespace tuner::cli
