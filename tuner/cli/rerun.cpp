// tuner rerun TRIAL: measures one trial again and prints the old result beside the new one.
#include <grpcpp/client_context.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "proto/convert.h"
#include "tuner/cli/command.h"
#include "tuner/cli/format.h"
#include "tuner/cli/log.h"
#include "tuner/cli/tasks.h"
#include "tuner/daemon/connection.h"
#include "tuner/daemon/grpc_status.h"

namespace tuner::cli {
namespace {

constexpr std::chrono::seconds kLimit{330};  // the daemon answers within 300

struct RerunOptions {
  std::string trial, db, daemon;
  bool json = false;
};

std::string describe(const MeasureRecord& record) {
  const std::string outcome(outcome_name(record.outcome));
  if (record.outcome == Outcome::kOk)
    return str(format_time(record_time_ns(record)), " (", record.run_ns.size(), " samples",
               record.cut ? ", cut: a bound only" : "", ")");
  return record.message.empty() ? outcome : outcome + ": " + record.message;
}

nlohmann::json to_json(const MeasureRecord& record) {
  return {{"outcome", outcome_name(record.outcome)},
          {"time_ns", record_time_ns(record)},
          {"run_ns", record.run_ns},
          {"message", record.message}};
}

int run(const RerunOptions& options) {
  // The trial is in the file when the file is here.
  std::optional<MeasureRecord> old;
  if (options.daemon.empty()) {
    const Result<std::unique_ptr<Store>> store = Store::open(options.db, Store::Mode::kRead);
    if (!store) return report(store.status());
    const Result<TrialWithRecord> trial = (*store)->trial(options.trial);
    if (!trial) return report(trial.status());
    old = trial->record;
    if (const Status here = measurable_here(trial->task.target); !here) return report(here);
  }
  Result<Connection> connection =
      connect({.daemon = options.daemon, .db = options.db, .own_worker = options.daemon.empty()});
  if (!connection) return report(connection.status());
  v1::RerunRequest request;
  request.set_trial_id(options.trial);
  v1::MeasureRecord reply;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kLimit);
  if (const Status s = from_grpc(connection->jobs->Rerun(&context, request, &reply), connection->name); !s)
    return report(s);
  const Result<MeasureRecord> record = from_proto(reply);
  if (!record) return report(record.status());
  if (connection->host) connection->host->stop("rerun is done");
  if (options.json) {
    const nlohmann::json json{{"trial", options.trial},
                              {"before", old ? to_json(*old) : nlohmann::json(nullptr)},
                              {"now", to_json(*record)}};
    std::printf("%s\n", json.dump(2).c_str());
  } else {
    if (old) std::printf("before  %s\n", describe(*old).c_str());
    std::printf("now     %s\n", describe(*record).c_str());
  }
  return record->outcome == Outcome::kOk ? kExitDone : kExitFailed;
}

}  // namespace

void add_rerun_command(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<RerunOptions>();
  CLI::App* command = add_command(app, context, "rerun", "Measures one trial again", [options, &context] {
    log_to_stderr(context.verbose > 0 ? spdlog::level::info : spdlog::level::err);
    return run(*options);
  });
  command->add_option("TRIAL", options->trial, "as in messages and tuner records export: t812")->required();
  add_db_option(*command, options->db);
  add_json_option(*command, options->json);
  command->add_option("--daemon", options->daemon,
                      "HOST:PORT or unix:/path; without it the trial runs on this machine");
}

}  // namespace tuner::cli
