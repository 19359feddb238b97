#include "measure_server/worker/race_statistics.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "compiler_core/base/statistics.h"

namespace tuner {
namespace {

// What a machine does between one minute and the next that processes within seconds of each other do not
// show: on a shared two-core host ratios of the same kernel moved by this much (95 %).
constexpr double kDriftHalfWidth = 0.012;

// Student's t for the deviation of a trimmed mean. One value has none: 0 times whatever this is.
double student(const Mean& mean, double probability) {
  return student_quantile(probability, static_cast<double>(std::max<size_t>(mean.degrees, 1)));
}

// Process -> logarithm of the time there, or of its ratio to the pulse's.
std::map<int, double> by_process(const Racer& racer, bool ratio) {
  std::map<int, std::vector<double>> values;
  for (size_t i = 0; i < racer.samples_ns.size(); ++i)
    values[racer.process[i]].push_back(racer.samples_ns[i] / (ratio ? racer.sentinel_ns[i] : 1));
  std::map<int, double> out;
  for (auto& [process, v] : values) out[process] = std::log(lower_quartile(std::move(v)));
  return out;
}

// Mean and half-width, of logarithms.
struct LogSpread {
  double mean = 0, half = 0;
  Spread at(double half_width) const {
    return {std::exp(mean), std::exp(mean - half_width), std::exp(mean + half_width)};
  }
};
LogSpread spread(const Racer& racer, bool ratio) {
  std::vector<double> logs;
  for (const auto& [process, log] : by_process(racer, ratio)) logs.push_back(log);
  const Mean t = trimmed_mean_of(std::move(logs));
  return {t.mean, std::hypot(student(t, 0.975) * t.deviation * std::sqrt(1 + 1 / static_cast<double>(t.n)),
                             kDriftHalfWidth)};
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
    s.times.push_back(by_process(r, /*ratio=*/false));
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

bool certainly_slower(const Mean& d) {
  // A process is seldom unlucky by so much, and a race has better things to do than to make sure.
  static const double kMuchSlower = std::log(1.30), kSlower = std::log(1.15);
  if (d.n == 1 || d.n == 2) return d.mean > (d.n == 1 ? kMuchSlower : kSlower);
  return d.n >= static_cast<size_t>(kFewestProcesses) &&
         d.mean - student(d, 0.995) * d.deviation_of_mean() > 0;
}

}  // namespace

Spread time_spread(const Racer& racer) {
  if (racer.samples_ns.empty()) return {};
  const LogSpread time = spread(racer, /*ratio=*/false);
  return time.at(std::min(time.half, spread(racer, /*ratio=*/true).half));
}
double other_time_ns(const Racer& racer) {
  return time_spread({.samples_ns = racer.other_ns,
                      .sentinel_ns = racer.other_ns,  // not looked at
                      .process = racer.other_process})
      .value;
}
Spread ratio_spread(const Racer& racer) {
  if (racer.samples_ns.empty()) return {};
  const LogSpread ratio = spread(racer, /*ratio=*/true);
  return ratio.at(ratio.half);
}

std::vector<bool> still_racing(std::span<const Racer> racers) {
  const Standing s = standing(racers);
  std::vector<bool> still = s.last;
  for (size_t i = 0; i < racers.size(); ++i)
    if (still[i] && i != s.leader && certainly_slower(difference(s.times[i], s.times[s.leader])))
      still[i] = false;
  return still;
}

RaceVerdict judge_race(std::span<const Racer> racers) {
  const Standing s = standing(racers);
  RaceVerdict out{.winner = s.leader, .tied = {s.leader}};
  std::vector<Mean> behind(racers.size());
  for (size_t i = 0; i < racers.size(); ++i) {
    if (i == s.leader || !s.last[i]) continue;
    behind[i] = difference(s.times[i], s.times[s.leader]);
    if (behind[i].mean - student(behind[i], 0.975) * behind[i].deviation_of_mean() <= 0)
      out.tied.push_back(i);
  }
  std::sort(out.tied.begin() + 1, out.tied.end(),
            [&](size_t a, size_t b) { return behind[a].mean < behind[b].mean; });
  // Each of the ties may be the fastest, so each bound errs with an equal share of 5 %.
  const size_t others = out.tied.size() - 1;
  const double level = others <= 1 ? 0.95 : others == 2 ? 0.975 : 0.995;
  for (size_t k = 1; k < out.tied.size(); ++k) {
    const Mean& d = behind[out.tied[k]];
    out.regret_bound =
        std::max(out.regret_bound, std::exp(student(d, level) * d.deviation_of_mean() - d.mean) - 1);
  }
  out.time_ns = time_spread(racers[s.leader]);
  out.ratio = ratio_spread(racers[s.leader]);
  return out;
}

}  // namespace tuner
