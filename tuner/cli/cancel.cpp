// tuner cancel JOB: ends a job; what it measured stays.

#include <cstdio>
#include <memory>

#include "tuner/cli/command.h"
#include "tuner/cli/log.h"
#include "tuner/client/daemon_client.h"
#include "tuner/jobs/job_word.h"

namespace tuner::cli {
namespace {

struct CancelOptions {
  std::string job, db, daemon;
};

int run(const CancelOptions& options) {
  // Of a file there may be several: which one ends is for people to say.
  if (const Result<std::string> job = job_of_word(options.job, nullptr); !job) return report(job.status());
  const Result<DaemonClient> client = DaemonClient::connect({.daemon = options.daemon, .db = options.db});
  if (!client) return report(client.status());
  const Result<v1::CancelReply> reply = client->cancel(options.job);
  if (!reply) return report(reply.status());
  if (reply->state() == v1::CANCELLED) {
    std::printf("job %s is cancelled; what it measured stays\n", options.job.c_str());
    return kExitDone;
  }
  std::printf("job %s had ended before\n", options.job.c_str());
  return kExitFailed;
}

}  // namespace

void add_cancel_command(Command app, CommandContext& context) {
  auto options = std::make_shared<CancelOptions>();
  const Command command =
      add_command(app, context, "cancel", "Ends a job; what it measured stays", [options] {
        log_to_stderr(spdlog::level::err);
        return run(*options);
      });
  command.add_option("JOB", options->job, "as listed by tuner jobs: j3").required();
  add_db_option(command, options->db);
  add_daemon_option(command, options->daemon, "; else the one that runs on the database");
}

}  // namespace tuner::cli
