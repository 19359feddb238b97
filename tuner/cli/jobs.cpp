// tuner jobs: what was submitted and how far it is, read from the database file.
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "tuner/cli/command.h"
#include "tuner/jobs/job_state.h"
#include "tuner/jobs/tasks.h"
#include "tuner/text/facts.h"
#include "tuner/text/format.h"
#include "tuner/text/hint.h"
#include "tuner/text/terminal.h"

namespace tuner::cli {

namespace {

struct Options {
  std::string db;
  bool json = false;
};

void say(const std::string& line) { std::printf("%s\n", line.c_str()); }

int run(const Options& options) {
  const Result<std::unique_ptr<Store>> store = Store::open(options.db, Store::Mode::kRead);
  if (!store) return report(store.status());
  const JobStates states(options.db);
  const Result<std::vector<JobRow>> jobs = (*store)->jobs();
  if (!jobs) return report(jobs.status());
  const int width = terminal_width(STDOUT_FILENO);
  nlohmann::ordered_json document = nlohmann::ordered_json::array();
  if (!options.json && jobs->empty())
    std::fprintf(stderr, "tuner: no jobs yet. To tune: %s\n", command_line("submit FILE").c_str());
  for (const JobRow& job : *jobs) {
    const Result<int64_t> done = (*store)->trials_done(job.id);
    if (!done) return report(done.status());
    const int64_t wanted = int64_t{job.trials} * static_cast<int64_t>(job.tasks.size());
    const std::string state = states.name(job), message = states.message(job);
    if (!options.json) {
      say(fitted({{job.id, 9},
                  {state, 8},
                  {str(*done, " of ", wanted, " trials"), 7},
                  {str(job.search, " seed ", job.seed), 3},
                  {"submitted " + format_utc(job.submitted_at_us), 5},
                  {with_commands(message), 6}},
                 width));
      for (const JobRow::Task& task : job.tasks) {
        const Result<TunedConfig> best =
            (*store)->best(task.workload_key, task.target, templates_of(task.algorithms));
        say(shortened(str("    ", task.workload_key, "  on  ", task.target), width));
        if (best)
          say(shortened(str("        ", format_time(best->time_ns, best->time_low_ns, best->time_high_ns),
                            "; race: ", format_race(*best)),
                        width));
      }
      continue;
    }
    nlohmann::ordered_json tasks = nlohmann::ordered_json::array();
    for (const JobRow::Task& task : job.tasks) {
      const Result<TunedConfig> best =
          (*store)->best(task.workload_key, task.target, templates_of(task.algorithms));
      tasks.push_back({{"workload", task.workload_key},
                       {"target", task.target},
                       {"tuned", best ? tuned_json(*best, 0) : nlohmann::ordered_json(nullptr)}});
    }
    document.push_back({{"job", job.id},
                        {"state", state},
                        {"message", message},
                        {"tasks", tasks},
                        {"trials_per_task", job.trials},
                        {"trials_done", *done},
                        {"search", job.search},
                        {"seed", job.seed},
                        {"options", options_json(job.options)},
                        {"submitted", iso_utc(job.submitted_at_us)},
                        {"finished", iso_utc(job.finished_at_us)}});
  }
  if (options.json) std::printf("%s\n", pretty(document).c_str());
  return kExitDone;
}

}  // namespace

void add_jobs_command(Command app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  const Command command = add_command(app, context, "jobs", "List the jobs of a database, oldest first",
                                      [options] { return run(*options); });
  add_db_option(command, options->db);
  add_json_option(command, options->json);
}

}  // namespace tuner::cli
