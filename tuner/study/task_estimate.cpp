#include "tuner/study/task_estimate.h"

#include <algorithm>
#include <utility>

#include "tuner/daemon/search/task_space.h"
#include "tuner/search/stopping_estimate.h"
#include "tuner/study/present.h"
#include "tuner/study/revalidate_plan.h"
#include "tuner/study/task_records.h"

namespace tuner {
namespace {

// Of a task with results enough, from how its own search went.
Result<std::optional<Gain>> by_its_own_search(const Store& store, const JobRow::Task& task) {
  const Result<TaskSpace> space = make_task_space(task);
  const Result<TaskRecords> records = records_of_task(store, task);
  if (!space || !records) return std::optional<Gain>();  // several machines, or no template any more
  StoppingEstimate estimate(space->search);
  for (const TaskRecords::Row& row : records->rows)
    for (size_t i = 0; i < space->search.parts.size(); ++i) {
      if (space->search.parts[i].template_name != row.template_name) continue;
      const Result<ConfigIndex> index = space->search.parts[i].space->index_of(row.config);
      if (!index) continue;
      const Observation o{{static_cast<int>(i), *index}, row.is_timed(), row.time_ns()};
      estimate.observe({&o, 1});
    }
  const std::optional<double> chance = estimate.chance(), expected = estimate.expected_gain();
  if (!chance || !expected) return std::optional<Gain>();
  // At least one case in ten gains something: then it is the gain there is, when there is one.
  const double high = *chance >= 0.1 ? std::min(1.0, *expected / *chance) : kStoppingGain;
  return std::optional(Gain{*expected, 0, std::max(high, *expected), 1});
}

Status estimate_tuned(const Store& store, const GainEstimate& estimate, const JobRow::Task& row,
                      TaskEstimate& out) {
  const TaskHistory* history = estimate.history_of(row);
  out.now_ns = out.answer.tuned->time_ns;
  if (history != nullptr && history->exhausted) {
    out.gain = Gain{.rests_on = 1};
    out.note = "every config was measured";
  } else {
    ASSIGN_OR_RETURN(out.gain, by_its_own_search(store, row));
    if (out.gain)
      out.cost.trials = kStoppingHorizon;
    else
      out.gain = estimate.of_more_trials(row, out.trials_so_far, history);
    if (out.gain) cut_by_bound(*out.gain, out.now_ns, out.bound_ns);
  }
  out.staleness = staleness(*out.answer.tuned, present_here(out.task.target));
  if (!out.staleness.stale()) return Status::ok();
  const double loss = expected_loss(out.staleness);
  if (!out.gain) out.gain = Gain{};
  out.gain->expected += loss;
  out.gain->high = std::min(1.0, out.gain->high + 2 * loss);
  out.note = "stale (" + out.staleness.reason + "); tuner revalidate may do";
  return Status::ok();
}

// Of two estimates of one gain: the narrower interval, and in it the mean of what both expect, each weighted
// by how narrow it is. Where they disagree, that is no small gain.
Gain narrower_with_mean(const Gain& a, const Gain& b) {
  constexpr double kLeastWidth = 0.01;
  const double width_a = std::max(kLeastWidth, a.high - a.low),
               width_b = std::max(kLeastWidth, b.high - b.low);
  Gain gain = width_a <= width_b ? a : b;
  const double mean = (a.expected * width_b + b.expected * width_a) / (width_a + width_b);
  gain.expected = std::clamp(mean, gain.low, gain.high);
  return gain;
}

void estimate_untuned(const GainEstimate& estimate, const JobRow::Task& row, TaskEstimate& out) {
  const Before before = out.before();
  out.gain = estimate.of_tuning(row, before);
  if (!out.gain) out.gain = estimate.of_tuning(row, Before::kDefault);
  if (out.answer.known) {
    const Gain predicted{std::max(0.0, 1 - out.answer.predicted), std::max(0.0, 1 - out.answer.high),
                         std::max(0.0, 1 - out.answer.low), static_cast<double>(out.answer.rests_on.size())};
    out.gain = out.gain ? narrower_with_mean(*out.gain, predicted) : predicted;
  }
  if (!out.gain) {
    out.note = "nothing like it was searched; tuner submit FILE --trials 64 tells more";
    return;
  }
  out.now_ns = estimate.now_ns(row, before);
  if (out.now_ns == 0) out.now_ns = estimate.now_ns(row, Before::kDefault);
  cut_by_bound(*out.gain, out.now_ns, out.bound_ns);
  if (out.gain->low < kSmallGain) out.gain->low = 0;
}

}  // namespace

Result<TaskEstimate> estimate_task(const Store& store, const GainEstimate& estimate, const Resolver& resolver,
                                   const CliTask& task, int64_t uses) {
  TaskEstimate out{.task = task, .uses = uses};
  const JobRow::Task row{task.key, task.target_name, task.algorithms, uses};
  ASSIGN_OR_RETURN(out.answer, resolver.resolve(task.workload, task.target, task.algorithms));
  const TaskHistory* history = estimate.history_of(row);
  out.trials_so_far = history == nullptr ? 0 : history->trials();
  out.cost = estimate.cost(row, out.trials_so_far);
  out.bound_ns = estimate.bound_ns(row);
  if (out.answer.kind == AnswerKind::kExact && out.answer.tuned)
    RETURN_IF_ERROR(estimate_tuned(store, estimate, row, out));
  else
    estimate_untuned(estimate, row, out);
  return out;
}

}  // namespace tuner
