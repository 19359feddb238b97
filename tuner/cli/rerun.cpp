// tuner rerun TRIAL: measures one trial again and prints the old result beside the new one.

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "tuner/cli/command.h"
#include "tuner/cli/log.h"
#include "tuner/client/daemon_client.h"
#include "tuner/jobs/tasks.h"
#include "tuner/text/format.h"

namespace tuner::cli {
namespace {

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
  std::string name = options.trial;
  if (options.daemon.empty()) {
    const Result<std::unique_ptr<Store>> store = Store::open(options.db, Store::Mode::kRead);
    if (!store) return report(store.status());
    const Result<TrialWithRecord> trial = (*store)->trial(options.trial);
    if (!trial) return report(trial.status());
    old = trial->record;
    name = trial->trial.name();
    if (const Status here = measurable_here(trial->task.target); !here) return report(here);
  }
  const Result<DaemonClient> client = DaemonClient::connect(
      {.daemon = options.daemon, .db = options.db, .own_worker = options.daemon.empty()});
  if (!client) return report(client.status());
  const Result<MeasureRecord> record = client->rerun(options.trial);
  if (!record) return report(record.status());
  client->stop_host("rerun is done");
  if (options.json) {
    const nlohmann::json json{{"trial", name},
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

void add_rerun_command(Command app, CommandContext& context) {
  auto options = std::make_shared<RerunOptions>();
  const Command command = add_command(app, context, "rerun", "Measures one trial again", [options, &context] {
    log_to_stderr(context.verbose > 0 ? spdlog::level::info : spdlog::level::err);
    return run(*options);
  });
  command
      .add_option("TRIAL", options->trial,
                  "as messages name it: j3.17; or by its id, as tuner records export has it: t812")
      .required();
  add_db_option(command, options->db);
  add_json_option(command, options->json);
  add_daemon_option(command, options->daemon, "; without it the trial runs on this machine");
}

}  // namespace tuner::cli
