// tuner workers: who measures for a daemon.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "tuner/cli/command.h"
#include "tuner/cli/log.h"
#include "tuner/client/daemon_client.h"
#include "tuner/text/terminal.h"

namespace tuner::cli {
namespace {

struct WorkersOptions {
  std::string db, daemon;
  bool json = false;
};

int run(const WorkersOptions& options) {
  const Result<DaemonClient> client = DaemonClient::connect({.daemon = options.daemon, .db = options.db});
  if (!client) return report(client.status());
  if (client->hosts())
    return report(not_found("no daemon runs on ", options.db,
                            ". Start one: tuner serve; of another machine: --daemon HOST:PORT"));
  const Result<v1::ListWorkersReply> reply = client->workers();
  if (!reply) return report(reply.status());
  if (options.json) {
    nlohmann::json json = nlohmann::json::array();
    for (const v1::WorkerSummary& w : reply->workers())
      json.push_back({{"worker", w.worker_id()},
                      {"host", w.host()},
                      {"targets", std::vector<std::string>(w.targets().begin(), w.targets().end())},
                      {"leases", w.leases()},
                      {"trials_done", w.trials_done()},
                      {"silent_s", w.silent_s()},
                      {"unfit", w.unfit()},
                      {"paused_s", w.paused_s()},
                      {"paused_why", w.paused_why()},
                      {"quarantined", w.quarantined()}});
    std::printf("%s\n", json.dump(2).c_str());
    return kExitDone;
  }
  if (reply->workers().empty())
    std::printf("no worker is connected. Start one: measure_server --daemon ADDRESS\n");
  const int width = terminal_width(STDOUT_FILENO);
  for (const v1::WorkerSummary& w : reply->workers()) {
    char silent[64];
    std::snprintf(silent, sizeof silent, "last heard of %.1f s ago", w.silent_s());
    const std::string line = shortened(str(w.worker_id(), " on ", w.host(), ": ", w.leases(), " leases, ",
                                           w.trials_done(), " trials done, ", silent),
                                       width);
    std::printf("%s\n", line.c_str());
    if (!w.unfit().empty())
      std::printf("  takes nothing now: %s\n",
                  shortened(without_controls(w.unfit()), std::max(0, width - 21)).c_str());
    if (w.paused_s() > 0) {
      const std::string why = str("  gets nothing for ", static_cast<int64_t>(w.paused_s()),
                                  " s: ", without_controls(w.paused_why()));
      std::printf("%s\n", shortened(why, width).c_str());
    }
    if (w.quarantined() > 0)
      std::printf("  sent %lld results that cannot be; tuner show TRIAL tells them\n",
                  static_cast<long long>(w.quarantined()));
    for (const std::string& target : w.targets())
      std::printf("  %s\n", shortened(without_controls(target), std::max(0, width - 2)).c_str());
  }
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
  command.add_option("--daemon", options->daemon,
                     "HOST:PORT, unix:/path or a credentials file; else the one that runs on the database");
}

}  // namespace tuner::cli
