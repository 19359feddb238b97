#include "tuner/report/drawn_trials.h"

#include <map>
#include <numeric>
#include <set>

namespace tuner {
namespace {

constexpr size_t kExamples = 8;  // of each outcome

// `wanted` of these, first and last among them, as evenly as can be.
std::vector<size_t> evenly(const std::vector<size_t>& all, size_t wanted) {
  if (all.size() <= wanted) return all;
  std::vector<size_t> some;
  for (size_t i = 0; i < wanted; ++i)
    some.push_back(all[wanted == 1 ? all.size() - 1 : i * (all.size() - 1) / (wanted - 1)]);
  return some;
}

std::vector<size_t> improvements(const JobTask& t) {
  std::vector<size_t> found;
  double best = 0;
  for (size_t i = 0; i < t.trials.size(); ++i) {
    const MeasureRecord& r = *t.trials[i].record;
    const double ns = r.cut ? 0 : record_time_ns(r);
    if (ns <= 0 || (best > 0 && ns >= best)) continue;
    best = ns;
    found.push_back(i);
  }
  return found;
}

std::vector<size_t> examples(const JobTask& t) {
  std::vector<size_t> found;
  std::map<std::pair<Outcome, bool>, size_t> seen;
  for (size_t i = 0; i < t.trials.size(); ++i)
    if (seen[{t.trials[i].record->outcome, t.trials[i].record->cut}]++ < kExamples) found.push_back(i);
  return found;
}

}  // namespace

std::vector<size_t> drawn_trials(const JobTask& t, size_t most) {
  std::vector<size_t> all(t.trials.size());
  std::iota(all.begin(), all.end(), size_t{0});
  if (all.size() <= most) return all;

  std::set<size_t> chosen;
  const auto choose = [&](const std::vector<size_t>& some) {
    for (const size_t i : some)
      if (i < all.size() && chosen.size() < most) chosen.insert(i);
  };
  if (const size_t fastest = fastest_trial(t); fastest < all.size()) choose({fastest});
  if (const RaceRow* race = shown_race(t)) {
    choose({position_of(t, race->winner_trial_id)});
    std::vector<size_t> finalists;
    for (const RaceFinalist& f : race->finalists) finalists.push_back(position_of(t, f.trial_id));
    choose(evenly(finalists, most / 4));
  }
  choose(evenly(improvements(t), most / 4));
  choose(evenly(examples(t), most / 4));
  std::vector<size_t> others;
  for (const size_t i : all)
    if (!chosen.contains(i)) others.push_back(i);
  choose(evenly(others, most - chosen.size()));
  return {chosen.begin(), chosen.end()};
}

}  // namespace tuner
