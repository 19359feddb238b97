#include "measure_server/worker/race_statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace tuner {
namespace {

// What a machine does between one minute and the next that processes within seconds of each other do not
// show: on a shared two-core host ratios of the same kernel moved by this much (95 %).
constexpr double kDriftHalfWidth = 0.012;

// Student's t: quantiles 0.95, 0.975 and 0.995 by degrees of freedom from 1; the last row serves all above
// (it is wider than they need).
enum Level { k95, k975, k995 };
constexpr std::array<std::array<double, 3>, 15> kStudent = {{{6.314, 12.706, 63.657},
                                                             {2.920, 4.303, 9.925},
                                                             {2.353, 3.182, 5.841},
                                                             {2.132, 2.776, 4.604},
                                                             {2.015, 2.571, 4.032},
                                                             {1.943, 2.447, 3.707},
                                                             {1.895, 2.365, 3.499},
                                                             {1.860, 2.306, 3.355},
                                                             {1.833, 2.262, 3.250},
                                                             {1.812, 2.228, 3.169},
                                                             {1.796, 2.201, 3.106},
                                                             {1.782, 2.179, 3.055},
                                                             {1.771, 2.160, 3.012},
                                                             {1.761, 2.145, 2.977},
                                                             {1.753, 2.131, 2.947}}};

// A quarter of the values are below; between two of them it is interpolated.
double lower_quartile(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  const double at = static_cast<double>(v.size() - 1) / 4;
  const auto below = static_cast<size_t>(at);
  if (below + 1 == v.size()) return v[below];
  return v[below] + (at - static_cast<double>(below)) * (v[below + 1] - v[below]);
}

// Mean of what is left after a fifth is taken off each end, and the deviation of a single value: of the
// values with those ends drawn in, over the share left.
struct Trimmed {
  double mean = 0, deviation = 0;
  size_t n = 0, freedom = 0;
  double t(Level level) const { return kStudent[std::clamp<size_t>(freedom, 1, kStudent.size()) - 1][level]; }
  double of_mean() const { return deviation / std::sqrt(static_cast<double>(n)); }
};
Trimmed trimmed(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  Trimmed out{.n = v.size()};
  const size_t g = v.size() / 5;
  for (size_t i = g; i + g < v.size(); ++i) out.mean += v[i];
  out.mean /= static_cast<double>(v.size() - 2 * g);
  out.freedom = v.size() - 2 * g - 1;
  if (out.freedom == 0) return out;
  double sum = 0, squares = 0;
  for (size_t i = 0; i < v.size(); ++i) sum += v[std::clamp(i, g, v.size() - 1 - g)];
  const double middle = sum / static_cast<double>(v.size());
  for (size_t i = 0; i < v.size(); ++i) {
    const double d = v[std::clamp(i, g, v.size() - 1 - g)] - middle;
    squares += d * d;
  }
  out.deviation = std::sqrt(squares / static_cast<double>(v.size() - 1)) /
                  (1 - 2 * static_cast<double>(g) / static_cast<double>(v.size()));
  return out;
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
  const Trimmed t = trimmed(std::move(logs));
  return {t.mean,
          std::hypot(t.t(k975) * t.deviation * std::sqrt(1 + 1 / static_cast<double>(t.n)), kDriftHalfWidth)};
}

// How much slower a is than b, process by process (logarithms).
Trimmed difference(const std::map<int, double>& a, const std::map<int, double>& b) {
  std::vector<double> d;
  for (const auto& [process, log] : a)
    if (const auto other = b.find(process); other != b.end()) d.push_back(log - other->second);
  return d.empty() ? Trimmed{} : trimmed(std::move(d));
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
    const double mean = trimmed(std::move(logs)).mean;
    if (any && mean >= best) continue;
    any = true;
    best = mean;
    s.leader = i;
  }
  return s;
}

bool certainly_slower(const Trimmed& d) {
  // A process is seldom unlucky by so much, and a race has better things to do than to make sure.
  static const double kMuchSlower = std::log(1.30), kSlower = std::log(1.15);
  if (d.n == 1 || d.n == 2) return d.mean > (d.n == 1 ? kMuchSlower : kSlower);
  return d.n >= static_cast<size_t>(kFewestProcesses) && d.mean - d.t(k995) * d.of_mean() > 0;
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
  std::vector<Trimmed> behind(racers.size());
  for (size_t i = 0; i < racers.size(); ++i) {
    if (i == s.leader || !s.last[i]) continue;
    behind[i] = difference(s.times[i], s.times[s.leader]);
    if (behind[i].mean - behind[i].t(k975) * behind[i].of_mean() <= 0) out.tied.push_back(i);
  }
  std::sort(out.tied.begin() + 1, out.tied.end(),
            [&](size_t a, size_t b) { return behind[a].mean < behind[b].mean; });
  // Each of the ties may be the fastest, so each bound errs with an equal share of 5 %.
  const size_t others = out.tied.size() - 1;
  const Level level = others <= 1 ? k95 : others == 2 ? k975 : k995;
  for (size_t k = 1; k < out.tied.size(); ++k) {
    const Trimmed& d = behind[out.tied[k]];
    out.regret_bound = std::max(out.regret_bound, std::exp(d.t(level) * d.of_mean() - d.mean) - 1);
  }
  out.time_ns = time_spread(racers[s.leader]);
  out.ratio = ratio_spread(racers[s.leader]);
  return out;
}

}  // namespace tuner
