// What came out: the best config, the race, failures, where the time went, the roofline.
#include <algorithm>
#include <map>
#include <set>

#include "compiler_core/base/statistics.h"
#include "db/raced_time.h"
#include "templates/schedule_template.h"
#include "templates/workload/needed_work.h"
#include "tuner/report/task_facts.h"
#include "tuner/study/roofline.h"
#include "tuner/text/format.h"
#include "tuner/text/time_words.h"

namespace tuner {

using nlohmann::ordered_json;

namespace {

constexpr size_t kMostExamples = 4;        // of one kind of failure
constexpr int64_t kPause_us = 60'000'000;  // between two results: longer, and nobody was measuring

std::string algorithm_of(const std::string& template_name) {
  const AnyTemplate* found = find_template(template_name);
  return found == nullptr ? "" : std::string(found->algorithm());
}

// Of the default of the first template, which is what is built without a database; 0: not measured.
double default_ns(const JobTask& t) {
  double best = 0;
  if (!t.space) return best;
  std::set<std::pair<std::string, std::string>> defaults;
  const SearchSpace::Part& first = t.space->search.parts.front();
  defaults.emplace(first.template_name, first.space->at(first.space->default_index()).to_text());
  for (const TrialWithRecord& r : t.trials)
    if (r.record->outcome == Outcome::kOk && defaults.contains({r.trial.template_name, r.trial.config}))
      best = record_time_ns(*r.record);
  return best;
}

// The task's answer: of this certified race, else of one trial.
TunedConfig answer_of(const JobTask& t, const TrialWithRecord& winner, const RaceRow* race) {
  TunedConfig out{.time_ns = record_time_ns(*winner.record), .constants = winner.task.constants};
  if (race == nullptr) {
    out.default_time_ns = default_ns(t);
    out.uncertified_why = t.races.empty() ? "not raced" : t.races.back().uncertified_why;
    return out;
  }
  out.time_ns = race->time_ns;
  out.time_low_ns = race->time_low_ns;
  out.time_high_ns = race->time_high_ns;
  out.race_id = race->id;
  out.certified = true;
  out.default_time_ns = race->default_time_ns;
  out.other_time_ns = race->other_time_ns;
  return out;
}

}  // namespace

ordered_json best_facts(const JobTask& t) {
  const RaceRow* race = deciding_race(t);
  const size_t at = race != nullptr ? position_of(t, race->winner_trial_id) : fastest_trial(t);
  if (at == t.trials.size()) return nullptr;
  const TrialWithRecord* winner = &t.trials[at];
  TunedConfig tuned = answer_of(t, *winner, race);
  tuned.peak_gflops = winner->record->peak_gflops;
  tuned.read_gbps = winner->record->read_gbps;
  const TimeWords words = time_words(tuned);
  const double ns = tuned.time_ns;
  const double flops = static_cast<double>(t.task.workload.flops());
  ordered_json j{{"trial", winner->trial.name()},
                 {"n", at + 1},
                 {"template", winner->trial.template_name},
                 {"template_version", winner->trial.template_version},
                 {"algorithm", algorithm_of(winner->trial.template_name)},
                 {"config", winner->trial.config},
                 {"described", described(t, winner->trial)},
                 {"time_ns", ns},
                 {"low_ns", nullptr},
                 {"high_ns", nullptr},
                 {"words", {{"time", words.time}, {"certainty", words.certainty}, {"gain", words.gain}}},
                 {"raced", race != nullptr},
                 {"trial_ns", record_time_ns(*winner->record)},
                 {"gflops", ns > 0 ? flops / ns : 0},
                 {"needed_gflops", ns > 0 ? static_cast<double>(needed_flops(t.task.workload)) / ns : 0},
                 {"peak_gflops", winner->record->peak_gflops},
                 {"peak_owner", peak_owner(t.task.workload.dtype(), *t.task.target.family)},
                 {"artifact", winner->record->artifact_digest},
                 {"toolchain", winner->record->environment.toolchain},
                 {"host", winner->record->environment.host},
                 {"certified", tuned.certified},
                 {"uncertified_why", tuned.uncertified_why},
                 {"constants", constants_name(winner->task.constants)},
                 {"other_ns", tuned.other_time_ns},
                 {"default_ns", nullptr},
                 {"roofline_ns", tuned.read_gbps > 0 ? roofline_ns(t.task.workload, tuned) : 0}};
  // What is not certified claims no interval and no gain (tuner/text/time_words.h).
  if (tuned.certified) j["low_ns"] = tuned.time_low_ns, j["high_ns"] = tuned.time_high_ns;
  if (claimed_gain(tuned) > 0) j["default_ns"] = tuned.default_time_ns;
  return j;
}

ordered_json race_facts(const JobTask& t) {
  const RaceRow* const shown = shown_race(t);
  if (shown == nullptr) return {{"why", "the finalists of this task were not raced"}};
  const RaceRow& race = *shown;
  const bool decided = deciding_race(t) != nullptr;
  std::vector<ordered_json> finalists;
  for (const RaceFinalist& f : race.finalists) {
    const size_t at = position_of(t, f.trial_id);
    const TrialRow* trial = at < t.trials.size() ? &t.trials[at].trial : nullptr;
    // The winner's time is the one that the race published, as in best_facts().
    const bool winner = decided && f.trial_id == race.winner_trial_id;
    const Spread time = winner ? Spread{race.time_ns, race.time_low_ns, race.time_high_ns} : raced_time(f);
    const std::set<int> processes(f.process.begin(), f.process.end());
    finalists.push_back(
        {{"trial", trial != nullptr ? trial->name() : f.trial_id},
         {"config", trial != nullptr ? described(t, *trial) : "of another job"},
         {"template", trial != nullptr ? trial->template_name : ""},
         {"time_ns", time.value},
         {"low_ns", time.low},
         {"high_ns", time.high},
         {"processes", processes.size()},
         {"samples", f.samples_ns.size()},
         {"samples_ns", f.samples_ns},
         {"process", f.process},
         {"winner", winner},
         {"default", f.trial_id == race.default_trial_id},
         {"tied", decided && std::ranges::find(race.tie_set, f.trial_id) != race.tie_set.end()}});
  }
  std::ranges::stable_sort(finalists, [](const ordered_json& a, const ordered_json& b) {
    return a["winner"] != b["winner"] ? a["winner"].get<bool>() : a["time_ns"] < b["time_ns"];
  });
  return {{"finalists", finalists},       {"regret_bound", race.regret_bound},
          {"time_ns", race.time_ns},      {"low_ns", race.time_low_ns},
          {"high_ns", race.time_high_ns}, {"ratio_to_sentinel", race.ratio},
          {"certified", race.certified},  {"uncertified_why", race.uncertified_why},
          {"turns", race.turns},          {"discarded", race.discarded}};
}

ordered_json failure_facts(const JobTask& t) {
  struct Kind {
    int64_t count = 0;
    ordered_json examples = ordered_json::array();
    std::set<std::string> messages;  // the numbers in them left out: one example of each sort
  };
  std::map<Outcome, Kind> kinds;
  for (const TrialWithRecord& r : t.trials) {
    if (r.record->outcome == Outcome::kOk) continue;
    Kind& kind = kinds[r.record->outcome];
    ++kind.count;
    std::string sort = r.trial.template_name;
    for (const char c : r.record->message)
      if (c < '0' || c > '9') sort += c;
    if (kind.examples.size() < kMostExamples && kind.messages.insert(sort).second)
      kind.examples.push_back({{"trial", r.trial.name()},
                               {"template", r.trial.template_name},
                               {"config", described(t, r.trial)},
                               {"message", r.record->message}});
  }
  std::vector<std::pair<Outcome, Kind>> sorted(kinds.begin(), kinds.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.count > b.second.count; });
  ordered_json out = ordered_json::array();
  for (auto& [outcome, kind] : sorted)
    out.push_back({{"outcome", outcome_name(outcome)}, {"count", kind.count}, {"examples", kind.examples}});
  return out;
}

ordered_json phase_facts(const JobTask& t) {
  double build_ms = 0, run_ms = 0, wall_ms = 0;
  std::vector<double> builds, runs;
  std::vector<int64_t> finished;
  for (const TrialWithRecord& r : t.trials) {
    build_ms += r.record->build_ms;
    run_ms += r.record->run_ms;
    if (r.record->build_ms > 0) builds.push_back(r.record->build_ms);
    if (r.record->run_ms > 0) runs.push_back(r.record->run_ms);
    finished.push_back(r.record->finished_at_us);
  }
  if (finished.size() < 2) return {{"why", "fewer than two results"}};
  std::sort(finished.begin(), finished.end());
  for (size_t i = 1; i < finished.size(); ++i)
    if (const int64_t us = finished[i] - finished[i - 1]; us < kPause_us)
      wall_ms += static_cast<double>(us) / 1000;
  return {{"trials", t.trials.size()},
          {"wall_ms", wall_ms},
          {"build_ms", build_ms},
          {"run_ms", run_ms},
          {"build_median_ms", median(builds)},
          {"run_median_ms", median(runs)}};
}

ordered_json roofline_facts(const JobTask& t, double best_ns, const ReportOptions& options) {
  const double flops = static_cast<double>(t.task.workload.flops());
  const double bytes = static_cast<double>(t.task.workload.bytes());
  if (flops <= 0 || bytes <= 0 || best_ns <= 0)
    return {{"why", "no right answer, or no arithmetic to speak of"}};
  double recorded = 0;
  for (const TrialWithRecord& r : t.trials) recorded = std::max(recorded, r.record->peak_gflops);
  MachineRoofs roofs{.peak_gflops = recorded};
  if (options.measure_roofs) roofs = measure_roofs(t.task.target, t.task.workload.dtype(), recorded);
  ordered_json levels = ordered_json::array();
  std::string lives_in;
  for (const MachineRoofs::Level& level : roofs.levels)
    if (level.read_gbps > 0) levels.push_back({{"name", level.name}, {"gbps", level.read_gbps}});
  if (!levels.empty()) lives_in = level_for(roofs, t.task.workload.bytes()).name;
  return {{"flops", flops},
          {"bytes", bytes},
          {"gflops", flops / best_ns},
          {"gbps", bytes / best_ns},
          {"peak_gflops", roofs.peak_gflops},
          {"peak_name", peak_name(t.task.workload.dtype())},
          {"peak_measured_now", roofs.measured},
          {"levels", levels},
          {"lives_in", lives_in}};
}

}  // namespace tuner
