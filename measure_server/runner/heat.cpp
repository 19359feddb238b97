#include "measure_server/runner/heat.h"

#include <algorithm>
#include <chrono>

#include "measure_server/runner/candidate.h"

namespace tuner {
namespace {

// A neighbour's burst lasts tenths of a second; who disturbs for longer is a fact of this machine.
constexpr std::chrono::seconds kPatience{1};

// One candidate's turns in this heat.
struct Turns {
  struct Kept {
    size_t number = 0;  // from 0, among all its turns
    Beside beside;
    bool calm = true;
  };
  std::vector<Kept> kept;
  size_t taken = 0;
  int discarded = 0;

  // Where some turns were calm, the others do not count.
  void drop_disturbed() {
    const auto calm = [](const Kept& k) { return k.calm; };
    if (std::none_of(kept.begin(), kept.end(), calm)) return;
    const size_t before = kept.size();
    std::erase_if(kept, [&](const Kept& k) { return !calm(k); });
    discarded += static_cast<int>(before - kept.size());
  }
};

// The samples of the turns that count, with their sentinels.
void fill_in(const RaceRequest& request, const Turns& turns, const RunReply& run, const Contestant& candidate,
             RaceReply::Candidate& c) {
  const std::vector<double>&other_ns = candidate.other_ns(), &pulses_ns = candidate.pulses_ns();
  c.turns = static_cast<int>(turns.taken);
  c.discarded = turns.discarded;
  const auto samples = static_cast<size_t>(request.samples);
  const size_t others = other_ns.size() / std::max<size_t>(turns.taken, 1);
  for (const Turns::Kept& kept : turns.kept) {
    c.disturbed += kept.calm ? 0 : 1;
    for (size_t s = kept.number * samples; s < (kept.number + 1) * samples && s < run.run_ns.size(); ++s) {
      c.run_ns.push_back(run.run_ns[s]);
      c.cpu_ns.push_back(run.cpu_ns[s]);
      c.sentinel_ns.push_back(pulses_ns[s] > 0 ? pulses_ns[s] : kept.beside.compute_ns);
      if (kept.beside.memory_ns > 0) c.memory_ns.push_back(kept.beside.memory_ns);
    }
    for (size_t s = kept.number * others; s < (kept.number + 1) * others && s < other_ns.size(); ++s)
      c.other_ns.push_back(other_ns[s]);
  }
}

// The loop of a heat: its contestants, what is timed beside them, and how long disturbed turns are taken
// anew.
class Heat {
 public:
  Heat(const RaceRequest& request, std::span<const std::unique_ptr<Contestant>> contestants,
       const std::function<Beside()>& sentinels)
      : r_(request), contestants_(contestants), sentinels_(sentinels), turns_(contestants.size()) {
    for (const std::unique_ptr<Contestant>& c : contestants_) racing_.push_back(c->take_turn());
  }

  void run() {
    const size_t n = contestants_.size();
    patience_ = std::chrono::steady_clock::now() + kPatience;
    before_ = sentinels_();
    for (int round = 0; round < r_.rounds; ++round)
      for (size_t k = 0; k < n; ++k)
        give_turn((k + static_cast<size_t>(round)) % n, static_cast<size_t>(r_.rounds - round));
  }
  Turns& turns(size_t i) { return turns_[i]; }

 private:
  bool patient() const { return std::chrono::steady_clock::now() < patience_; }
  bool calm(const Beside& b) const {
    return r_.memory_disturbed_above_ns <= 0 || b.memory_ns <= r_.memory_disturbed_above_ns;
  }

  // Until one is calm or patience ends. `turns_left`: that it shall still have, this one included.
  void give_turn(size_t i, size_t turns_left) {
    Turns& turns = turns_[i];
    while (racing_[i] && turns.taken < most_turns_) {
      while (!calm(before_) && patient()) before_ = sentinels_();
      racing_[i] = contestants_[i]->take_turn();
      if (!racing_[i]) return;
      const size_t number = turns.taken++;
      const Beside after = sentinels_();
      const Beside mean{(before_.compute_ns + after.compute_ns) / 2,
                        (before_.memory_ns + after.memory_ns) / 2};
      const bool undisturbed = contestants_[i]->turn_was_calm() && calm(before_) && calm(after);
      before_ = after;
      if (undisturbed || !patient() || turns.taken + turns_left >= most_turns_)
        return turns.kept.push_back({number, mean, undisturbed});
      ++turns.discarded;
    }
  }

  const RaceRequest& r_;
  std::span<const std::unique_ptr<Contestant>> contestants_;
  const std::function<Beside()>& sentinels_;
  std::vector<bool> racing_;
  std::vector<Turns> turns_;
  const size_t most_turns_ =
      CandidateReport::kMaxSamples / static_cast<size_t>(std::max({r_.samples, r_.other_samples, 1}));
  std::chrono::steady_clock::time_point patience_{};
  Beside before_;
};

}  // namespace

RaceReply run_heat(const RaceRequest& request, std::span<const std::unique_ptr<Contestant>> contestants,
                   const std::function<void()>& warm_up, const std::function<Beside()>& sentinels,
                   bool& go_on) {
  RaceReply reply;
  reply.id = request.base.id;
  Heat heat(request, contestants, sentinels);
  warm_up();
  heat.run();
  for (size_t i = 0; i < contestants.size(); ++i) {
    const RunReply one = contestants[i]->finish();
    go_on = go_on && !contestants[i]->peer_gone();
    if (!one.error.empty() && reply.error.empty()) reply.error = one.error;
    RaceReply::Candidate& c = reply.candidates.emplace_back();
    c.outcome = one.outcome;
    c.message = one.message;
    c.difference = one.difference;
    c.doubted = one.doubted;
    c.max_error = one.max_error;
    c.pulse_ns = one.pulse_ns;
    c.exact_clock = one.exact_clock;
    c.slices = one.slices;
    c.retaken = one.retaken;
    if (one.outcome != Outcome::kOk) continue;
    heat.turns(i).drop_disturbed();
    fill_in(request, heat.turns(i), one, *contestants[i], c);
  }
  return reply;
}

}  // namespace tuner
