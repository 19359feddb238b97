// tuner estimate FILE: what tuning would gain over what the database answers now, before any device time.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include "compiler_core/backend.h"
#include "tuner/cli/command.h"
#include "tuner/jobs/job_file.h"
#include "tuner/jobs/tasks.h"
#include "tuner/study/task_estimate.h"
#include "tuner/text/facts.h"
#include "tuner/text/format.h"
#include "tuner/text/hint.h"
#include "tuner/text/terminal.h"

namespace tuner::cli {
namespace {

struct EstimateOptions {
  std::string file, db, target;
  bool calibrate = false, json = false;
};

// Over the tasks whose time and gain are known, each weighted by its time and uses; their errors are taken
// for independent.
struct EstimateTotal {
  double now_ns = 0;
  std::optional<Gain> gain;  // of none: nothing is known
  Cost cost;
  int tune = 0, skip = 0, unknown = 0;
};
EstimateTotal total_of(const std::vector<TaskEstimate>& lines) {
  EstimateTotal t;
  double saved = 0, below = 0, above = 0;
  for (const TaskEstimate& l : lines) {
    t.unknown += l.gain ? 0 : 1;
    t.skip += l.skip() ? 1 : 0;
    t.tune += l.gain && !l.skip() ? 1 : 0;
    if (!l.skip()) {
      t.cost.trials += l.cost.trials;
      t.cost.seconds += l.cost.seconds;
    }
    if (!l.gain || l.now_ns <= 0) continue;
    const double ns = l.now_ns * static_cast<double>(l.uses);
    t.now_ns += ns;
    if (l.skip()) continue;  // is not tuned, gains nothing
    saved += ns * l.gain->expected;
    below += std::pow(ns * (l.gain->expected - l.gain->low), 2);
    above += std::pow(ns * (l.gain->high - l.gain->expected), 2);
  }
  if (t.now_ns > 0)
    t.gain = Gain{saved / t.now_ns, std::max(0.0, saved - std::sqrt(below)) / t.now_ns,
                  (saved + std::sqrt(above)) / t.now_ns};
  return t;
}

std::string gain_text(const std::optional<Gain>& gain) {
  if (!gain) return "?";
  char text[64];
  std::snprintf(text, sizeof text, "%.1f %% (%.1f .. %.1f)", 100 * gain->expected, 100 * gain->low,
                100 * gain->high);
  return text;
}

nlohmann::ordered_json gain_json(const std::optional<Gain>& gain) {
  if (!gain) return nullptr;
  return {{"expected", gain->expected}, {"low", gain->low}, {"high", gain->high}};
}

nlohmann::ordered_json to_json(const TaskEstimate& l) {
  return {{"workload", l.task.key},
          {"target", l.task.target_name},
          {"uses", l.uses},
          {"answer", answer_kind_name(l.answer.kind)},
          {"verdict", l.verdict()},
          {"gain", gain_json(l.gain)},
          {"now_ns", l.now_ns},
          {"now_measured", l.answer.kind == AnswerKind::kExact},
          {"bound_ns", l.bound_ns},
          {"bound_decides", l.bound_decides()},
          {"trials_so_far", l.trials_so_far},
          {"trials", l.cost.trials},
          {"seconds", l.cost.seconds},
          {"rate_known", l.cost.known},
          {"stale", l.staleness.stale()},
          {"note", l.note}};
}

void print(const std::vector<TaskEstimate>& lines, const EstimateTotal& total) {
  std::printf("%-8s %-24s %7s %8s  %10s  %-12s  %s\n", "", "gain, 80 % interval", "trials", "minutes", "now",
              "answered by", "task");
  for (const TaskEstimate& l : lines) {
    char minutes[32], trials[32];
    std::snprintf(minutes, sizeof minutes, "%.1f", l.cost.seconds / 60);
    std::snprintf(trials, sizeof trials, "%lld", static_cast<long long>(l.cost.trials));
    const std::string now = l.now_ns <= 0                         ? "?"
                            : l.answer.kind == AnswerKind::kExact ? format_time(l.now_ns)
                                                                  : "~" + format_time(l.now_ns);
    char columns[160];
    std::snprintf(columns, sizeof columns, "%-8s %-24s %7s %8s  %10s  %-12s  ",
                  std::string(l.verdict()).c_str(), gain_text(l.gain).c_str(), l.skip() ? "-" : trials,
                  l.skip() ? "-" : minutes, now.c_str(),
                  std::string(answer_kind_name(l.answer.kind)).c_str());
    std::printf("%s\n",
                on_a_line(str(columns, l.task.key, l.uses > 1 ? str(" x ", l.uses) : std::string())).c_str());
    if (l.bound_decides())
      std::printf("         not below %s: roofline of this machine\n", format_time(l.bound_ns).c_str());
    if (!l.note.empty()) std::printf("         %s\n", with_commands(l.note).c_str());
  }
  std::printf("\ntotal    %s of %s; %lld trials, %.1f min", gain_text(total.gain).c_str(),
              total.now_ns > 0 ? format_time(total.now_ns).c_str() : "an unknown time",
              static_cast<long long>(total.cost.trials), total.cost.seconds / 60);
  std::printf(" (%d to tune, %d to skip, %d unknown)\n", total.tune, total.skip, total.unknown);
  if (total.tune + total.unknown == 0)
    std::printf("skip     nothing here is expected to gain %.0f %%\n", 100 * kSkipBelow);
}

int run_calibration(const GainEstimate& estimate, bool json) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  const auto say = [&](const std::string& what, const Calibration& c) {
    list.push_back({{"of", what},
                    {"tasks", c.tasks},
                    {"inside", c.inside_share()},
                    {"median_width", c.median_width},
                    {"mean_error", c.mean_error},
                    {"mean_error_of_constant", c.error_of_constant},
                    {"skips", c.skips},
                    {"right_skips", c.right_skips}});
    if (!json)
      std::printf("%-24s %4lld %6.0f %% %8.1f %7.1f (%4.1f) %8lld of %lld\n", what.c_str(),
                  static_cast<long long>(c.tasks), 100 * c.inside_share(), 100 * c.median_width,
                  100 * c.mean_error, 100 * c.error_of_constant, static_cast<long long>(c.right_skips),
                  static_cast<long long>(c.skips));
    return c.tasks;
  };
  if (!json)
    std::printf(
        "Each task hidden in turn. Median width of the 80 %% intervals and mean error in points; () that of "
        "the "
        "others' mean.\n%-24s %4s %8s %8s %14s %13s\n",
        "gain", "n", "inside", "width", "error", "skips right");
  int64_t tasks = say("over the default", calibrate_tuning(estimate, Before::kDefault));
  tasks += say("over a chosen config", calibrate_tuning(estimate, Before::kChosen));
  for (const int64_t n : {16, 32, 64, 128})
    tasks += say(str("after ", n, " trials"), calibrate_more_trials(estimate, n));
  if (json) std::printf("%s\n", pretty(list).c_str());
  return tasks > 0 ? kExitDone : kExitFailed;
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
    print(lines, total);
    return kExitDone;
  }
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const TaskEstimate& l : lines) list.push_back(to_json(l));
  std::printf("%s\n", pretty({{"tasks", list},
                              {"total",
                               {{"gain", gain_json(total.gain)},
                                {"now_ns", total.now_ns > 0 ? nlohmann::ordered_json(total.now_ns) : nullptr},
                                {"trials", total.cost.trials},
                                {"seconds", total.cost.seconds},
                                {"tune", total.tune},
                                {"skip", total.skip},
                                {"unknown", total.unknown}}}})
                          .c_str());
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
