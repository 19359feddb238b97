// How the search went: its curve, the baseline beside it, whether to go on, and which knobs mattered.
#include <algorithm>
#include <cmath>

#include "tuner/report/drawn_trials.h"
#include "tuner/report/knob_importance.h"
#include "tuner/report/task_facts.h"
#include "tuner/search/stopping_estimate.h"
#include "tuner/study/whatif_play.h"
#include "tuner/text/facts.h"

namespace tuner {

using nlohmann::ordered_json;

namespace {

constexpr size_t kCurvePoints = 96;  // of a played baseline
constexpr size_t kMostKnobs = 16, kMostValues = 24;

double right_ns(const TrialWithRecord& t) {
  return t.record->outcome == Outcome::kOk && !t.record->cut ? record_time_ns(*t.record) : 0;
}

std::optional<Candidate> candidate_of(const JobTask& t, const TrialRow& trial) {
  const std::vector<SearchSpace::Part>& parts = t.space->search.parts;
  const Result<Config> config = config_from_text(trial.config);
  for (size_t i = 0; config && i < parts.size(); ++i) {
    if (parts[i].template_name != trial.template_name ||
        t.space->template_versions[i] != trial.template_version)
      continue;
    const Result<ConfigIndex> index = parts[i].space->index_of(*config);
    if (index) return Candidate{static_cast<int>(i), *index};
  }
  return std::nullopt;
}

std::vector<Observation> observations(const JobTask& t) {
  std::vector<Observation> out;
  for (const TrialWithRecord& trial : t.trials)
    if (const std::optional<Candidate> c = candidate_of(t, trial.trial))
      out.push_back(
          {*c, trial.record->outcome == Outcome::kOk, record_time_ns(*trial.record), trial.record->cut});
  return out;
}

bool is_model_free(const std::string& search) { return search == "annealing" || search == "random"; }

// Best time after each trial of another job that had this task; empty: it had not, or on another machine.
Result<std::vector<double>> curve_of(const Store& store, const JobRow& job, const JobTask& t) {
  std::vector<double> best;
  std::vector<TrialWithRecord> trials;
  for (size_t i = 0; i < job.tasks.size(); ++i) {
    const JobRow::Task& task = job.tasks[i];
    const JobRow::Task& own = t.job->tasks[static_cast<size_t>(t.index)];
    if (task.workload_key != own.workload_key || task.target != own.target ||
        task.algorithms != own.algorithms)
      continue;
    if (trials.empty()) {
      ASSIGN_OR_RETURN(trials, store.trials(job.id));
    }
    std::erase_if(trials, [&](const TrialWithRecord& r) {
      return !r.record || r.trial.task_index != static_cast<int>(i) ||
             r.record->environment.hardware != t.hardware;
    });
    std::sort(trials.begin(), trials.end(),
              [](const auto& a, const auto& b) { return a.record_id < b.record_id; });
    for (const TrialWithRecord& r : trials) {
      const double ns = right_ns(r), before = best.empty() ? 0 : best.back();
      best.push_back(ns > 0 && (before == 0 || ns < before) ? ns : before);
    }
    break;
  }
  return best;
}

}  // namespace

ordered_json convergence_facts(const JobTask& t, size_t marks) {
  // A cut trial's time is a bound: it was slower than that.
  const auto time_of = [](const MeasureRecord& r) {
    return r.outcome == Outcome::kOk ? ordered_json(record_time_ns(r)) : ordered_json(nullptr);
  };
  const auto kind_of = [](const MeasureRecord& r) {
    return r.outcome == Outcome::kOk && r.cut ? std::string("cut") : std::string(outcome_name(r.outcome));
  };
  ordered_json points = ordered_json::array(), drawn = ordered_json::array();
  for (const TrialWithRecord& r : t.trials)
    points.push_back({r.trial.name(), time_of(*r.record), kind_of(*r.record)});
  for (const size_t i : drawn_trials(t, marks)) {
    const TrialWithRecord& r = t.trials[i];
    drawn.push_back({{"n", i + 1},
                     {"trial", r.trial.name()},
                     {"ns", time_of(*r.record)},
                     {"outcome", kind_of(*r.record)},
                     {"template", r.trial.template_name},
                     {"config", described(t, r.trial)},
                     {"knobs", config_json(r.trial.config)}});
  }
  return {{"points", points}, {"marks", drawn}};
}

Result<ordered_json> baseline_facts(const Store& store, const JobTask& t, const ReportOptions& options) {
  if (is_model_free(t.job->search))
    return ordered_json{{"why", "this job is itself a search without a model (" + t.job->search + ")"}};
  ASSIGN_OR_RETURN(const std::vector<JobRow> jobs, store.jobs());
  for (const char* search : {"annealing", "random"})
    for (auto job = jobs.rbegin(); job != jobs.rend(); ++job) {
      if (job->search != search) continue;
      ASSIGN_OR_RETURN(const std::vector<double> best, curve_of(store, *job, t));
      if (2 * best.size() < t.trials.size() || best.empty()) continue;
      ordered_json x = ordered_json::array(), mean = ordered_json::array();
      for (size_t i = 0; i < best.size(); ++i) {
        if (best[i] == 0) continue;
        x.push_back(i + 1);
        mean.push_back(best[i]);
      }
      return ordered_json{{"source", str(search, ", measured: job ", job->id)}, {"x", x}, {"mean", mean}};
    }

  if (!t.space)
    return ordered_json{{"why", "this program has no template for the task, so nothing can be played"}};
  const JobRow::Task& own = t.job->tasks[static_cast<size_t>(t.index)];
  ASSIGN_OR_RETURN(const TaskRecords records, records_of_task(store, own, t.hardware));
  double optimum = 0;
  for (const TaskRecords::Row& row : records.rows)
    if (row.is_timed() && (optimum == 0 || row.time_ns() < optimum)) optimum = row.time_ns();
  if (optimum == 0) return ordered_json{{"why", "nothing was timed to the end"}};
  WhatIfOptions play{.trials = t.trials.size(), .seeds = 1};
  // One run shows whether the rows suffice, before all are played.
  ASSIGN_OR_RETURN(WhatIfResult played, play_whatif(t.space->search, records, "annealing", play));
  if (played.coverage() >= options.least_coverage) {
    play.seeds = options.baseline_seeds;
    ASSIGN_OR_RETURN(played, play_whatif(t.space->search, records, "annealing", play));
  }
  const double percent = std::floor(1000 * played.coverage()) / 10;
  if (played.coverage() < options.least_coverage)
    return ordered_json{
        {"why", str("annealing, a search without a model, cannot be played on the recorded rows: ", percent,
                    " % of what it proposes are recorded, at least ", 100 * options.least_coverage,
                    " % are needed. To measure it: tuner submit FILE --search annealing")},
        {"coverage", played.coverage()}};
  ordered_json x = ordered_json::array(), mean = x, low = x, high = x;
  const size_t n = play.trials, step = std::max<size_t>(1, n / kCurvePoints);
  for (size_t i = 1; i <= n; i = i == n ? n + 1 : std::min(n, i + step)) {
    const WhatIfMark mark = mark_after(played, i);
    if (mark.mean <= 0 || mark.worst <= 0) continue;  // some run has found nothing yet
    x.push_back(i);
    mean.push_back(optimum / mark.mean);
    low.push_back(optimum / std::min(1.0, mark.high));
    high.push_back(optimum / std::max(mark.low, mark.worst / 2));
  }
  return ordered_json{{"source", str("annealing, played on the recorded rows: ", options.baseline_seeds,
                                     " runs, ", percent, " % of their proposals recorded")},
                      {"coverage", played.coverage()},
                      {"x", x},
                      {"mean", mean},
                      {"low", low},
                      {"high", high}};
}

ordered_json stopping_facts(const JobTask& t) {
  if (!t.space) return nullptr;
  StoppingEstimate estimate(t.space->search);
  for (const Observation& o : observations(t)) estimate.observe({&o, 1});
  const std::optional<double> chance = estimate.chance(), gain = estimate.expected_gain();
  ordered_json j{{"horizon", kStoppingHorizon}, {"gain", kStoppingGain}, {"least", kStoppingLeast}};
  j["results"] = estimate.results();
  j["chance"] = chance ? ordered_json(*chance) : ordered_json(nullptr);
  j["expected_gain"] = gain ? ordered_json(*gain) : ordered_json(nullptr);
  j["space_size"] = t.space->search.size();
  return j;
}

Result<ordered_json> importance_facts(const JobTask& t) {
  if (!t.space) return ordered_json{{"why", "this program has no template for the task"}};
  ASSIGN_OR_RETURN(const ImportanceReport report, knob_importance(t.space->search, observations(t)));
  if (report.knobs.empty())
    return ordered_json{{"why", str("a model needs at least ", ImportanceReport::kLeastConfigs,
                                    " configs timed to the end; this task has ", report.configs)}};
  ordered_json knobs = ordered_json::array();
  for (const KnobImportance& k : report.knobs) {
    if (knobs.size() == kMostKnobs) break;
    ordered_json values = ordered_json::array();
    for (const KnobImportance::Value& v : k.values)
      if (values.size() < kMostValues) values.push_back({v.text, v.configs, v.median_ns, v.best_ns});
    knobs.push_back(
        {{"template", k.template_name}, {"knob", k.knob}, {"share", k.share}, {"values", values}});
  }
  return ordered_json{{"configs", report.configs},
                      {"r2", report.r2},
                      {"least_r2", ImportanceReport::kLeastR2},
                      {"left_out", report.knobs.size() - knobs.size()},
                      {"knobs", knobs}};
}

}  // namespace tuner
