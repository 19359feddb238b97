#include "db/exchange/diff.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "compiler_core/base/random.h"
#include "compiler_core/base/statistics.h"

namespace tuner::exchange {

namespace {

// What a database knows of a task.
struct Side {
  TunedConfig tuned;
  MeasureRecord record;
  std::optional<RaceRow> race;
};

Result<Side> side_of(const Store& store, const JobRow::Task& task) {
  Side out;
  ASSIGN_OR_RETURN(out.tuned, store.best(task.workload_key, task.target));
  ASSIGN_OR_RETURN(TrialWithRecord trial, store.trial(out.tuned.trial_id));
  if (!trial.record) return failed("trial ", out.tuned.trial_id, " is best and has no record");
  out.record = *std::move(trial.record);
  if (out.tuned.race_id == 0) return out;
  ASSIGN_OR_RETURN(const std::vector<RaceRow> races, store.races(trial.trial.job_id));
  for (const RaceRow& race : races)
    if (race.id == out.tuned.race_id) out.race = race;
  return out;
}

// The winner's samples in the race, or those of the record; in units of the sentinel when asked for. Nothing
// when there is no sentinel.
std::optional<Samples> samples_of(const Side& side, bool by_race, bool by_sentinel) {
  Samples out;
  if (by_race) {
    const auto& finalists = side.race->finalists;
    const auto winner = std::ranges::find(finalists, side.race->winner_trial_id, &RaceFinalist::trial_id);
    if (winner == finalists.end()) return std::nullopt;
    std::map<int, std::vector<double>> groups;
    for (size_t i = 0; i < winner->samples_ns.size(); ++i)
      groups[winner->process[i]].push_back(winner->samples_ns[i] /
                                           (by_sentinel ? winner->sentinel_ns[i] : 1));
    for (auto& [process, samples] : groups) out.groups.push_back(std::move(samples));
    return out;
  }
  const MeasureRecord& r = side.record;
  const double sentinel = (r.sentinel_before_ns + r.sentinel_after_ns) / 2;
  if (by_sentinel && (r.sentinel_before_ns <= 0 || r.sentinel_after_ns <= 0)) return std::nullopt;
  out.groups.push_back(r.run_ns);
  if (by_sentinel)
    for (double& sample : out.groups.back()) sample /= sentinel;
  return out;
}

bool same_measurement(const Side& a, const Side& b) {
  return a.tuned.template_name == b.tuned.template_name &&
         a.tuned.template_version == b.tuned.template_version && a.tuned.config == b.tuned.config &&
         a.tuned.finished_at_us == b.tuned.finished_at_us &&
         a.tuned.environment.hardware == b.tuned.environment.hardware;
}

constexpr int64_t kFewest = 3;  // samples or processes: with fewer there is no telling how they scatter

// The verdict on a task; `error_rate` is its share of what all may err together.
void judge(TaskDiff& diff, const Side& a, const Side& b, const DiffOptions& options, double error_rate) {
  diff.a = a.tuned;
  diff.b = b.tuned;
  diff.by_sentinel = a.tuned.environment.hardware != b.tuned.environment.hardware;
  diff.raced = a.race && b.race;
  const std::optional<Samples> of_a = samples_of(a, diff.raced, diff.by_sentinel),
                               of_b = samples_of(b, diff.raced, diff.by_sentinel);
  if (!of_a || !of_b) {
    diff.note =
        str("hardware differs (\"", a.tuned.environment.hardware, "\", \"", b.tuned.environment.hardware,
            "\") and ", of_a ? "the second" : "the first", " has no times of the sentinel kernel");
    return;
  }
  // One database is often a copy of the other that went on: where it measured nothing new, there is nothing
  // to compare.
  if (same_measurement(a, b) && of_a->groups == of_b->groups) {
    diff.ratio = diff.low = diff.high = 1;
    diff.note = "the same measurement";
    diff.verdict = TaskDiff::Verdict::kSame;
    return;
  }
  const Figure figure_a = figure_of(*of_a), figure_b = figure_of(*of_b);
  if (figure_a.degrees + 1 < kFewest || figure_b.degrees + 1 < kFewest) {
    diff.ratio = diff.low = diff.high = figure_b.value / figure_a.value;
    diff.note = str("only ", std::min(figure_a.degrees, figure_b.degrees) + 1,
                    " sample(s) on one side, expected at least ", kFewest);
    diff.verdict = TaskDiff::Verdict::kRefused;
    return;
  }
  const RatioInterval ratio = ratio_of(figure_a, figure_b, error_rate);
  diff.ratio = ratio.ratio;
  diff.low = ratio.low;
  diff.high = ratio.high;
  const double slower = 1 + options.threshold, faster = 1 / slower;
  diff.verdict = diff.low > slower                           ? TaskDiff::Verdict::kSlower
                 : diff.high < faster                        ? TaskDiff::Verdict::kFaster
                 : diff.low >= faster && diff.high <= slower ? TaskDiff::Verdict::kSame
                                                             : TaskDiff::Verdict::kUnsure;
}

}  // namespace

std::string_view verdict_name(TaskDiff::Verdict verdict) {
  switch (verdict) {
    case TaskDiff::Verdict::kSame:
      return "same";
    case TaskDiff::Verdict::kFaster:
      return "faster";
    case TaskDiff::Verdict::kSlower:
      return "slower";
    case TaskDiff::Verdict::kUnsure:
      return "unsure";
    case TaskDiff::Verdict::kRefused:
      return "refused";
  }
  return "";
}

int64_t DiffReport::count(TaskDiff::Verdict verdict) const {
  return std::ranges::count(tasks, verdict, &TaskDiff::verdict);
}

namespace {

// As the race itself says it: measure_server/worker/race_statistics.h.
Figure figure_of_processes(const std::vector<std::vector<double>>& groups) {
  std::vector<double> logs;
  for (const std::vector<double>& group : groups)
    if (!group.empty()) logs.push_back(std::log(lower_quartile(group)));
  if (logs.empty()) return {};
  const Mean mean = trimmed_mean_of(std::move(logs));
  return {std::exp(mean.mean), mean.deviation_of_mean(), static_cast<int64_t>(mean.degrees)};
}

}  // namespace

Figure figure_of(const Samples& samples) {
  if (samples.groups.size() > 1) return figure_of_processes(samples.groups);
  if (samples.groups.empty() || samples.groups.front().empty()) return {};
  const std::vector<double>& values = samples.groups.front();
  Figure out{.value = median(values), .degrees = static_cast<int64_t>(values.size()) - 1};
  if (out.degrees < 1) return out;
  // Medians of draws with replacement; n / (n - 1) undoes that a draw scatters less than the samples it is
  // from.
  constexpr int kDraws = 1000;
  uint64_t state = 0x64696666;
  std::vector<double> draw(values.size());
  double sum = 0, squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    for (double& value : draw) value = values[next_random(state) % values.size()];
    const double log = std::log(median(draw) / out.value);
    sum += log;
    squares += log * log;
  }
  const auto n = static_cast<double>(values.size());
  const double variance = std::max(0.0, squares / kDraws - (sum / kDraws) * (sum / kDraws));
  out.log_deviation = std::sqrt(variance * n / (n - 1));
  return out;
}

RatioInterval ratio_of(const Figure& a, const Figure& b, double error_rate) {
  const double ratio = b.value / a.value;
  const double va = a.log_deviation * a.log_deviation, vb = b.log_deviation * b.log_deviation;
  if (va + vb == 0) return {ratio, ratio, ratio};
  const double degrees =
      (va + vb) * (va + vb) /
      (va * va / static_cast<double>(a.degrees) + vb * vb / static_cast<double>(b.degrees));
  const double reach = student_quantile(1 - error_rate / 2, degrees) * std::sqrt(va + vb);
  return {ratio, ratio * std::exp(-reach), ratio * std::exp(reach)};
}

Result<DiffReport> diff_databases(const Store& a, const Store& b, const DiffOptions& options) {
  DiffReport report;
  ASSIGN_OR_RETURN(const std::vector<JobRow::Task> tasks_a, a.tasks());
  ASSIGN_OR_RETURN(const std::vector<JobRow::Task> tasks_b, b.tasks());
  using Key = std::pair<std::string, std::string>;
  const auto timed = [](const Store& store,
                        const std::vector<JobRow::Task>& tasks) -> Result<std::map<Key, Side>> {
    std::map<Key, Side> sides;
    for (const JobRow::Task& task : tasks) {
      Result<Side> side = side_of(store, task);
      if (side)
        sides.emplace(Key(task.workload_key, task.target), *std::move(side));
      else if (side.status().code() != StatusCode::kNotFound)  // nothing right measured yet
        return side.status();
    }
    return sides;
  };
  ASSIGN_OR_RETURN(const auto sides_a, timed(a, tasks_a));
  ASSIGN_OR_RETURN(const auto sides_b, timed(b, tasks_b));
  size_t both = 0;
  for (const auto& [key, side] : sides_a) both += sides_b.contains(key);
  const double error_rate = (1 - options.confidence) / static_cast<double>(std::max<size_t>(both, 1));
  for (const auto& [key, side] : sides_a) {
    const JobRow::Task task{key.first, key.second};
    const auto other = sides_b.find(key);
    if (other == sides_b.end()) {
      report.only_a.push_back(task);
      continue;
    }
    TaskDiff diff{.task = task};
    judge(diff, side, other->second, options, error_rate);
    report.tasks.push_back(std::move(diff));
  }
  for (const auto& [key, side] : sides_b)
    if (!sides_a.contains(key)) report.only_b.push_back({key.first, key.second});

  std::vector<double> logs;
  for (const TaskDiff& diff : report.tasks)
    if (diff.verdict != TaskDiff::Verdict::kRefused) logs.push_back(std::log(diff.ratio));
  report.compared = static_cast<int64_t>(logs.size());
  if (!logs.empty()) {
    const Mean mean = mean_of(logs);
    const double reach = mean.degrees == 0 ? 0
                                           : student_quantile(1 - (1 - options.confidence) / 2,
                                                              static_cast<double>(mean.degrees)) *
                                                 mean.deviation_of_mean();
    report.ratio = std::exp(mean.mean);
    report.low = std::exp(mean.mean - reach);
    report.high = std::exp(mean.mean + reach);
    if (logs.size() < 2)
      for (const TaskDiff& diff : report.tasks)
        if (diff.verdict != TaskDiff::Verdict::kRefused) report.low = diff.low, report.high = diff.high;
  }
  std::ranges::stable_sort(report.tasks, [](const TaskDiff& x, const TaskDiff& y) {
    const bool rx = x.verdict == TaskDiff::Verdict::kRefused, ry = y.verdict == TaskDiff::Verdict::kRefused;
    return rx != ry ? ry : x.ratio > y.ratio;
  });
  return report;
}

}  // namespace tuner::exchange
