// tuner cancel JOB: ends a job; what it measured stays.
#include <grpcpp/client_context.h>

#include <chrono>
#include <cstdio>
#include <memory>

#include "tuner/cli/command.h"
#include "tuner/cli/log.h"
#include "tuner/daemon/connection.h"
#include "tuner/daemon/grpc_status.h"

namespace tuner::cli {
namespace {

struct CancelOptions {
  std::string job, db, daemon;
};

int run(const CancelOptions& options) {
  Result<Connection> connection = connect({.daemon = options.daemon, .db = options.db});
  if (!connection) return report(connection.status());
  v1::CancelRequest request;
  request.set_job_id(options.job);
  v1::CancelReply reply;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  if (const Status s = from_grpc(connection->jobs->Cancel(&context, request, &reply), connection->name); !s)
    return report(s);
  if (reply.state() == v1::CANCELLED) {
    std::printf("job %s is cancelled; what it measured stays\n", options.job.c_str());
    return kExitDone;
  }
  std::printf("job %s had ended before\n", options.job.c_str());
  return kExitFailed;
}

}  // namespace

void add_cancel_command(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<CancelOptions>();
  CLI::App* command = add_command(app, context, "cancel", "Ends a job; what it measured stays", [options] {
    log_to_stderr(spdlog::level::err);
    return run(*options);
  });
  command->add_option("JOB", options->job, "as listed by tuner jobs: j3")->required();
  add_db_option(*command, options->db);
  command->add_option("--daemon", options->daemon,
                      "HOST:PORT or unix:/path; else the one that runs on the database");
}

}  // namespace tuner::cli
