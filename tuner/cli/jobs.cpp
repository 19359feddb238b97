// tuner jobs: what was submitted and how far it is, read from the database file or told by a daemon.
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <optional>

#include "compiler_core/base/printable.h"
#include "proto/convert.h"
#include "tuner/cli/command.h"
#include "tuner/cli/log.h"
#include "tuner/client/daemon_client.h"
#include "tuner/jobs/job_state.h"
#include "tuner/jobs/tasks.h"
#include "tuner/text/facts.h"
#include "tuner/text/format.h"
#include "tuner/text/hint.h"
#include "tuner/text/terminal.h"
#include "tuner/text/time_words.h"

namespace tuner::cli {

namespace {

struct JobsOptions {
  std::string db, daemon;
  bool json = false;
};

struct Listed {
  JobRow job;
  int64_t done = 0;
  std::string state, message;
};
// Where the facts come from.
struct Source {
  std::vector<Listed> jobs;
  std::function<std::optional<TunedConfig>(const JobRow::Task&)> best;
};

Result<Source> read_file(const std::string& db) {
  ASSIGN_OR_RETURN(std::unique_ptr<Store> opened, Store::open(db, Store::Mode::kRead));
  const std::shared_ptr<Store> store = std::move(opened);
  const JobStates states(db);
  ASSIGN_OR_RETURN(const std::vector<JobRow> jobs, store->jobs());
  Source source;
  for (const JobRow& job : jobs) {
    ASSIGN_OR_RETURN(const int64_t done, store->trials_done(job.id));
    source.jobs.push_back({job, done, states.name(job), states.message(job)});
  }
  source.best = [store](const JobRow::Task& task) -> std::optional<TunedConfig> {
    Result<TunedConfig> best = store->best(task.workload_key, task.target, templates_of(task.algorithms));
    if (!best) return std::nullopt;
    return *std::move(best);
  };
  return source;
}

Result<Source> ask_daemon(const std::string& address) {
  ASSIGN_OR_RETURN(DaemonClient connected, DaemonClient::connect({.daemon = address}));
  const auto client = std::make_shared<DaemonClient>(std::move(connected));
  ASSIGN_OR_RETURN(const v1::ListReply reply, client->jobs());
  Source source;
  for (int i = 0; i < reply.jobs_size(); ++i) {
    ASSIGN_OR_RETURN(JobRow job, from_proto(reply.jobs(i), str("jobs[", i, "]")));
    const std::string state(job_state_name(job.state)), message = without_controls(job.message);
    source.jobs.push_back({std::move(job), reply.jobs(i).trials_done(), state, message});
  }
  source.best = [client](const JobRow::Task& task) -> std::optional<TunedConfig> {
    Result<std::optional<TunedConfig>> tuned = client->tuned(task);
    return tuned ? *std::move(tuned) : std::nullopt;
  };
  return source;
}

void say(const std::string& line) { std::printf("%s\n", printable(line).c_str()); }

void tell(const Source& source, const Listed& listed, int width) {
  const JobRow& job = listed.job;
  const int64_t wanted = int64_t{job.trials} * static_cast<int64_t>(job.tasks.size());
  say(fitted({{job.id, 9},
              {listed.state, 8},
              {str(listed.done, " of ", wanted, " trials"), 7},
              {str(job.search, " seed ", job.seed), 3},
              {"submitted " + format_utc(job.submitted_at_us), 5},
              {with_commands(listed.message), 6}},
             width));
  for (const JobRow::Task& task : job.tasks) {
    const std::optional<TunedConfig> best = source.best(task);
    say(shortened(str("    ", task.workload_key, "  on  ", task.target), width));
    if (best)
      say(shortened(str("        ", time_words(*best).time, "; ", time_words(*best).certainty), width));
  }
}

nlohmann::ordered_json json_of(const Source& source, const Listed& listed) {
  const JobRow& job = listed.job;
  nlohmann::ordered_json tasks = nlohmann::ordered_json::array();
  for (const JobRow::Task& task : job.tasks) {
    const std::optional<TunedConfig> best = source.best(task);
    tasks.push_back({{"workload", task.workload_key},
                     {"target", task.target},
                     {"tuned", best ? tuned_json(*best, 0) : nlohmann::ordered_json(nullptr)}});
  }
  return {{"job", job.id},
          {"state", listed.state},
          {"message", listed.message},
          {"tasks", tasks},
          {"trials_per_task", job.trials},
          {"trials_done", listed.done},
          {"search", job.search},
          {"seed", job.seed},
          {"options", options_json(job.options)},
          {"submitted", iso_utc(job.submitted_at_us)},
          {"finished", iso_utc(job.finished_at_us)}};
}

int run_jobs(const JobsOptions& options) {
  const Result<Source> source = options.daemon.empty() ? read_file(options.db) : ask_daemon(options.daemon);
  if (!source) return report(source.status());
  const int width = terminal_width(STDOUT_FILENO);
  nlohmann::ordered_json document = nlohmann::ordered_json::array();
  if (!options.json && source->jobs.empty())
    std::fprintf(stderr, "tuner: no jobs yet. To tune: %s\n", command_line("submit FILE").c_str());
  for (const Listed& job : source->jobs)
    if (options.json)
      document.push_back(json_of(*source, job));
    else
      tell(*source, job, width);
  if (options.json) std::printf("%s\n", pretty(document).c_str());
  return kExitDone;
}

}  // namespace

void add_jobs_command(Command app, CommandContext& context) {
  auto options = std::make_shared<JobsOptions>();
  const Command command =
      add_command(app, context, "jobs", "List the jobs of a database, oldest first", [options] {
        log_to_stderr(spdlog::level::err);
        return run_jobs(*options);
      });
  add_db_option(command, options->db);
  add_json_option(command, options->json);
  add_daemon_option(command, options->daemon, ": the jobs of that daemon's database");
}

}  // namespace tuner::cli
