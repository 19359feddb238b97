// tuner workers: who measures for a daemon.
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "tuner/cli/command.h"
#include "tuner/cli/log.h"
#include "tuner/client/daemon_client.h"
#include "tuner/client/worker_list.h"
#include "tuner/text/terminal.h"

namespace tuner::cli {
namespace {

struct WorkersOptions {
  std::string db, daemon;
  bool json = false, all = false;
};

int run(const WorkersOptions& options) {
  const Result<DaemonClient> client = DaemonClient::connect({.daemon = options.daemon, .db = options.db});
  if (!client) return report(client.status());
  if (client->hosts())
    return report(not_found("no daemon runs on ", options.db,
                            ". Start one: tuner serve; of another machine: --daemon HOST:PORT"));
  const Result<v1::ListWorkersReply> reply = client->workers();
  if (!reply) return report(reply.status());
  const std::string text =
      options.json ? workers_json(*reply) : workers_text(*reply, terminal_width(STDOUT_FILENO), options.all);
  std::printf("%s", text.c_str());
  return kExitDone;
}

}  // namespace

void add_workers_command(Command app, CommandContext& context) {
  auto options = std::make_shared<WorkersOptions>();
  const Command command = add_command(app, context, "workers", "Lists a daemon's workers", [options] {
    log_to_stderr(spdlog::level::err);
    return run(*options);
  });
  add_db_option(command, options->db);
  add_json_option(command, options->json);
  command.add_flag("--all", options->all,
                   "Also those not heard of for more than ten minutes; --json lists them anyway");
  add_daemon_option(command, options->daemon, "; else the one that runs on the database");
}

}  // namespace tuner::cli
