#include "tuner/study/task_history.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "compiler_core/base/statistics.h"
#include "templates/schedule_template.h"
#include "tuner/daemon/search/task_space.h"
#include "tuner/study/task_likeness.h"

namespace tuner {
namespace {

constexpr int64_t kPause_us = 60'000'000;
constexpr size_t kLenders = 3, kLent = 3;  // tasks that may lend, and configs of each

using Key = std::tuple<std::string, std::string, std::string>;  // workload, target, hardware
using Times = std::map<std::string, double>;                    // by template and config

struct Rows {
  std::map<Key, std::vector<TrialWithRecord>> trials;
  std::map<Key, std::vector<double>> race_seconds;
  std::map<Key, RaceRow> latest_race;
};

Status read_job(const Store& store, const JobRow& job, Rows& rows, int64_t& read) {
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
    const Key key{task.workload_key, task.target, race.environment.hardware};
    if (us > 0 && us < 2 * kPause_us) rows.race_seconds[key].push_back(static_cast<double>(us) / 1e6);
    RaceRow& latest = rows.latest_race[key];
    if (race.finished_at_us >= latest.finished_at_us) latest = race;
  }
  for (TrialWithRecord& t : trials) {
    if (!t.record || t.record->outcome == Outcome::kDeviceLost) continue;
    Key key{t.task.workload_key, t.task.target, t.record->environment.hardware};
    rows.trials[std::move(key)].push_back(std::move(t));
  }
  return Status::ok();
}

std::string kernel_key(std::string_view template_name, std::string_view config) {
  return str(template_name, " ", config);
}

double time_of(const TrialWithRecord& t) {
  return t.record->outcome == Outcome::kOk && !t.record->cut ? record_time_ns(*t.record) : 0;
}

// Mean time between results, pauses left out. 0: there are not two.
double seconds_per_trial(const std::vector<TrialWithRecord>& trials) {
  std::vector<int64_t> finished;
  for (const TrialWithRecord& t : trials) finished.push_back(t.record->finished_at_us);
  std::sort(finished.begin(), finished.end());
  double seconds = 0;
  int64_t gaps = 0;
  for (size_t i = 1; i < finished.size(); ++i)
    if (const int64_t us = finished[i] - finished[i - 1]; us < kPause_us) {
      seconds += static_cast<double>(us) / 1e6;
      ++gaps;
    }
  return gaps > 0 ? seconds / static_cast<double>(gaps) : 0;
}

struct Measured {
  Times trials;  // the first correct one of each config
  Times race;    // the finalists of the latest race
};

// `trials` in order of arrival.
TaskHistory history_of(const Key& key, const std::vector<TrialWithRecord>& trials, const RaceRow* race,
                       Measured& times) {
  TaskHistory h{.task = {std::get<0>(key), std::get<1>(key), ""}};
  std::map<std::string, double> finalists;  // by trial
  if (race != nullptr)
    for (const RaceFinalist& f : race->finalists) finalists[f.trial_id] = raced_time_ns(f);
  std::set<std::string> measured;
  double best = 0;
  for (const TrialWithRecord& t : trials) {
    const double ns = time_of(t);
    if (ns > 0 && (best == 0 || ns < best)) best = ns;
    h.best_ns.push_back(best);
    const std::string kernel = kernel_key(t.trial.template_name, t.trial.config);
    measured.insert(kernel);
    if (ns > 0) times.trials.emplace(kernel, ns);
    const auto raced = finalists.find(t.trial.id);
    if (raced == finalists.end() || raced->second <= 0) continue;
    times.race.emplace(kernel, raced->second);
    if (t.trial.id == race->winner_trial_id) h.raced_last_ns = raced->second;
    if (t.trial.id == race->default_trial_id) h.raced_default_ns = raced->second;
  }
  h.seconds_per_trial = seconds_per_trial(trials);
  const Result<TaskSpace> space = make_task_space(h.task);
  if (!space || space->search.parts.empty()) return h;  // no template of this program serves it any more
  const SearchSpace::Part& first = space->search.parts[0];
  const std::string plain =
      kernel_key(first.template_name, first.space->at(first.space->default_index()).to_text());
  if (const auto found = times.trials.find(plain); found != times.trials.end()) h.default_ns = found->second;
  h.exhausted = measured.size() >= space->search.size();
  return h;
}

void add_roofs(const Key& key, const std::vector<TrialWithRecord>& trials, RecordedRoofs& roofs) {
  const Result<Workload> workload = workload_from_key(std::get<0>(key));
  const Result<Target> target = parse_target(std::get<1>(key));
  if (!workload || !target) return;
  double peak = 0, read = 0, best = 0, best_direct = 0;
  for (const TrialWithRecord& t : trials) {
    peak = std::max(peak, t.record->peak_gflops);
    read = std::max(read, t.record->read_gbps);
    const double ns = time_of(t);
    if (ns <= 0) continue;
    const AnyTemplate* const by = find_template(t.trial.template_name);
    if (best == 0 || ns < best) best = ns;
    if (by != nullptr && by->algorithm() == "direct" && (best_direct == 0 || ns < best_direct))
      best_direct = ns;
  }
  roofs.add(*workload, *target, peak, read, best, false);
  roofs.add(*workload, *target, peak, read, best_direct, true);
}

// The kernels of a task, fastest first; at most kLent.
std::vector<std::string> fastest(const Times& times) {
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [kernel, ns] : times) order.emplace_back(ns, kernel);
  std::sort(order.begin(), order.end());
  std::vector<std::string> kernels;
  for (size_t i = 0; i < std::min(kLent, order.size()); ++i) kernels.push_back(order[i].second);
  return kernels;
}

// Mean time of these kernels, as far as they were measured; 0: none was. `scale`: of times in a race over
// those of trials; 0: there was no race.
double mean_time_of(const std::vector<std::string>& kernels, const Measured& times, double scale) {
  double sum = 0;
  int count = 0;
  for (const std::string& kernel : kernels) {
    const auto trial = times.trials.find(kernel);
    const auto race = times.race.find(kernel);
    if (trial == times.trials.end()) continue;
    sum += scale > 0 && race != times.race.end() ? race->second : trial->second * (scale > 0 ? scale : 1);
    ++count;
  }
  return count > 0 ? sum / count : 0;
}

void fill_lent(std::vector<TaskHistory>& histories, const std::vector<Measured>& times) {
  std::vector<TaskLikeness> likeness;
  std::vector<std::vector<std::string>> best;
  for (size_t i = 0; i < histories.size(); ++i) {
    likeness.emplace_back(histories[i].task.workload_key, histories[i].task.target);
    best.push_back(fastest(times[i].race.empty() ? times[i].trials : times[i].race));
  }
  for (size_t i = 0; i < histories.size(); ++i) {
    std::vector<std::pair<double, size_t>> nearest;
    for (size_t k = 0; k < histories.size(); ++k)
      if (k != i && histories[k].task.workload_key != histories[i].task.workload_key &&
          likeness[i].same_variant(likeness[k]))
        nearest.emplace_back(likeness[i].distance(likeness[k]), k);
    std::sort(nearest.begin(), nearest.end());
    if (nearest.size() > kLenders) nearest.resize(kLenders);
    TaskHistory& h = histories[i];
    const double scale = h.last_ns() > 0 ? h.raced_last_ns / h.last_ns() : 0;
    for (size_t n = 0; n < nearest.size() && h.lent_ns == 0; ++n) {
      h.lent_ns = mean_time_of(best[nearest[n].second], times[i], 0);
      if (scale > 0) h.raced_lent_ns = mean_time_of(best[nearest[n].second], times[i], scale);
    }
  }
}

}  // namespace

Result<Histories> read_histories(const Store& store, int64_t most_trials) {
  ASSIGN_OR_RETURN(std::vector<JobRow> jobs, store.jobs());
  std::reverse(jobs.begin(), jobs.end());
  Rows rows;
  int64_t read = 0;
  for (const JobRow& job : jobs)
    if (read < most_trials) RETURN_IF_ERROR(read_job(store, job, rows, read));
  Histories out;
  std::vector<Measured> times;
  for (auto& [key, trials] : rows.trials) {
    std::sort(trials.begin(), trials.end(),
              [](const auto& a, const auto& b) { return a.record_id < b.record_id; });
    const auto race = rows.latest_race.find(key);
    TaskHistory h = history_of(key, trials, race == rows.latest_race.end() ? nullptr : &race->second,
                               times.emplace_back());
    if (const auto races = rows.race_seconds.find(key); races != rows.race_seconds.end())
      h.race_seconds = median(races->second);
    out.tasks.push_back(std::move(h));
    add_roofs(key, trials, out.roofs);
  }
  fill_lent(out.tasks, times);
  return out;
}

}  // namespace tuner
