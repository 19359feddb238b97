#include "db/plausible.h"

#include <algorithm>

namespace tuner {

namespace {

constexpr double kRounding = 1e-6;  // of means that the sender made

int last_process(const RaceFinalist& f) { return f.process.empty() ? -1 : std::ranges::max(f.process); }

}  // namespace

std::optional<std::string> why_contradicts_samples(const RaceRow& race) {
  const auto winner = std::ranges::find(race.finalists, race.winner_trial_id, &RaceFinalist::trial_id);
  if (winner == race.finalists.end())
    return str("its winner, ", race.winner_trial_id, ", is none of its finalists");
  if (winner->samples_ns.empty()) return str("its winner, ", race.winner_trial_id, ", has no samples");
  const auto [least, most] = std::ranges::minmax(winner->samples_ns);
  if (race.time_ns < least * (1 - kRounding) || race.time_ns > most * (1 + kRounding))
    return str("a time of ", race.time_ns, " ns, and its winner's samples are ", least, " to ", most, " ns");
  if (race.time_low_ns > race.time_ns || race.time_high_ns < race.time_ns)
    return str("an interval of ", race.time_low_ns, " to ", race.time_high_ns, " ns around ", race.time_ns);
  if (!race.certified) return std::nullopt;
  // Who won a tie may be a little slower. A stored answer stays until another one is certainly faster: by how
  // much that one may be is its regret.
  const double room = race.won_by == WonBy::kStored ? std::max(kTieWidth, race.regret_bound) : kTieWidth;
  const int latest = last_process(*winner);
  for (const RaceFinalist& f : race.finalists) {
    if (f.samples_ns.empty() || last_process(f) < latest) continue;
    const double slowest = std::ranges::max(f.samples_ns);
    if (slowest * (1 + room) < least)
      return str("its winner, ", race.winner_trial_id, ", takes ", least, " ns and more, and trial ",
                 f.trial_id, " at most ", slowest, " ns");
  }
  return std::nullopt;
}

}  // namespace tuner
