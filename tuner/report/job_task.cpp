// What the parts of a report ask of a task: names, and which trial and race its result rests on.
#include <algorithm>

#include "tuner/report/task_facts.h"

namespace tuner {

std::string described(const JobTask& t, const TrialRow& trial) {
  const Result<Config> config = config_from_text(trial.config);
  if (t.space && config)
    for (const SearchSpace::Part& part : t.space->search.parts)
      if (part.template_name == trial.template_name && part.space->index_of(*config))
        return part.space->describe(*config);
  return trial.config;
}

size_t position_of(const JobTask& t, const std::string& trial_id) {
  const auto at =
      std::ranges::find_if(t.trials, [&](const TrialWithRecord& r) { return r.trial.id == trial_id; });
  return static_cast<size_t>(at - t.trials.begin());
}

size_t fastest_trial(const JobTask& t) {
  size_t best = t.trials.size();
  for (size_t i = 0; i < t.trials.size(); ++i) {
    const MeasureRecord& r = *t.trials[i].record;
    if (r.outcome == Outcome::kOk && !r.cut &&
        (best == t.trials.size() || record_time_ns(r) < record_time_ns(*t.trials[best].record)))
      best = i;
  }
  return best;
}

const RaceRow* deciding_race(const JobTask& t) {
  const auto newest = std::find_if(t.races.rbegin(), t.races.rend(), [&](const RaceRow& r) {
    return r.certified && position_of(t, r.winner_trial_id) < t.trials.size();
  });
  return newest == t.races.rend() ? nullptr : &*newest;
}

const RaceRow* shown_race(const JobTask& t) {
  const RaceRow* decided = deciding_race(t);
  return decided != nullptr || t.races.empty() ? decided : &t.races.back();
}

}  // namespace tuner
