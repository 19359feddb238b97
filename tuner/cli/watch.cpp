// tuner watch JOB: follows a job that a daemon runs, until it ends.
#include <cstdio>
#include <memory>

#include "compiler_core/base/printable.h"
#include "proto/convert.h"
#include "tuner/cli/command.h"
#include "tuner/cli/log.h"
#include "tuner/client/daemon_client.h"
#include "tuner/client/progress_view.h"
#include "tuner/command_line/interrupt.h"
#include "tuner/jobs/job_state.h"
#include "tuner/jobs/job_word.h"
#include "tuner/text/time_words.h"

namespace tuner::cli {
namespace {

struct WatchOptions {
  std::string job, db, daemon;
};

// Without a daemon there is nothing to follow when nobody works on the job.
Status check_running(const WatchOptions& options) {
  if (!options.daemon.empty()) return Status::ok();
  const JobStates states(options.db);
  ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, Store::open(options.db, Store::Mode::kRead));
  ASSIGN_OR_RETURN(const JobRow job, store->job(options.job));
  if (!states.is_interrupted(job)) return Status::ok();
  return Status(StatusCode::kAborted, str("job ", options.job, " was interrupted: ", states.message(job)));
}

// A job file names its newest job, where the database is here.
Status name_job(WatchOptions& options) {
  std::unique_ptr<Store> store;
  if (options.daemon.empty()) {
    ASSIGN_OR_RETURN(store, Store::open(options.db, Store::Mode::kRead));
  }
  ASSIGN_OR_RETURN(options.job, job_of_word(options.job, store.get()));
  return Status::ok();
}

int run(WatchOptions& options) {
  if (const Status named = name_job(options); !named) return report(named);
  if (const Status running = check_running(options); !running) return report(running);
  const Result<DaemonClient> client = DaemonClient::connect({.daemon = options.daemon, .db = options.db});
  if (!client) return report(client.status());
  ProgressView view(1);
  v1::JobEvent last;
  const std::unique_ptr<JobWatch> watch = client->watch(options.job, 0);
  while (true) {
    JobWatch::Next next = watch->next(100);
    if (interrupted()) {
      view.finish();
      std::fprintf(stderr, "left; job %s goes on\n", options.job.c_str());
      return kExitFailed;
    }
    if (next.event) {
      view.show(*next.event);
      if (next.event->has_tuned()) {
        const v1::TunedConfig& t = next.event->tuned();
        if (const Result<TunedConfig> tuned = from_proto(t))
          view.say(str("  ", t.workload_key(), ": ", time_words(*tuned).time, "; ",
                       time_words(*tuned).certainty, "; with ", t.template_name(), " ", t.config()));
      }
      last = *next.event;
    } else if (next.ended) {
      view.finish();
      if (!next.status) return report(next.status);
      break;
    }
  }
  const bool finished = last.state() == v1::FINISHED;
  std::printf("job %s %s%s%s\n", options.job.c_str(),
              finished                        ? "finished"
              : last.state() == v1::CANCELLED ? "was cancelled"
                                              : "failed",
              last.message().empty() ? "" : ": ", printable(last.message()).c_str());
  return finished ? kExitDone : kExitFailed;
}

}  // namespace

void add_watch_command(Command app, CommandContext& context) {
  auto options = std::make_shared<WatchOptions>();
  const Command command = add_command(app, context, "watch", "Follows a running job", [options, &context] {
    log_to_stderr(context.verbose > 0 ? spdlog::level::info : spdlog::level::err);
    catch_interrupts();
    return run(*options);
  });
  command
      .add_option("JOB", options->job, "as listed by tuner jobs: j3; or its job file: the newest job of that")
      .required();
  add_db_option(command, options->db);
  add_daemon_option(command, options->daemon, "; else the one that runs on the database");
}

}  // namespace tuner::cli
