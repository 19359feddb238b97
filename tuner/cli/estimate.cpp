// tuner estimate FILE: what tuning would gain over what the database answers now, before any device time.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "compiler_core/backend.h"
#include "tuner/cli/command.h"
#include "tuner/jobs/job_file.h"
#include "tuner/jobs/tasks.h"
#include "tuner/study/estimate_text.h"
#include "tuner/study/task_estimate.h"
#include "tuner/text/facts.h"

namespace tuner::cli {
namespace {

struct EstimateOptions {
  std::string file, db, target;
  bool calibrate = false, json = false;
};

int run_calibration(const GainEstimate& estimate, bool json) {
  const std::vector<CalibrationLine> lines = calibration_of(estimate);
  if (json)
    std::printf("%s\n", pretty(calibration_json(lines)).c_str());
  else
    std::printf("%s", calibration_text(lines).c_str());
  return std::ranges::any_of(lines, [](const CalibrationLine& l) { return l.found.tasks > 0; }) ? kExitDone
                                                                                                : kExitFailed;
}

int run_estimate(const EstimateOptions& options) {
  const Result<std::unique_ptr<Store>> store = open_if_there(options.db);
  if (!store) return report(store.status());
  if (*store == nullptr)
    return report(not_found(
        options.db, ": there is no database yet, so there is nothing to learn from. To tune: tuner submit ",
        options.file.empty() ? "FILE" : options.file));
  const Result<GainEstimate> estimate = GainEstimate::read(**store);
  if (!estimate) return report(estimate.status());
  if (options.calibrate) return run_calibration(*estimate, options.json);
  if (options.file.empty())
    return report(invalid_argument("expected a job FILE, or --calibrate; found neither"));
  const Result<std::vector<JobEntry>> entries = read_job_file(options.file);
  if (!entries) return report(entries.status());
  const Resolver resolver(store->get(), {.fix = "tuner submit " + options.file});
  std::vector<TaskEstimate> lines;
  for (const JobEntry& entry : *entries) {
    const Result<Target> target = resolve_target(options.target.empty() ? entry.target : options.target);
    if (!target) return report(target.status().with_context(options.file + ": target: "));
    if (const Status suits = kernel_suits(entry.workload, *target); !suits)
      return report(suits.with_context(options.file + ": target: "));
    const CliTask task{entry.workload, *target, entry.workload.key(), target->name(), entry.algorithms};
    const auto same = std::ranges::find_if(lines, [&](const TaskEstimate& l) {
      return l.task.key == task.key && l.task.target_name == task.target_name &&
             l.task.algorithms == task.algorithms;
    });
    if (same != lines.end()) {
      same->uses += entry.uses;
      continue;
    }
    Result<TaskEstimate> line = estimate_task(**store, *estimate, resolver, task, entry.uses);
    if (!line) return report(line.status());
    lines.push_back(*std::move(line));
  }
  const EstimateTotal total = total_of(lines);
  if (!options.json) {
    std::printf("%s", estimate_text(lines, total).c_str());
    return kExitDone;
  }
  std::printf("%s\n", pretty(estimate_json(lines, total)).c_str());
  return kExitDone;
}

}  // namespace

void add_estimate_command(Command app, CommandContext& context) {
  auto options = std::make_shared<EstimateOptions>();
  const Command command = add_command(
      app, context, "estimate",
      "Predict, before any device time, what tuning a job file's tasks would gain over what the database "
      "answers\n"
      "now, and the trials and minutes it takes. \"skip\": less than 1 % is expected, and much more is "
      "unlikely.\n"
      "Learned from the searches in the database: what they gained over the default config, and how gains "
      "came "
      "with\n"
      "trials. No time is below the roofline's, as far as records tell the machine's peak and bandwidth.\n"
      "  tuner estimate network.json\n"
      "  tuner estimate --calibrate       each task hidden in turn: was the truth inside the interval?",
      [options] { return run_estimate(*options); });
  add_job_file(command, options->file, "Job file; - is standard input");
  command.add_flag("--calibrate", options->calibrate, "Judge the estimates on the database itself");
  add_db_option(command, options->db);
  add_target_option(command, options->target);
  add_json_option(command, options->json);
}

}  // namespace tuner::cli
