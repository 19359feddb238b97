#include "tuner/study/gain_estimate.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "compiler_core/base/int_math.h"
#include "compiler_core/base/statistics.h"
#include "templates/workload/workload.h"

namespace tuner {
namespace {

// Fewer trials say nothing of what a task can reach, if it has more configs.
constexpr int64_t kSearched = 32;
constexpr double kLeastWeight = 0.05;  // of all likes together; below it nothing like the task is known
constexpr double kGuessedSeconds = 0.5, kGuessedRace = 20;
constexpr int64_t kGuessedTrials = 128, kBatch = 16;
constexpr size_t kMostHidden = 200;

bool races_there(const JobRow::Task& task) {
  const Result<Target> target = parse_target(task.target);
  return target && target->family->races();
}

bool searched(const TaskHistory& h) { return h.last_ns() > 0 && (h.exhausted || h.trials() >= kSearched); }
// A curve that ends soon after says little of what would come.
bool goes_on_after(const TaskHistory& h, int64_t trials) {
  return trials >= 1 && h.trials() >= trials &&
         (h.exhausted || h.trials() >= std::max(2 * trials, kSearched));
}

double before_ns(const TaskHistory& h, Before before) {
  if (before == Before::kDefault || h.default_ns <= 0) return before == Before::kDefault ? h.default_ns : 0;
  return h.lent_ns > 0 ? std::min(h.default_ns, h.lent_ns) : 0;
}

double saved(double before, double after) { return std::max(0.0, 1 - after / before); }

std::optional<double> gain_after(const TaskHistory& h, int64_t trials) {
  const double then = goes_on_after(h, trials) ? h.best_ns[static_cast<size_t>(trials - 1)] : 0;
  return then > 0 ? std::optional(saved(then, h.last_ns())) : std::nullopt;
}

// Without an interval of their own, gains reach from nothing to twice the largest known one (in logarithms).
std::optional<Gain> gain_from(const std::optional<LikelyValue::Range>& range,
                              std::span<const KnownValue> known, Before before = Before::kDefault) {
  if (!range || range->rests_on < kLeastWeight) return std::nullopt;
  Gain gain{std::clamp(range->expected, 0.0, 1.0), std::clamp(range->low, 0.0, 1.0),
            std::clamp(range->high, 0.0, 1.0), range->rests_on};
  // Nothing is below no gain, and small gains cannot be told from none: then the interval has one side. A
  // predictor may have chosen the best.
  if (range->bounded && (before == Before::kChosen || gain.low < kSmallGain)) {
    gain.low = 0;
    gain.high = std::clamp(range->high_alone, 0.0, 1.0);
  }
  if (range->bounded) return gain;
  double most = 0;
  for (const KnownValue& k : known) most = std::max(most, k.value);
  gain.low = 0;
  gain.high = 1 - (1 - most) * (1 - most);
  return gain;
}

}  // namespace

std::optional<double> gain_of(const TaskHistory& h, Before before) {
  const double first = before_ns(h, before);
  if (first <= 0 || !searched(h)) return std::nullopt;
  if (h.raced_last_ns <= 0 || h.raced_default_ns <= 0) return saved(first, h.last_ns());
  // The least of many trials was lucky; a race was not.
  if (before == Before::kDefault) return saved(h.raced_default_ns, h.raced_last_ns);
  return h.raced_lent_ns > 0
             ? std::optional(saved(std::min(h.raced_default_ns, h.raced_lent_ns), h.raced_last_ns))
             : std::nullopt;
}

void cut_by_bound(Gain& gain, double now_ns, double bound_ns) {
  if (now_ns <= 0 || bound_ns <= 0) return;
  const double most = std::max(0.0, 1 - bound_ns / now_ns);
  gain.cut |= gain.high > most;
  for (double* each : {&gain.expected, &gain.low, &gain.high}) *each = std::min(*each, most);
}

Result<GainEstimate> GainEstimate::read(const Store& store) {
  ASSIGN_OR_RETURN(Histories histories, read_histories(store));
  return GainEstimate(std::move(histories.tasks), std::move(histories.roofs));
}

GainEstimate::GainEstimate(std::vector<TaskHistory> histories, RecordedRoofs roofs)
    : histories_(std::move(histories)), roofs_(std::move(roofs)) {
  for (const TaskHistory& h : histories_) {
    likeness_.emplace_back(h.task.workload_key, h.task.target);
    bounds_.push_back(bound_ns(h.task));
  }
}

template <class ValueOf>
std::vector<KnownValue> GainEstimate::known(const ValueOf& value_of, const TaskHistory* hidden) const {
  std::vector<KnownValue> values;
  for (size_t i = 0; i < histories_.size(); ++i)
    if (const std::optional<double> value = value_of(histories_[i]); value && &histories_[i] != hidden)
      values.push_back({&likeness_[i], *value});
  return values;
}

std::optional<Gain> GainEstimate::of_tuning(const JobRow::Task& task, Before before,
                                            const TaskHistory* hidden) const {
  const std::vector<KnownValue> values =
      known([&](const TaskHistory& h) { return gain_of(h, before); }, hidden);
  std::optional<Gain> gain =
      gain_from(LikelyValue(values).of(TaskLikeness(task.workload_key, task.target)), values, before);
  if (!gain) return gain;
  cut_by_bound(*gain, now_ns(task, before, hidden), bound_ns(task));
  return gain;
}

std::optional<Gain> GainEstimate::of_more_trials(const JobRow::Task& task, int64_t trials,
                                                 const TaskHistory* hidden) const {
  const std::vector<KnownValue> values =
      known([&](const TaskHistory& h) { return gain_after(h, trials); }, hidden);
  return gain_from(LikelyValue(values).of(TaskLikeness(task.workload_key, task.target)), values);
}

Cost GainEstimate::cost(const JobRow::Task& task, int64_t trials) const {
  const TaskLikeness here(task.workload_key, task.target);
  std::vector<WeightedValue> needed, seconds, races;
  for (size_t i = 0; i < histories_.size(); ++i) {
    const TaskHistory& h = histories_[i];
    const double weight = here.weight(likeness_[i]);
    if (weight <= 0) continue;
    if (h.seconds_per_trial > 0) seconds.push_back({h.seconds_per_trial, weight});
    if (h.race_seconds > 0) races.push_back({h.race_seconds, weight});
    const int64_t begin = std::max<int64_t>(trials, 1);
    if (!goes_on_after(h, begin) || h.last_ns() <= 0) continue;
    const auto left_at = [&](double ns) { return ns > 0 ? std::log(ns / h.last_ns()) : 1e9; };
    const double first = h.best_ns[static_cast<size_t>(begin - 1)];
    const double all = left_at(trials == 0 && h.default_ns > 0 ? h.default_ns : first);
    for (int64_t n = begin; n <= h.trials(); ++n) {
      if (left_at(h.best_ns[static_cast<size_t>(n - 1)]) > std::max(0.1 * all, 0.01)) continue;
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

double GainEstimate::bound_ns(const JobRow::Task& task) const {
  const Result<Workload> workload = workload_from_key(task.workload_key);
  const Result<Target> target = parse_target(task.target);
  return workload && target ? roofs_.bound_ns(*workload, *target, task.algorithms) : 0;
}

double GainEstimate::now_ns(const JobRow::Task& task, Before before, const TaskHistory* hidden) const {
  const TaskLikeness here(task.workload_key, task.target);
  const double bound = bound_ns(task);
  // What a time is compared with: the bound, or the work if no bound is known.
  const auto unit_of = [&](const JobRow::Task& t, double its_bound) {
    if (bound > 0) return its_bound;
    const Result<Workload> w = workload_from_key(t.workload_key);
    return w ? static_cast<double>(w->memory_bound() ? w->bytes() : w->flops()) : 0.0;
  };
  std::vector<WeightedValue> multiples;  // of the operator only: others do other work
  for (size_t i = 0; i < histories_.size(); ++i) {
    const double ns = &histories_[i] == hidden ? 0 : before_ns(histories_[i], before);
    const double unit = unit_of(histories_[i].task, bounds_[i]);
    if (ns > 0 && unit > 0 && std::isfinite(here.distance(likeness_[i])))
      multiples.push_back({ns / unit, here.weight(likeness_[i])});
  }
  if (multiples.empty()) return 0;
  return std::max(bound, weighted_quantile(std::move(multiples), 0.5) * unit_of(task, bound));
}

const TaskHistory* GainEstimate::history_of(const JobRow::Task& task) const {
  const TaskHistory* found = nullptr;
  for (const TaskHistory& h : histories_)
    if (h.task.workload_key == task.workload_key && h.task.target == task.target &&
        (found == nullptr || h.trials() > found->trials()))
      found = &h;
  return found;
}

bool worth_skipping(const Gain& gain, Before before) {
  return before == Before::kDefault && gain.expected < kSkipBelow && gain.high < kSkipHigh;
}

namespace {

template <class Estimate, class Truth>
Calibration calibrate(const std::vector<TaskHistory>& histories, Before before, const Estimate& estimate,
                      const Truth& truth) {
  Calibration c;
  std::vector<double> truths, widths;
  for (size_t i = 0; i < histories.size(); i += histories.size() / kMostHidden + 1) {
    const std::optional<double> found = truth(histories[i]);
    const std::optional<Gain> gain = found ? estimate(histories[i]) : std::nullopt;
    if (!gain) continue;
    ++c.tasks;
    c.inside += gain->low - 1e-9 <= *found && *found <= gain->high + 1e-9 ? 1 : 0;
    c.mean_error += std::abs(gain->expected - *found);
    c.skips += worth_skipping(*gain, before) ? 1 : 0;
    c.right_skips += worth_skipping(*gain, before) && *found < kSmallGain ? 1 : 0;
    truths.push_back(*found);
    widths.push_back(gain->high - gain->low);
  }
  if (c.tasks == 0) return c;
  double sum = 0;
  for (const double t : truths) sum += t;
  const double n = static_cast<double>(c.tasks);
  for (const double t : truths)
    c.error_of_constant += truths.size() < 2 ? 0 : std::abs(t - (sum - t) / (n - 1)) / n;
  c.mean_error /= n;
  c.median_width = median(widths);
  return c;
}

}  // namespace

Calibration calibrate_tuning(const GainEstimate& estimate, Before before) {
  return calibrate(
      estimate.histories(), before,
      [&](const TaskHistory& h) { return estimate.of_tuning(h.task, before, &h); },
      [&](const TaskHistory& h) { return gain_of(h, before); });
}

Calibration calibrate_more_trials(const GainEstimate& estimate, int64_t trials) {
  return calibrate(
      estimate.histories(), Before::kDefault,
      [&](const TaskHistory& h) { return estimate.of_more_trials(h.task, trials, &h); },
      [&](const TaskHistory& h) { return gain_after(h, trials); });
}

}  // namespace tuner
