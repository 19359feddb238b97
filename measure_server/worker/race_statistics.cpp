#include "measure_server/worker/race_statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "compiler_core/base/statistics.h"

namespace tuner {
namespace {

std::vector<ProcessTime> times_of(const Racer& racer) {
  return process_times({.times_ns = racer.samples_ns,
                        .pulses_ns = racer.sentinel_ns,
                        .memory_ns = racer.memory_ns,
                        .process = racer.process,
                        .exact_clock = racer.exact_clock});
}

// Process -> logarithm of the time there. All count: who is compared ran beside the same memory.
std::map<int, double> by_process(const Racer& racer) {
  std::map<int, double> out;
  for (const ProcessTime& p : times_of(racer)) out[p.process] = std::log(p.time_ns);
  return out;
}

// How much slower a is than b, process by process (logarithms).
Mean difference(const std::map<int, double>& a, const std::map<int, double>& b) {
  std::vector<double> d;
  for (const auto& [process, log] : a)
    if (const auto other = b.find(process); other != b.end()) d.push_back(log - other->second);
  return trimmed_mean_of(std::move(d));
}

struct Standing {
  std::vector<std::map<int, double>> times;
  std::vector<bool> last;  // took part in the latest process
  size_t leader = 0;       // the fastest of those, over the processes they all took part in
  bool exact = false;      // no time is an estimate
};
Standing standing(std::span<const Racer> racers) {
  Standing s{.exact = are_exact(racers)};
  int latest = -1;
  for (const Racer& r : racers) {
    s.times.push_back(by_process(r));
    if (!s.times.back().empty()) latest = std::max(latest, s.times.back().rbegin()->first);
  }
  double best = 0;
  bool any = false;
  for (size_t i = 0; i < racers.size(); ++i) {
    s.last.push_back(s.times[i].contains(latest));
    if (!s.last[i]) continue;
    std::vector<double> logs;
    for (const auto& [process, log] : s.times[i]) logs.push_back(log);
    const double mean = trimmed_mean_of(std::move(logs)).mean;
    if (any && mean >= best) continue;
    any = true;
    best = mean;
    s.leader = i;
  }
  return s;
}

// The differences to the leader, of all that ran beside it; what one of them alone says of the machine's
// noise is too little.
class Behind {
 public:
  Behind(std::span<const Racer> racers, const Standing& s) : differences_(racers.size()), exact_(s.exact) {
    double squares = 0;
    for (size_t i = 0; i < racers.size(); ++i) {
      if (i == s.leader) continue;
      differences_[i] = difference(s.times[i], s.times[s.leader]);
      if (!(s.last[i] || racers[i].as_good_as)) continue;
      const Mean& d = differences_[i];
      squares += static_cast<double>(d.degrees) * d.deviation * d.deviation;
      degrees_ += d.degrees;
    }
    if (degrees_ > 0) deviation_ = std::sqrt(squares / static_cast<double>(degrees_));
  }
  const Mean& of(size_t i) const { return differences_[i]; }
  // Whether so many differences say what the machine's noise is that two processes of one are enough.
  bool certain() const { return degrees_ >= kEnoughDegrees; }
  bool exact() const { return exact_; }
  // What the mean may be off by, to one side.
  double error(size_t i, double probability) const {
    const Mean& d = differences_[i];
    if (exact_ && d.n > 0) return 0;
    if (d.n < 2) return std::numeric_limits<double>::infinity();
    // Of one that has left the others say nothing; its own processes do.
    const size_t degrees = std::max({degrees_, d.degrees, size_t{1}});
    return student_quantile(probability, static_cast<double>(degrees)) * std::max(d.deviation, deviation_) /
           std::sqrt(static_cast<double>(d.n));
  }

 private:
  static constexpr size_t kEnoughDegrees = 6;
  std::vector<Mean> differences_;
  bool exact_ = false;
  double deviation_ = 0;
  size_t degrees_ = 0;
};

}  // namespace

bool are_exact(std::span<const Racer> racers) {
  bool any = false;
  for (const Racer& racer : racers) {
    if (racer.samples_ns.empty()) continue;
    if (!are_exact(times_of(racer))) return false;
    any = true;
  }
  return any;
}

Spread time_spread(const Racer& racer) { return time_spread(times_of(racer)); }
double other_time_ns(const Racer& racer) {
  return time_spread({.samples_ns = racer.other_ns,
                      .sentinel_ns = racer.other_ns,  // not looked at
                      .process = racer.other_process})
      .value;
}
Spread ratio_spread(const Racer& racer) { return ratio_spread(times_of(racer)); }

namespace {

// Of one that took part in the latest process beside the leader. `certain`: what the mean may be off by,
// however few its processes are, is known from the others.
Chance chance_of(const Mean& behind, double error, bool certain) {
  // A process is seldom unlucky by so much, and a race has better things to do than to make sure.
  static const double kMuchSlower = std::log(1.10), kSlower = std::log(1.15);
  if (behind.n == 1) return behind.mean > kMuchSlower ? Chance::kSlower : Chance::kOpen;
  if (behind.n < static_cast<size_t>(kFewestProcesses))
    return (certain && behind.mean > error) || behind.mean > kSlower ? Chance::kSlower : Chance::kOpen;
  if (behind.mean - error > 0) return Chance::kSlower;
  return error - behind.mean < std::log(1 + kAsGood) ? Chance::kAsGood : Chance::kOpen;
}

}  // namespace

Chances chances(std::span<const Racer> racers) {
  constexpr double kCertain = 0.995;
  const Standing s = standing(racers);
  const Behind behind(racers, s);
  Chances found{.leader = s.leader, .of = {}};
  for (size_t i = 0; i < racers.size(); ++i) {
    Chance chance = s.last[i] ? Chance::kOpen : Chance::kSlower;
    if (racers[i].as_good_as) chance = Chance::kAsGood;
    if (chance == Chance::kOpen && i != s.leader && behind.exact())
      chance = behind.of(i).mean > 0 ? Chance::kSlower : Chance::kAsGood;
    else if (chance == Chance::kOpen && i != s.leader)
      chance = chance_of(behind.of(i), behind.error(i, kCertain), behind.certain());
    found.of.push_back(chance);
  }
  return found;
}

namespace {

// How finalists stand to the leader, for the verdict.
class Ties {
 public:
  explicit Ties(std::span<const Racer> racers)
      : racers_(racers), standing_(standing(racers)), behind_(racers, standing_) {}

  size_t leader() const { return standing_.leader; }
  const Behind& behind() const { return behind_; }
  bool ran(size_t i) const { return !standing_.times[i].empty(); }

  // Certainly slower than the leader, by however little.
  bool told_apart(size_t i) const {
    if (i == leader()) return false;
    const bool gone = !standing_.last[i] && !racers_[i].as_good_as;
    return gone || behind_.of(i).mean - behind_.error(i, 0.975) > 0;
  }
  // The stored answer gives way to this alone. The leader looks faster than it is, because it is the luckiest
  // of all; so more is asked than of others.
  bool certainly_worse(size_t i) const {
    return i != leader() && behind_.of(i).mean - behind_.error(i, 0.995) > as_good_within_;
  }
  bool as_good(size_t i) const {
    return i == leader() || (behind_.of(i).n >= fewest_processes_ && behind_.of(i).mean <= as_good_within_);
  }
  bool tied(size_t i) const {
    if (!ran(i)) return false;
    return as_good(i) || (!told_apart(i) && behind_.of(i).mean <= std::log(1 + kTie));
  }

 private:
  std::span<const Racer> racers_;
  Standing standing_;
  Behind behind_;
  // Exact times: who is slower by however little is slower.
  double as_good_within_ = standing_.exact ? 0 : std::log(1 + kAsGood);
  size_t fewest_processes_ = standing_.exact ? 1 : kFewestProcesses;
};

size_t winner_of(const Ties& ties, const Preference& preference) {
  if (const auto s = preference.stored; s && ties.ran(*s) && !ties.certainly_worse(*s)) return *s;
  const auto first = std::ranges::find_if(preference.order, [&](size_t i) { return ties.tied(i); });
  return first == preference.order.end() ? ties.leader() : *first;
}

// By how much the leader's true time may exceed that of the fastest.
double regret_of_leader(std::span<const Racer> racers, const Ties& ties, const std::vector<size_t>& rivals) {
  // Each may be the fastest, so each bound errs with an equal share of 5 %.
  const double level = rivals.size() <= 1 ? 0.95 : rivals.size() == 2 ? 0.975 : 0.995;
  const Behind& behind = ties.behind();
  const auto bound = [&](size_t i) { return std::exp(behind.error(i, level) - behind.of(i).mean) - 1; };
  double worst = 0;
  for (const size_t rival : rivals) {
    // Who left as good as another one is as far from the leader as that one, and a known fraction more at
    // most: that says more than the few processes that it had beside the leader itself.
    double least = bound(rival), more = 0;
    for (size_t i = rival; racers[i].as_good_as && more < least;) {
      more += racers[i].as_good_within;
      i = *racers[i].as_good_as;
      least = std::min(least, more + (i == ties.leader() ? 0 : bound(i)));
      if (i == ties.leader()) break;
    }
    worst = std::max(worst, least);
  }
  return worst;
}

}  // namespace

RaceVerdict judge_race(std::span<const Racer> racers, const Preference& preference) {
  const Ties ties(racers);
  const Behind& behind = ties.behind();
  RaceVerdict out{.winner = winner_of(ties, preference), .leader = ties.leader(), .tied = {ties.leader()}};
  std::vector<size_t> rivals;  // who may be as fast as the leader
  for (size_t i = 0; i < racers.size(); ++i) {
    if (i == out.leader || !ties.ran(i)) continue;
    if (!ties.told_apart(i)) rivals.push_back(i);
    if (ties.tied(i)) out.alone = false;
    if (i == out.winner || !ties.told_apart(i) || ties.tied(i)) out.tied.push_back(i);
  }
  std::ranges::stable_sort(out.tied, {}, [&](size_t i) { return behind.of(i).mean; });
  out.leader_regret = out.regret_bound = regret_of_leader(racers, ties, rivals);
  if (out.winner != out.leader) {
    const double slower = std::exp(behind.of(out.winner).mean + behind.error(out.winner, 0.975)) - 1;
    out.regret_bound = (1 + std::max(slower, 0.0)) * (1 + out.leader_regret) - 1;
  }
  out.time_ns = time_spread(racers[out.winner]);
  out.ratio = ratio_spread(racers[out.winner]);
  return out;
}

bool may_leave_to_winner(std::span<const Racer> racers, const RaceVerdict& verdict) {
  if (verdict.winner == verdict.leader) return false;
  const Ties ties(racers);
  const Mean& slower = ties.behind().of(verdict.winner);
  return slower.n >= static_cast<size_t>(kFewestProcesses) &&
         slower.mean + ties.behind().error(verdict.winner, 0.995) < std::log(1 + kTie);
}

}  // namespace tuner
