// Tuned configs: what the rows of a task say is the fastest. The same for every engine.
#include <algorithm>
#include <map>

#include "compiler_core/base/statistics.h"
#include "db/device_records.h"
#include "db/store.h"
#include "db/task_view.h"

namespace tuner {

bool same_environment(const Environment& a, const Environment& b) {
  return a.toolchain == b.toolchain && a.hardware == b.hardware && a.harness_abi == b.harness_abi;
}

namespace {

using Measured = TaskView::Measured;

// The records of a task, or those of one class of devices.
struct Records {
  const TaskView& view;
  const TargetFamily* family = nullptr;
  std::string_view device_class;  // empty: all

  bool is_mine(std::string_view hardware) const {
    return device_class.empty() || is_of_class(*family, device_class, hardware);
  }
  Result<std::vector<RaceRow>> races() const {  // newest first
    ASSIGN_OR_RETURN(std::vector<RaceRow> all, view.races());
    std::erase_if(all, [&](const RaceRow& race) { return !is_mine(race.environment.hardware); });
    return all;
  }
  // As TaskView::fastest(). Where all is of one device, that is one look.
  Result<std::optional<Measured>> fastest(const std::vector<std::string>& templates) const {
    ASSIGN_OR_RETURN(std::optional<Measured> best, view.fastest(templates));
    if (!best || is_mine(best->record.environment.hardware)) return best;
    best.reset();
    ASSIGN_OR_RETURN(const std::vector<std::string> hardware, view.hardware());
    for (const std::string& one : hardware) {
      if (!is_mine(one)) continue;
      ASSIGN_OR_RETURN(std::optional<Measured> found, view.fastest_on(one, templates));
      if (found && (!best || std::pair(record_time_ns(found->record), found->record_id) <
                                 std::pair(record_time_ns(best->record), best->record_id)))
        best = std::move(found);
    }
    return best;
  }
  // Candidates that never reached a device count for each class.
  Result<std::vector<std::pair<Outcome, int64_t>>> outcomes() const {
    if (device_class.empty()) return view.outcomes();
    std::map<Outcome, int64_t> counts;
    ASSIGN_OR_RETURN(const std::vector<std::string> hardware, view.hardware());
    for (const std::string& one : hardware) {
      if (!one.empty() && !is_mine(one)) continue;
      ASSIGN_OR_RETURN(const auto found, view.outcomes_on(one));
      for (const auto& [outcome, count] : found) counts[outcome] += count;
    }
    return std::vector<std::pair<Outcome, int64_t>>(counts.begin(), counts.end());
  }
};

// A race that may answer, with its winner.
struct Candidate {
  RaceRow race;  // without its samples
  TrialRow winner;
};

// What the answer rests on.
struct Decision {
  Measured best;
  std::optional<RaceRow> race;         // that it won
  std::optional<RaceRow> uncertified;  // without such a race: the newest one, which certifies nothing
};

bool allowed(const std::vector<std::string>& templates, const std::string& template_name) {
  return templates.empty() || std::ranges::find(templates, template_name) != templates.end();
}

bool same_config(const TrialRow& a, const TrialRow& b) {
  return a.template_name == b.template_name && a.template_version == b.template_version &&
         a.config == b.config;
}

// Whether the config took part in the race: as that trial, or as one of another job.
Result<bool> took_part(const TaskView& view, const TrialRow& trial, const RaceRow& race) {
  for (const RaceFinalist& f : race.finalists)
    if (f.trial_id == trial.id) return true;
  for (const RaceFinalist& f : race.finalists) {
    ASSIGN_OR_RETURN(const TrialRow other, view.trial(f.trial_id));
    if (same_config(other, trial)) return true;
  }
  return false;
}

// The race that answers for the task: of the certified ones that no later one has decided anew, that with the
// fastest winner. Under another compiler, machine or harness a later race that is not certified takes the
// certificate of the old one away, too. Without a race that answers, `newest_uncertified` tells what became
// of the newest that was not certified.
Result<std::optional<Candidate>> deciding_race(const Records& records,
                                               const std::vector<std::string>& templates,
                                               std::optional<RaceRow>& newest_uncertified) {
  const TaskView& view = records.view;
  ASSIGN_OR_RETURN(const std::vector<RaceRow> races, records.races());
  std::vector<const RaceRow*> later;
  std::vector<Candidate> standing;
  for (const RaceRow& race : races) {
    if (!race.certified) {
      later.push_back(&race);
      if (!newest_uncertified) newest_uncertified = race;
      continue;
    }
    ASSIGN_OR_RETURN(TrialRow winner, view.trial(race.winner_trial_id));
    if (!allowed(templates, winner.template_name)) continue;
    bool decided_anew = false;
    for (const RaceRow* l : later) {
      if (decided_anew) break;
      if (!l->certified && same_environment(l->environment, race.environment)) continue;
      ASSIGN_OR_RETURN(decided_anew, took_part(view, winner, *l));
    }
    later.push_back(&race);
    if (!decided_anew) standing.push_back({race, std::move(winner)});
  }
  const auto fastest =
      std::ranges::min_element(standing, {}, [](const Candidate& c) { return c.race.time_ns; });
  return fastest == standing.end() ? std::optional<Candidate>() : std::optional(std::move(*fastest));
}

// A record that was measured again since, under another compiler, harness or machine, says nothing any more:
// what stands in its place. `best` is the fastest record of its task, `race` the newest race there. When that
// is of a later day's environment, and its job measured the same config again, the fastest ok record of that
// environment, else nothing.
Result<std::optional<Measured>> superseding(const TaskView& view, const Measured& best, const RaceRow& race,
                                            const std::vector<std::string>& templates) {
  if (race.id < best.record_id || same_environment(race.environment, best.record.environment))
    return std::optional<Measured>();
  ASSIGN_OR_RETURN(const bool again,
                   view.measured_by_job_of(race, best.trial.template_name, best.trial.config));
  if (!again) return std::optional<Measured>();
  return view.fastest_of_environment(race.environment, templates);
}

// A race that certifies nothing keeps its winner where that is not certainly slower than `best`, under the
// same conditions: `best` raced beside it and lost, or, where nobody won and the winner is the answer of
// before, their trials' intervals overlap. So an answer does not change by the noise of trials.
Result<std::optional<Measured>> not_certainly_slower(const TaskView& view, const Measured& best,
                                                     const RaceRow& race,
                                                     const std::vector<std::string>& templates) {
  if (race.winner_trial_id.empty() || race.winner_trial_id == best.trial.id) return std::optional<Measured>();
  ASSIGN_OR_RETURN(std::optional<Measured> winner, view.measured(race.winner_trial_id));
  if (!winner || winner->record.outcome != Outcome::kOk || winner->record.cut ||
      !allowed(templates, winner->trial.template_name) ||
      !same_environment(winner->record.environment, best.record.environment))
    return std::optional<Measured>();
  bool stays = median_interval(winner->record.run_ns).low <= median_interval(best.record.run_ns).high;
  if (!stays && !race.tie_set.empty()) {
    ASSIGN_OR_RETURN(stays, took_part(view, best.trial, race));
  }
  return stays ? std::move(winner) : std::optional<Measured>();
}

// Nothing: no right answer has been measured yet.
Result<std::optional<Decision>> decide(const Records& records, const std::vector<std::string>& templates) {
  const TaskView& view = records.view;
  Decision out;
  ASSIGN_OR_RETURN(std::optional<Candidate> decided, deciding_race(records, templates, out.uncertified));
  if (decided) {
    ASSIGN_OR_RETURN(std::optional<Measured> winner, view.measured(decided->winner.id));
    if (!winner)
      return failed("trial ", decided->winner.id, " won a race and has no record: the database is damaged");
    out.best = *std::move(winner);
    out.race = std::move(decided->race);
    return std::optional(std::move(out));
  }
  ASSIGN_OR_RETURN(std::optional<Measured> best, records.fastest(templates));
  if (!best) return std::optional<Decision>();
  if (out.uncertified) {
    ASSIGN_OR_RETURN(std::optional<Measured> newer, superseding(view, *best, *out.uncertified, templates));
    if (newer) best = std::move(newer);
    ASSIGN_OR_RETURN(std::optional<Measured> stays,
                     not_certainly_slower(view, *best, *out.uncertified, templates));
    if (stays) best = std::move(stays);
  }
  out.best = *std::move(best);
  return std::optional(std::move(out));
}

void add_race(const RaceRow& race, TunedConfig& out) {
  out.time_ns = race.time_ns;
  out.time_low_ns = race.time_low_ns;
  out.time_high_ns = race.time_high_ns;
  out.race_id = race.id;
  out.ratio = race.ratio;
  out.ratio_low = race.ratio_low;
  out.ratio_high = race.ratio_high;
  out.regret_bound = race.regret_bound;
  out.finalists = static_cast<int>(race.finalists.size());
  out.tied = static_cast<int>(race.tie_set.size());
  out.won_by = race.won_by;
  out.certified = true;
  out.other_time_ns = race.other_time_ns;
  out.default_time_ns = race.default_time_ns;
  out.default_trial_id = race.default_trial_id;
  out.turns = race.turns;
  out.discarded = race.discarded;
  out.memory_ns = race.memory_ns;
  out.environment = race.environment;
  out.finished_at_us = race.finished_at_us;
}

TunedConfig tuned_config(const Decision& decision, const JobRow::Task& task) {
  const MeasureRecord& r = decision.best.record;
  const TrialRow& trial = decision.best.trial;
  TunedConfig out{.workload_key = task.workload_key,
                  .target = task.target,
                  .template_name = trial.template_name,
                  .config = trial.config,
                  .template_version = trial.template_version,
                  .time_ns = record_time_ns(r),
                  .constants = task.constants,
                  .read_gbps = r.read_gbps,
                  .peak_gflops = r.peak_gflops,
                  .trial_id = trial.id,
                  .artifact_digest = r.artifact_digest,
                  .trial_name = trial.id,
                  .environment = r.environment,
                  .finished_at_us = r.finished_at_us};
  if (decision.race) {
    add_race(*decision.race, out);
    return out;
  }
  const Interval interval = median_interval(r.run_ns);
  out.time_low_ns = interval.low;
  out.time_high_ns = interval.high;
  out.uncertified_why = decision.uncertified ? decision.uncertified->uncertified_why : "not raced";
  return out;
}

}  // namespace

Result<TunedConfig> Store::best_of(const JobRow::Task& task, const TargetFamily* family,
                                   std::string_view device_class, const std::vector<std::string>& templates,
                                   bool counted) const {
  bool known = false;
  std::optional<TunedConfig> best;
  RETURN_IF_ERROR(with_task(task, [&](const TaskView& view) -> Status {
    known = true;
    const Records records{view, family, device_class};
    ASSIGN_OR_RETURN(const std::optional<Decision> decision, decide(records, templates));
    if (!decision) return Status::ok();
    best = tuned_config(*decision, task);
    if (!counted) return Status::ok();
    ASSIGN_OR_RETURN(best->outcomes, records.outcomes());
    for (const auto& [outcome, count] : best->outcomes) best->trials += count;
    return Status::ok();
  }));
  if (best && counted) {
    ASSIGN_OR_RETURN(const TrialWithRecord named, trial(best->trial_id));
    best->trial_name = named.trial.name();
  }
  if (best) return *std::move(best);
  const std::string what = str("no trial of ", task.workload_key, " on \"", task.target, "\"");
  return known ? not_found(what, " has been measured with a right answer yet, in ", where())
               : not_found(what, " in ", where());
}

Result<TunedConfig> Store::best(std::string_view workload_key, std::string_view target,
                                const std::vector<std::string>& templates, bool counted,
                                Constants constants) const {
  return best_of(
      {.workload_key = std::string(workload_key), .target = std::string(target), .constants = constants},
      nullptr, {}, templates, counted);
}

Result<TunedConfig> Store::best_of_class(const JobRow::Task& task, const TargetFamily& family,
                                         std::string_view device_class,
                                         const std::vector<std::string>& templates, bool counted) const {
  return best_of(task, &family, device_class, templates, counted);
}

Result<TrialWithRecord> Store::fastest_of_config(const JobRow::Task& task, std::string_view template_name,
                                                 int template_version, std::string_view config) const {
  ASSIGN_OR_RETURN(std::vector<TrialWithRecord> found,
                   trials_of_config(task, template_name, template_version, config, 1));
  if (!found.empty()) return std::move(found.front());
  return not_found("no right trial of ", template_name, " ", config, " of ", task.workload_key, " in ",
                   where());
}

Result<TunedConfig> Store::measured_config(const JobRow::Task& task, std::string_view template_name,
                                           int template_version, std::string_view config) const {
  ASSIGN_OR_RETURN(TrialWithRecord found, fastest_of_config(task, template_name, template_version, config));
  Decision decision;
  decision.best = {std::move(found.trial), *std::move(found.record), found.record_id};
  TunedConfig out = tuned_config(decision, task);
  out.uncertified_why = "no race of today decided for it";
  return out;
}

}  // namespace tuner
