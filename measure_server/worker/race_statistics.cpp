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
                        .process = racer.process});
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
};
Standing standing(std::span<const Racer> racers) {
  Standing s;
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

// The differences to the leader, of all that ran beside it; what one of them alone says of the machine's noise
// is too little.
class Behind {
 public:
  Behind(std::span<const Racer> racers, const Standing& s) : differences_(racers.size()) {
    double squares = 0;
    for (size_t i = 0; i < racers.size(); ++i) {
      if (i == s.leader || !(s.last[i] || racers[i].as_good_as)) continue;
      differences_[i] = difference(s.times[i], s.times[s.leader]);
      const Mean& d = differences_[i];
      squares += static_cast<double>(d.degrees) * d.deviation * d.deviation;
      degrees_ += d.degrees;
    }
    if (degrees_ > 0) deviation_ = std::sqrt(squares / static_cast<double>(degrees_));
  }
  const Mean& of(size_t i) const { return differences_[i]; }
  // Whether so many differences say what the machine's noise is that two processes of one are enough.
  bool certain() const { return degrees_ >= kEnoughDegrees; }
  // What the mean may be off by, to one side.
  double error(size_t i, double probability) const {
    const Mean& d = differences_[i];
    if (d.n < 2) return std::numeric_limits<double>::infinity();
    return student_quantile(probability, static_cast<double>(std::max<size_t>(degrees_, 1))) *
           std::max(d.deviation, deviation_) / std::sqrt(static_cast<double>(d.n));
  }

 private:
  static constexpr size_t kEnoughDegrees = 6;
  std::vector<Mean> differences_;
  double deviation_ = 0;
  size_t degrees_ = 0;
};

}  // namespace

Spread time_spread(const Racer& racer) { return time_spread(times_of(racer)); }
double other_time_ns(const Racer& racer) {
  return time_spread({.samples_ns = racer.other_ns,
                      .sentinel_ns = racer.other_ns,  // not looked at
                      .process = racer.other_process})
      .value;
}
Spread ratio_spread(const Racer& racer) { return ratio_spread(times_of(racer)); }

namespace {

// Of one that took part in the latest process beside the leader. `certain`: what the mean may be off by, however
// few its processes are, is known from the others.
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
    if (chance == Chance::kOpen && i != s.leader)
      chance = chance_of(behind.of(i), behind.error(i, kCertain), behind.certain());
    found.of.push_back(chance);
  }
  return found;
}

RaceVerdict judge_race(std::span<const Racer> racers) {
  const Standing s = standing(racers);
  const Behind behind(racers, s);
  RaceVerdict out{.winner = s.leader, .tied = {s.leader}};
  for (size_t i = 0; i < racers.size(); ++i) {
    if (i == s.leader || !(s.last[i] || racers[i].as_good_as)) continue;
    if (behind.of(i).mean - behind.error(i, 0.975) <= 0) out.tied.push_back(i);
  }
  std::sort(out.tied.begin() + 1, out.tied.end(),
            [&](size_t a, size_t b) { return behind.of(a).mean < behind.of(b).mean; });
  // Each of the ties may be the fastest, so each bound errs with an equal share of 5 %.
  const size_t others = out.tied.size() - 1;
  const double level = others <= 1 ? 0.95 : others == 2 ? 0.975 : 0.995;
  const auto bound = [&](size_t i) { return std::exp(behind.error(i, level) - behind.of(i).mean) - 1; };
  for (size_t k = 1; k < out.tied.size(); ++k) {
    // Who left as good as another one is as far from the winner as that one, and kAsGood more at most: that says
    // more than the few processes that it had beside the winner itself.
    double least = bound(out.tied[k]), more = 0;
    for (size_t i = out.tied[k]; racers[i].as_good_as && more < least;) {
      i = *racers[i].as_good_as;
      more += kAsGood;
      least = std::min(least, more + (i == s.leader ? 0 : bound(i)));
      if (i == s.leader) break;
    }
    out.regret_bound = std::max(out.regret_bound, least);
  }
  out.time_ns = time_spread(racers[s.leader]);
  out.ratio = ratio_spread(racers[s.leader]);
  return out;
}

}  // namespace tuner
