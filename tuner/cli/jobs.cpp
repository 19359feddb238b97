// tuner jobs: what was submitted and how far it is, read from the database file or told by a daemon.
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "compiler_core/base/printable.h"
#include "tuner/cli/command.h"
#include "tuner/cli/log.h"
#include "tuner/client/job_list.h"
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

struct Listed : ListedJob {
  std::string state, message;
  std::vector<Status> damage;  // rows of its answers that cannot be read
};

Result<std::vector<Listed>> read_listed(const std::string& db) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, Store::open(db, Store::Mode::kRead));
  const JobStates states(db);
  ASSIGN_OR_RETURN(const std::vector<JobRow> jobs, store->jobs());
  std::vector<Listed> all;
  for (const JobRow& job : jobs) {
    ASSIGN_OR_RETURN(const int64_t done, store->trials_done(job.id));
    Listed& listed = all.emplace_back(Listed{{job, done, {}}, states.name(job), states.message(job), {}});
    for (size_t i = 0; i < job.tasks.size(); ++i) {
      const JobRow::Task& task = job.tasks[i];
      Result<TunedConfig> best = store->best(task.workload_key, task.target, templates_of(task.algorithms),
                                             /*counted=*/true, task.constants);
      if (best)
        listed.tuned[i] = *std::move(best);
      else if (best.status().code() != StatusCode::kNotFound)
        listed.damage.push_back(best.status());
    }
  }
  return all;
}

Result<std::vector<Listed>> ask_daemon(const std::string& address, bool counted) {
  ASSIGN_OR_RETURN(const DaemonClient client, DaemonClient::connect({.daemon = address}));
  ASSIGN_OR_RETURN(std::vector<ListedJob> jobs, listed_jobs(client, counted));
  std::vector<Listed> all;
  for (ListedJob& one : jobs) {
    const std::string state(job_state_name(one.job.state)), message = without_controls(one.job.message);
    all.push_back({std::move(one), state, message, {}});
  }
  return all;
}

void say(const std::string& line) { std::printf("%s\n", printable(line).c_str()); }

void tell(const Listed& listed, int width) {
  const JobRow& job = listed.job;
  const int64_t wanted = int64_t{job.trials} * static_cast<int64_t>(job.tasks.size());
  say(fitted({{job.id, 9},
              {listed.state, 8},
              {str(listed.done, " of ", wanted, " trials"), 7},
              {str(job.search, " seed ", job.seed), 3},
              {"submitted " + format_utc(job.submitted_at_us), 5},
              {with_commands(listed.message), 6}},
             width));
  for (size_t i = 0; i < job.tasks.size(); ++i) {
    const JobRow::Task& task = job.tasks[i];
    const auto best = listed.tuned.find(i);
    say(shortened(str("    ", task.workload_key, "  on  ", task.target), width));
    if (best == listed.tuned.end()) continue;
    const auto words = time_words(best->second);
    say(shortened(str("        ", words.time, "; ", words.certainty), width));
  }
}

nlohmann::ordered_json json_of(const Listed& listed) {
  const JobRow& job = listed.job;
  nlohmann::ordered_json tasks = nlohmann::ordered_json::array();
  for (size_t i = 0; i < job.tasks.size(); ++i) {
    const JobRow::Task& task = job.tasks[i];
    const auto best = listed.tuned.find(i);
    tasks.push_back({{"workload", task.workload_key},
                     {"target", task.target},
                     {"tuned", best != listed.tuned.end() ? tuned_json(best->second, 0)
                                                          : nlohmann::ordered_json(nullptr)}});
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
  const Result<std::vector<Listed>> jobs =
      options.daemon.empty() ? read_listed(options.db) : ask_daemon(options.daemon, options.json);
  if (!jobs) return report(jobs.status());
  const int width = terminal_width(STDOUT_FILENO);
  nlohmann::ordered_json document = nlohmann::ordered_json::array();
  if (!options.json && jobs->empty())
    std::fprintf(stderr, "tuner: no jobs yet. To tune: %s\n", command_line("submit FILE").c_str());
  for (const Listed& job : *jobs)
    if (options.json)
      document.push_back(json_of(job));
    else
      tell(job, width);
  if (options.json) std::printf("%s\n", pretty(document).c_str());
  int exit_code = kExitDone;
  for (const Listed& job : *jobs)
    for (const Status& damage : job.damage)
      exit_code = report(damage.with_context(str("job ", job.job.id, ": ")));
  return exit_code;
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
