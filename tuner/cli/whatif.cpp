// tuner study whatif JOB --strategy S: what another search would have found, from recorded rows alone.
#include <cstdio>
#include <memory>
#include <optional>
#include <sstream>

#include "tuner/cli/study_commands.h"
#include "tuner/daemon/search/task_space.h"
#include "tuner/jobs/job_file.h"
#include "tuner/study/whatif_play.h"
#include "tuner/study/whatif_text.h"
#include "tuner/text/facts.h"
#include "tuner/text/terminal.h"

namespace tuner::cli {
namespace {

struct WhatifOptions {
  std::string job, db, strategies, hardware;
  WhatIfOptions play;
  int task = -1;
  double least_coverage = 90;  // percent
  bool own_rows = false, json = false;
};

Result<std::vector<std::string>> strategies_of(const std::string& text) {
  std::vector<std::string> names;
  std::istringstream in(text);
  for (std::string name; std::getline(in, name, ',');) {
    if (!is_search_name(name)) {
      std::string known;
      for (const std::string& each : strategy_names()) known += (known.empty() ? "" : ", ") + each;
      return invalid_argument("--strategy: found \"", name, "\", expected one of ", known,
                              ", or several with commas between");
    }
    names.push_back(name);
  }
  if (names.empty()) return invalid_argument("--strategy: expected a strategy, found nothing");
  return names;
}

int run_whatif(const WhatifOptions& options) {
  const Result<std::vector<std::string>> names = strategies_of(options.strategies);
  if (!names) return report(names.status());
  const Result<std::unique_ptr<Store>> store = Store::open(options.db, Store::Mode::kRead);
  if (!store) return report(store.status());
  const Result<JobRow> job = (*store)->job(options.job);
  if (!job) return report(job.status());
  Result<TaskRecords> records = records_of_job(**store, options.job, options.task, options.hardware);
  if (records && !options.own_rows) {
    JobRow::Task task = records->task;
    records = records_of_task(**store, task, records->hardware);
  }
  if (!records) return report(records.status());
  const Result<TaskSpace> space = make_task_space(records->task);
  if (!space) return report(space.status());
  double optimum = 0;
  int64_t timed = 0;
  for (const TaskRecords::Row& row : records->rows) {
    timed += row.is_timed() ? 1 : 0;
    if (row.is_timed() && (optimum == 0 || row.time_ns() < optimum)) optimum = row.time_ns();
  }
  if (timed == 0)
    return report(not_found("job ", options.job,
                            ": no config of its task was timed to the end, so there is "
                            "nothing to play on"));

  std::vector<WhatIfLine> lines;
  Result<WhatIfResult> own = found_by_job(**store, options.job, std::max(options.task, 0), optimum);
  if (!own) return report(own.status());
  lines.push_back({str("job ", job->id, ": ", job->search), *std::move(own), true});
  bool all_conclude = true;
  for (const std::string& name : *names) {
    Result<WhatIfResult> played = play_whatif(space->search, *records, name, options.play);
    if (!played) return report(played.status());
    const bool concludes = 100 * played->coverage() >= options.least_coverage;
    all_conclude = all_conclude && concludes;
    lines.push_back({name, *std::move(played), concludes});
  }
  const std::vector<size_t> marks = whatif_marks(options.play.trials);
  if (options.json) {
    nlohmann::ordered_json j{{"workload", records->task.workload_key},
                             {"target", records->task.target},
                             {"rows", records->rows.size()},
                             {"valid_configs", space->search.size()},
                             {"best_ns", optimum},
                             {"seeds", options.play.seeds},
                             {"batch", options.play.batch},
                             {"least_coverage", options.least_coverage / 100},
                             {"lines", nlohmann::ordered_json::array()}};
    for (const WhatIfLine& line : lines) j["lines"].push_back(whatif_json(line, marks));
    std::printf("%s\n", pretty(j).c_str());
  } else {
    std::printf("%s\non %s\n%s of %s valid configs are recorded, %s timed in full; the best takes %.4g us\n",
                on_a_line(records->task.workload_key).c_str(), records->task.target.c_str(),
                std::to_string(records->rows.size()).c_str(), std::to_string(space->search.size()).c_str(),
                std::to_string(timed).c_str(), optimum / 1000);
    std::printf("%s", whatif_text(lines, marks, options.least_coverage).c_str());
  }
  return all_conclude ? kExitDone : kExitFailed;
}

}  // namespace

void add_whatif_command(Command study, CommandContext& context) {
  auto options = std::make_shared<WhatifOptions>();
  const Command command = add_command(
      study, context, "whatif",
      "Play other search strategies on what was recorded of a job's task: no device needed.\n"
      "A proposal without a recorded row costs a trial and tells the strategy nothing. With too few\n"
      "recorded proposals there is no answer (exit code 1). A sweep has every row:\n"
      "  tuner submit FILE --trials all\n"
      "  tuner study whatif j3 --strategy random,xgb-annealing --trials 128 --seeds 20",
      [options] { return run_whatif(*options); });
  command.add_option("JOB", options->job, "The job, as tuner jobs lists it").required();
  command.add_option("--strategy", options->strategies, "Strategies to play, with commas between")
      .required()
      .type_name("STRATEGY[,STRATEGY...]");
  command.add_option("--trials", options->play.trials, "Trials of each run")
      .in_range(1, 1'000'000)
      .show_default();
  command.add_option("--batch", options->play.batch, "Proposals at a time; results come all together")
      .in_range(1, 10'000)
      .show_default();
  command.add_option("--seeds", options->play.seeds, "Runs of each strategy, with seeds 0, 1, ...")
      .in_range(1, 10'000)
      .show_default();
  command.add_option("--task", options->task, "Task of a job that has several, counted from 0")
      .not_negative()
      .type_name("N");
  command.add_option("--coverage", options->least_coverage, "Percent of the proposals that must be recorded")
      .in_range(0.0, 100.0)
      .show_default();
  command.add_option("--hardware", options->hardware, "Only records of this machine");
  command.add_flag("--own-rows", options->own_rows,
                   "Only the rows of this job; without: of every job of its task on the same machine");
  add_db_option(command, options->db);
  add_json_option(command, options->json);
}

}  // namespace tuner::cli
