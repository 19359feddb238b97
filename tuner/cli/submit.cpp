// tuner submit FILE: tunes every workload of a job file and says what came out.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "proto/convert.h"
#include "tuner/answers/job_answers.h"
#include "tuner/cli/command.h"
#include "tuner/cli/log.h"
#include "tuner/client/job_run.h"
#include "tuner/command_line/interrupt.h"
#include "tuner/jobs/job_file.h"
#include "tuner/jobs/job_wish.h"
#include "tuner/jobs/tasks.h"
#include "tuner/search/search_strategy.h"
#include "tuner/text/hint.h"

namespace tuner::cli {
namespace {

struct SubmitOptions {
  std::string file, db, daemon, target, search;
  std::string priority = "normal";
  std::string trials_text;  // a number, "all", or empty: the file's
  uint64_t seed = 0;
  bool seed_given = false, fresh = false, json = false;
  bool details = false;            // also what few people ask for
  double stop_below_percent = -1;  // negative: the file's
  double time_limit_s = -1;        // negative: the file's

  JobWish wish() const {
    JobWish w{.target = target,
              .search = search,
              .trials = trials_from_text(trials_text),
              .every_config = trials_text == "all",
              .priority = priority == "high"  ? kMostPriority
                          : priority == "low" ? kLeastPriority
                                              : 0};
    if (seed_given) w.seed = seed;
    if (stop_below_percent >= 0) w.stop_below = stop_below_percent / 100;
    if (time_limit_s >= 0) w.time_limit_s = time_limit_s;
    return w;
  }
};

// What can be told to be wrong before anything is measured.
Status check(const SubmitOptions& options, const std::vector<JobGroup>& groups) {
  const bool here = options.daemon.empty();
  if (here)
    for (const JobGroup& group : groups)
      for (const JobRow::Task& task : group.job.tasks) RETURN_IF_ERROR(measurable_here(task.target));
  for (const JobGroup& group : groups)
    for (size_t i = 0; here && i < group.workloads.size(); ++i)
      if (const Status compiled = compiles_here(group.workloads[i], group.job.tasks[i].target); !compiled)
        return compiled.with_context(options.file + ": ");
  for (const JobGroup& group : groups)
    for (const Workload& workload : group.workloads)
      if (const Status room = fits_here(workload, group.job.options.memory_limit_bytes, here); !room)
        return room.with_context(options.file + ": ");
  return Status::ok();
}

Status check_search(const std::string& search) {
  if (search.empty() || is_search_name(search)) return Status::ok();
  std::string list;
  for (const std::string& name : strategy_names()) list += (list.empty() ? "" : ", ") + name;
  return invalid_argument("--search: found \"", search, "\", expected one of ", list);
}

// Answers that a race should have certified and did not. Where kernels are not raced there is nothing to do
// about theirs.
size_t uncertified(const JobGroup& group, const JobOutcome& out) {
  size_t count = 0;
  for (size_t i = 0; i < group.job.tasks.size(); ++i) {
    const Result<Target> target = parse_target(group.job.tasks[i].target);
    count += target && target->family->races() && out.tuned[i] && !out.tuned[i]->certified() ? 1 : 0;
  }
  return count;
}

void say_next(const SubmitOptions& options, const std::vector<JobGroup>& groups, const std::string& file) {
  std::printf("stored in %s\nnext: %s\n",
              options.daemon.empty() ? options.db.c_str() : "the daemon's database",
              command_line("query " + file).c_str());
  if (!options.daemon.empty()) return;
  const bool linked = std::ranges::all_of(
      groups, [](const JobGroup& group) { return std::ranges::all_of(group.workloads, has_function); });
  std::printf("      %s\n",
              command_line("build " + file + " -o out/" + (linked ? "" : " --emit defines")).c_str());
}

int run(const SubmitOptions& options) {
  if (const Status s = check_search(options.search); !s) return report(s);
  Result<std::vector<JobGroup>> groups = wished_groups(options.file, options.wish());
  if (!groups) return report(groups.status());
  if (const Status s = check(options, *groups); !s) return report(s);
  for (JobGroup& group : *groups) group.job.request_id = new_request_id();

  const std::string file = shell_quoted(options.file), again = command_line("submit " + file);
  int exit_code = kExitDone;
  size_t not_certified = 0;
  nlohmann::json json = nlohmann::json::array();
  for (const JobGroup& group : *groups) {
    JobRun job(group.job, options.fresh,
               {.daemon = options.daemon, .db = options.db, .own_worker = options.daemon.empty()},
               interrupted);
    const Status status = job.run();
    const JobOutcome& out = job.outcome();
    if (!status) {
      exit_code = report(status);
      if (!out.job_id.empty())
        std::fprintf(stderr, "Job %s keeps what it measured. To continue it: %s\n", out.job_id.c_str(),
                     again.c_str());
      break;
    }
    if (out.interrupted) {
      say_interrupted(out, again);
      return kExitFailed;
    }
    not_certified += uncertified(group, out);
    if (options.json)
      json.push_back(job_json(group, out));
    else
      print_job(group, out, options.details);
    say_ending(out);
    const bool all_tuned =
        std::ranges::all_of(out.tuned, [](const auto& tuned) { return tuned.has_value(); });
    if (!all_tuned || out.state != v1::FINISHED) exit_code = kExitFailed;
  }
  if (not_certified > 0)
    std::fprintf(stderr, "tuner: %zu answer%s not certified, for the reason given. On a calmer machine: %s\n",
                 not_certified, not_certified == 1 ? " is" : "s are",
                 command_line("submit " + file + " --fresh").c_str());
  if (options.json)
    std::printf("%s\n", json.dump(2).c_str());
  else if (exit_code == kExitDone)
    say_next(options, *groups, file);
  return exit_code;
}

}  // namespace

void add_submit_command(Command app, CommandContext& context) {
  auto options = std::make_shared<SubmitOptions>();
  const Command command =
      add_command(app, context, "submit", "Tunes every workload of a job file", [options, &context] {
        log_to_stderr(context.verbose > 0 ? spdlog::level::info : spdlog::level::err);
        catch_interrupts();
        options->details = context.verbose > 0;
        return run(*options);
      });
  add_job_file(command, options->file, "job file, as examples/conv2d.json; - reads standard input")
      .required();
  add_db_option(command, options->db);
  add_target_option(command, options->target);
  add_json_option(command, options->json);
  command
      .add_option(
          "--trials", options->trials_text,
          "Trials per task on average, instead of the file's. Tasks that gain more get more. all: every "
          "valid config, with at least 9 samples, none cut short, in grid order unless --search says "
          "otherwise")
      .checked([](const std::string& text) {
        return text == "all" || trials_from_text(text)
                   ? std::string()
                   : str("expected 1 to ", kMaxTrialsPerTask, ", or all; found ", text);
      })
      .type_name("N|all")
      .offers(offer_words({"all"}));
  command.add_option("--search", options->search, "search strategy, instead of the file's")
      .type_name("STRATEGY");
  command.add_option("--seed", options->seed, "seed of the search, instead of the file's")
      .when_given([options] { options->seed_given = true; });
  command
      .add_option("--stop-below", options->stop_below_percent,
                  "End a task when the chance that its next 100 trials gain 1 % is below this many percent. "
                  "0: never. "
                  "Without it: what the file says, else 5")
      .in_range(0.0, 100.0);
  command
      .add_option(
          "--time-limit", options->time_limit_s,
          "seconds (or 90s, 10m, 2h) for all trials and races of the job; every task's default comes first. "
          "0: no limit")
      .as_duration()
      .in_range(kJobTimeLimitS.least, kJobTimeLimitS.most);
  add_daemon_option(command, options->daemon, "; without it everything runs here");
  command
      .add_option("--priority", options->priority,
                  "before (high) or after (low) the other jobs of its tenant")
      .one_of({"low", "normal", "high"})
      .show_default();
  command.add_flag("--fresh", options->fresh, "start anew even when such a job is stored");
}

}  // namespace tuner::cli
