#include "tuner/study/gain_estimate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "compiler_core/base/int_math.h"
#include "compiler_core/base/statistics.h"
#include "templates/schedule_template.h"
#include "tuner/daemon/warm_start.h"
#include "tuner/jobs/tasks.h"

namespace tuner {
namespace {

constexpr int64_t kSearched = 32;  // fewer trials say nothing of what a task can reach
constexpr double kLow = 0.1, kHigh = 0.9;
constexpr double kOtherOperator = 0.02;  // weight of a task of another operator, beside 1 of the same task
constexpr double kLeastWeight = 0.05;    // all weights together; below it nothing like the task is known
constexpr int64_t kPause_us = 60'000'000;
constexpr double kGuessedSeconds = 0.5, kGuessedRace = 20;
constexpr int64_t kGuessedTrials = 128, kBatch = 16;

double weight_of(const JobRow::Task& a, const JobRow::Task& b) {
  const double d = task_distance(a, b);
  if (std::isfinite(d)) return std::max(kOtherOperator, 1 / ((1 + d) * (1 + d)));
  const auto kind = [](const std::string& target) { return target.substr(0, target.find(' ')); };
  return kind(a.target) == kind(b.target) ? kOtherOperator : 0;
}

// `gains`: of similar tasks, each with its weight. The unseen task weighs half as much as the most similar
// one, and stands at both ends: at no gain, and at twice the largest logarithm.
std::optional<Gain> gain_from(std::vector<WeightedValue> log_gains) {
  double all = 0, most = 0, heaviest = 0, largest = 0;
  for (const WeightedValue& v : log_gains) {
    all += v.weight;
    heaviest = std::max(heaviest, v.weight);
    most = std::max(most, v.value);
  }
  if (all < kLeastWeight) return std::nullopt;
  largest = 2 * most;
  const double expected = weighted_quantile(log_gains, 0.5);
  log_gains.push_back({0, heaviest / 4});
  log_gains.push_back({largest, heaviest / 4});
  const auto saved = [](double log_gain) { return 1 - std::exp(-log_gain); };
  return Gain{saved(expected), saved(std::min(expected, weighted_quantile(log_gains, kLow))),
              saved(std::max(expected, weighted_quantile(log_gains, kHigh))), all};
}

double log_ratio(double before, double after) {
  return before > 0 && after > 0 ? std::max(0.0, std::log(before / after)) : 0;
}

std::string default_config_of(const JobRow::Task& task) {
  const Result<CliTask> parsed = task_from_keys(task.workload_key, task.target);
  if (!parsed) return "";
  const Result<ChosenKernel> kernel = choose_kernel(*parsed, nullptr);
  return kernel ? str(kernel->schedule_template->name(), " ", kernel->config.to_text()) : "";
}

bool races_there(const JobRow::Task& task) {
  const Result<Target> target = parse_target(task.target);
  return target && target->family->races();
}

}  // namespace

Result<GainEstimate> GainEstimate::read(const Store& store, int64_t most_trials) {
  ASSIGN_OR_RETURN(std::vector<JobRow> jobs, store.jobs());
  std::reverse(jobs.begin(), jobs.end());
  using Key = std::tuple<std::string, std::string, std::string>;  // workload, target, hardware
  std::map<Key, std::vector<TrialWithRecord>> of_task;
  std::map<Key, std::vector<double>> race_seconds;
  int64_t read = 0;
  for (const JobRow& job : jobs) {
    if (read >= most_trials) break;
    ASSIGN_OR_RETURN(std::vector<TrialWithRecord> trials, store.trials(job.id));
    ASSIGN_OR_RETURN(const std::vector<RaceRow> races, store.races(job.id));
    read += static_cast<int64_t>(trials.size());
    std::map<int, int64_t> last_us;  // of each task
    for (const TrialWithRecord& t : trials)
      if (t.record)
        last_us[t.trial.task_index] = std::max(last_us[t.trial.task_index], t.record->finished_at_us);
    for (const RaceRow& race : races) {
      const JobRow::Task& task = job.tasks[static_cast<size_t>(race.task_index)];
      const int64_t us = race.finished_at_us - last_us[race.task_index];
      if (us > 0 && us < 2 * kPause_us)
        race_seconds[{task.workload_key, task.target, race.environment.hardware}].push_back(
            static_cast<double>(us) / 1e6);
    }
    for (TrialWithRecord& t : trials) {
      if (!t.record || t.record->outcome == Outcome::kDeviceLost) continue;
      Key key{t.task.workload_key, t.task.target, t.record->environment.hardware};
      of_task[std::move(key)].push_back(std::move(t));
    }
  }
  std::vector<TaskHistory> histories;
  for (auto& [key, trials] : of_task) {
    std::sort(trials.begin(), trials.end(),
              [](const auto& a, const auto& b) { return a.record_id < b.record_id; });
    TaskHistory h{.task = {std::get<0>(key), std::get<1>(key), ""}};
    const std::string plain = default_config_of(h.task);
    std::vector<int64_t> finished;
    double best = 0;
    for (const TrialWithRecord& t : trials) {
      finished.push_back(t.record->finished_at_us);
      const double ns = t.record->outcome == Outcome::kOk && !t.record->cut ? record_time_ns(*t.record) : 0;
      if (ns > 0 && (best == 0 || ns < best)) best = ns;
      h.best_ns.push_back(best);
      const bool is_default = t.trial.template_name + " " + t.trial.config == plain;
      if (is_default && t.record->outcome == Outcome::kOk && h.default_ns == 0)
        h.default_ns = record_time_ns(*t.record);
    }
    std::sort(finished.begin(), finished.end());
    double seconds = 0;
    int64_t gaps = 0;
    for (size_t i = 1; i < finished.size(); ++i)
      if (const int64_t us = finished[i] - finished[i - 1]; us < kPause_us) {
        seconds += static_cast<double>(us) / 1e6;
        ++gaps;
      }
    if (gaps > 0) h.seconds_per_trial = seconds / static_cast<double>(gaps);
    if (const auto races = race_seconds.find(key); races != race_seconds.end())
      h.race_seconds = median(races->second);
    histories.push_back(std::move(h));
  }
  return GainEstimate(std::move(histories));
}

std::optional<Gain> GainEstimate::over_default(const JobRow::Task& task, const TaskHistory* hidden) const {
  std::vector<WeightedValue> gains;
  for (const TaskHistory& h : histories_)
    if (&h != hidden && h.default_ns > 0 && h.trials() >= kSearched && h.last_ns() > 0)
      gains.push_back({log_ratio(h.default_ns, h.last_ns()), weight_of(task, h.task)});
  return gain_from(std::move(gains));
}

std::optional<Gain> GainEstimate::of_more_trials(const JobRow::Task& task, int64_t trials,
                                                 const TaskHistory* hidden) const {
  std::vector<WeightedValue> gains;
  for (const TaskHistory& h : histories_) {
    // A curve that ends soon after says little of what would come.
    if (&h == hidden || trials < 1 || h.trials() < std::max(2 * trials, kSearched)) continue;
    const double then = h.best_ns[static_cast<size_t>(trials - 1)];
    if (then > 0) gains.push_back({log_ratio(then, h.last_ns()), weight_of(task, h.task)});
  }
  return gain_from(std::move(gains));
}

Cost GainEstimate::cost(const JobRow::Task& task, int64_t trials) const {
  std::vector<WeightedValue> needed, seconds, races;
  for (const TaskHistory& h : histories_) {
    const double weight = weight_of(task, h.task);
    if (weight <= 0) continue;
    if (h.seconds_per_trial > 0) seconds.push_back({h.seconds_per_trial, weight});
    if (h.race_seconds > 0) races.push_back({h.race_seconds, weight});
    const int64_t begin = std::max<int64_t>(trials, 1);
    if (h.trials() < std::max(2 * begin, kSearched)) continue;
    const double first = h.best_ns[static_cast<size_t>(begin - 1)];
    const double start = trials == 0 && h.default_ns > 0 ? h.default_ns : first;
    const double all = log_ratio(start, h.last_ns());
    for (int64_t n = begin; n <= h.trials(); ++n) {
      const double left = log_ratio(h.best_ns[static_cast<size_t>(n - 1)], h.last_ns());
      if (h.best_ns[static_cast<size_t>(n - 1)] == 0 || left > std::max(0.1 * all, 0.01)) continue;
      needed.push_back({static_cast<double>(n - trials), weight});
      break;
    }
  }
  Cost cost{.trials = kGuessedTrials, .known = !seconds.empty() && !needed.empty()};
  if (!needed.empty())
    // Rather too many than too few: three of four tasks like this one are done by then.
    cost.trials = round_up(static_cast<int64_t>(weighted_quantile(needed, 0.75)), kBatch);
  cost.trials = std::max(cost.trials, kBatch);
  cost.seconds = static_cast<double>(cost.trials) *
                     (seconds.empty() ? kGuessedSeconds : weighted_quantile(seconds, 0.5)) +
                 (races.empty() ? (races_there(task) ? kGuessedRace : 0) : weighted_quantile(races, 0.5));
  return cost;
}

double GainEstimate::tuned_ns(const JobRow::Task& task) const {
  const auto work = [](const JobRow::Task& t) {
    const Result<Workload> w = workload_from_key(t.workload_key);
    return w ? static_cast<double>(w->memory_bound() ? w->bytes() : w->flops()) : 0.0;
  };
  std::vector<WeightedValue> rates;  // of the operator only: others do other work
  for (const TaskHistory& h : histories_)
    if (const double d = task_distance(task, h.task); std::isfinite(d) && h.last_ns() > 0 && work(h.task) > 0)
      rates.push_back({work(h.task) / h.last_ns(), 1 / ((1 + d) * (1 + d))});
  const double rate = rates.empty() ? 0 : weighted_quantile(rates, 0.5);
  return rate > 0 ? work(task) / rate : 0;
}

const TaskHistory* GainEstimate::history_of(const JobRow::Task& task) const {
  const TaskHistory* found = nullptr;
  for (const TaskHistory& h : histories_)
    if (h.task.workload_key == task.workload_key && h.task.target == task.target &&
        (found == nullptr || h.trials() > found->trials()))
      found = &h;
  return found;
}

namespace {

template <class Estimate, class Truth>
Calibration calibrate(const std::vector<TaskHistory>& histories, const Estimate& estimate,
                      const Truth& truth) {
  Calibration c;
  std::vector<double> truths;
  for (const TaskHistory& h : histories) {
    const std::optional<double> found = truth(h);
    const std::optional<Gain> gain = found ? estimate(h) : std::nullopt;
    if (!gain) continue;
    ++c.tasks;
    c.inside += gain->low - 1e-9 <= *found && *found <= gain->high + 1e-9 ? 1 : 0;
    c.mean_error += std::abs(gain->expected - *found);
    truths.push_back(*found);
  }
  if (c.tasks == 0) return c;
  double sum = 0;
  for (const double t : truths) sum += t;
  const double n = static_cast<double>(c.tasks);
  for (const double t : truths)
    c.error_of_constant += truths.size() < 2 ? 0 : std::abs(t - (sum - t) / (n - 1)) / n;
  c.mean_error /= n;
  return c;
}

}  // namespace

Calibration calibrate_over_default(const GainEstimate& estimate) {
  return calibrate(
      estimate.histories(), [&](const TaskHistory& h) { return estimate.over_default(h.task, &h); },
      [](const TaskHistory& h) {
        const bool searched = h.default_ns > 0 && h.trials() >= kSearched && h.last_ns() > 0;
        return searched ? std::optional(1 - std::min(1.0, h.last_ns() / h.default_ns)) : std::nullopt;
      });
}

Calibration calibrate_more_trials(const GainEstimate& estimate, int64_t trials) {
  return calibrate(
      estimate.histories(), [&](const TaskHistory& h) { return estimate.of_more_trials(h.task, trials, &h); },
      [&](const TaskHistory& h) {
        const bool long_enough = h.trials() >= std::max(2 * trials, kSearched);
        const double then = long_enough ? h.best_ns[static_cast<size_t>(trials - 1)] : 0;
        return then > 0 ? std::optional(1 - h.last_ns() / then) : std::nullopt;
      });
}

}  // namespace tuner
