// Spaces whose every time is known, to score a search without a device.
#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <string>
#include <vector>

#include "templates/space/knob.h"
#include "tuner/search/search_strategy.h"

namespace tuner::testing {

struct MeasuredSpace {
  std::string name;
  ConfigSpace space;
  std::vector<double> time_ns;  // by config index; infinity: the config fails

  double best_ns() const {
    double best = std::numeric_limits<double>::infinity();
    for (double t : time_ns) best = std::min(best, t);
    return best;
  }
  Observation measure(const Candidate& c) const {
    const double t = time_ns[c.config];
    return {.candidate = c, .ok = std::isfinite(t), .time_ns = std::isfinite(t) ? t : 0};
  }
  SearchSpace search_space() const {
    SearchSpace s;
    s.parts.push_back({.template_name = name, .space = &space, .program_features = {}});
    return s;
  }
};

inline double hash_to_unit(uint64_t x) {  // 0..1, fixed for ever
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return static_cast<double>((x ^ (x >> 31)) >> 11) / 9007199254740992.0;
}

// A blocked matrix product as a rough machine would run it: cliffs at the register file and at two caches,
// whole vectors, interactions of pairs of knobs, failures that no constraint foretells, and a fixed
// roughness. `variant` draws the machine. About 10 thousand configs; the fastest is some 5 to 15 times faster
// than the median.
inline MeasuredSpace rugged_space(uint64_t variant) {
  MeasuredSpace m{.name = "rugged" + std::to_string(variant), .space = ConfigSpace(), .time_ns = {}};
  const int64_t registers = variant % 2 == 0 ? 32 : 16;
  const ChoiceKnob mr = m.space.choice("mr", {1, 2, 3, 4, 6, 8, 12, 16}).try_first(4);
  const ChoiceKnob nr = m.space.choice("nr", {1, 2, 3, 4, 6}).try_first(1);
  const ChoiceKnob kc = m.space.choice("kc", {16, 32, 64, 128, 256, 512}).try_first(64);
  const ChoiceKnob mc = m.space.choice("mc", {1, 2, 4, 8, 16, 32}).try_first(4);
  const ChoiceKnob unroll = m.space.choice("unroll", {1, 2, 4, 8}).try_first(1);
  const FlagKnob pack = m.space.flag("pack").try_first(false);
  const CategoryKnob order = m.space.category("order", {"mnk", "nmk", "kmn"}).try_first("mnk");
  static_cast<void>(order);
  static_cast<void>(pack);
  static_cast<void>(kc);
  m.space.require(mr * nr + nr <= registers + 8);
  m.space.require(mr * mc <= 256);
  m.space.require(unroll * mr * nr <= 96);
  const Status sealed = m.space.seal();
  CHECK(sealed.is_ok()) << sealed.message();

  const auto l1 = static_cast<double>(4096 * (1 + variant % 3)),
             l2 = static_cast<double>(65536 * (1 + variant % 2));
  for (ConfigIndex i = 0; i < m.space.size(); ++i) {
    const Config c = m.space.at(i);
    const double r = static_cast<double>(c.at("mr")), n = static_cast<double>(c.at("nr"));
    const double k = static_cast<double>(c.at("kc")), blocks = static_cast<double>(c.at("mc"));
    const double u = static_cast<double>(c.at("unroll"));
    const int64_t walk = c.at("order");
    const bool packed = c.at("pack") != 0;
    double t = 1 + 1 / r + 1.5 / n;                                // loads for each multiply-add
    if (r * n + n + 1 > static_cast<double>(registers)) t *= 2.5;  // spills
    if (r * n < 8) t *= 1 + (8 - r * n) / 6;                       // latency shows
    if (k * n * 8 > l1) t *= 1.6;
    if (r * blocks * k > l2) t *= packed ? 1.3 : 2.1;
    t *= 1 + 12 / k + (packed ? 0.06 : 0.35 * std::log2(1 + k / 64));  // packing pays for long panels
    t *= walk == 0 ? 1 : walk == 1 ? (packed ? 0.93 : 1.2) : 1.5;
    t *= u * r * n > 64 ? 1.5 : 1 + 0.25 / u;  // instruction cache
    const uint64_t pair = static_cast<uint64_t>(r * 64 + u * 7 + n * 1000) + variant * 7919;
    t *= 0.85 + 0.3 * hash_to_unit(pair);
    t *= 0.97 + 0.06 * hash_to_unit(i * 31 + variant * 104729);
    const bool fails = u >= 8 && packed && blocks >= 16;  // no constraint says so
    m.time_ns.push_back(fails ? std::numeric_limits<double>::infinity() : 1000 * t);
  }
  return m;
}

// A wide basin that leads to some 80 % of the optimum, and a small island elsewhere that holds all that is
// faster: its slopes reach two or three knob steps, and between the two everything is slow. About 9 thousand
// configs, some 5 to 15 of them above 85 %.
inline MeasuredSpace island_space(uint64_t variant) {
  MeasuredSpace m{.name = "island" + std::to_string(variant), .space = ConfigSpace(), .time_ns = {}};
  const char* names[] = {"bx", "by", "tx", "ty", "vec"};
  const std::vector<int64_t> values[] = {
      {8, 16, 32, 64, 128, 256}, {1, 2, 4, 8, 16, 32}, {1, 2, 3, 4, 6, 8}, {1, 2, 3, 4, 6, 8}, {1, 2, 4, 8}};
  std::vector<ChoiceKnob> knobs;
  for (size_t k = 0; k < 5; ++k) knobs.push_back(m.space.choice(names[k], values[k]));
  static_cast<void>(m.space.flag("shared"));
  m.space.require(knobs[0] * knobs[1] <= 1024);
  const Status sealed = m.space.seal();
  CHECK(sealed.is_ok()) << sealed.message();

  // Centres in steps of each knob; the island lies across the space from the basin.
  double basin[5], island[5];
  for (size_t k = 0; k < 5; ++k) {
    const double most = static_cast<double>(values[k].size() - 1);
    basin[k] = most * (0.15 + 0.3 * hash_to_unit(variant * 97 + k));
    island[k] = std::floor(most * (0.6 + 0.4 * hash_to_unit(variant * 193 + k + 50)));
  }
  while (values[0][static_cast<size_t>(island[0])] * values[1][static_cast<size_t>(island[1])] > 1024)
    island[1] -= 1;
  for (ConfigIndex i = 0; i < m.space.size(); ++i) {
    const Config c = m.space.at(i);
    double to_basin = 0, to_island = 0;
    for (size_t k = 0; k < 5; ++k) {
      const auto at = std::find(values[k].begin(), values[k].end(), c.at(names[k]));
      const double step = static_cast<double>(at - values[k].begin());
      to_basin += 0.08 * (step - basin[k]) * (step - basin[k]);
      to_island += std::abs(step - island[k]);
    }
    const bool shared = c.at("shared") != 0;
    const double wide = (1.25 + to_basin) * (shared ? 1.1 : 1),
                 narrow = (1 + 0.3 * to_island) * (shared ? 1 : 1.5);
    m.time_ns.push_back(1000 * std::min(wide, narrow) *
                        (0.97 + 0.06 * hash_to_unit(i * 31 + variant * 7907)));
  }
  return m;
}

// Failures that no constraint foretells: a scratchpad of unknown size, in which 10 to 30 % of the configs do
// not fit, and below variant 3 the fastest nearly fill it; besides, one config in fifty fails for reasons of
// its own.
inline MeasuredSpace failing_space(uint64_t variant) {
  MeasuredSpace m = rugged_space(variant);
  m.name = "failing" + std::to_string(variant);
  std::vector<double> bytes;
  for (ConfigIndex i = 0; i < m.space.size(); ++i) {
    const Config c = m.space.at(i);
    const double r = static_cast<double>(c.at("mr")), n = static_cast<double>(c.at("nr"));
    const double k = static_cast<double>(c.at("kc")), blocks = static_cast<double>(c.at("mc"));
    bytes.push_back(k * (n * 8 + r * (c.at("pack") != 0 ? 2 : 1)) + 16 * r * blocks);
    if (variant < 3) m.time_ns[i] /= 1 + 0.12 * std::log2(bytes.back());  // what is kept near is quick
  }
  std::vector<double> sorted = bytes;
  std::sort(sorted.begin(), sorted.end());
  const double share = 0.1 + 0.1 * static_cast<double>(variant % 3);
  const double limit = sorted[static_cast<size_t>((1 - share) * static_cast<double>(sorted.size()))];
  for (ConfigIndex i = 0; i < m.space.size(); ++i)
    if (bytes[i] > limit || hash_to_unit(i * 17 + variant * 611953 + 5) < 0.02)
      m.time_ns[i] = std::numeric_limits<double>::infinity();
  return m;
}

// The synthetic spaces, of several kinds.
inline std::deque<MeasuredSpace> synthetic_spaces() {
  std::deque<MeasuredSpace> spaces;
  for (uint64_t variant = 0; variant < 6; ++variant) spaces.push_back(rugged_space(variant));
  for (uint64_t variant = 0; variant < 3; ++variant) spaces.push_back(island_space(variant));
  for (uint64_t variant = 0; variant < 6; ++variant) spaces.push_back(failing_space(variant));
  return spaces;
}

// Best time of the space / best time found, after each trial. Batches of `batch` results, as a device would
// give them.
inline std::vector<double> share_of_optimum(const MeasuredSpace& m, SearchStrategy& search, size_t trials,
                                            size_t batch = 8) {
  const double optimum = m.best_ns();
  double best = std::numeric_limits<double>::infinity();
  std::vector<double> shares;
  while (shares.size() < trials) {
    const std::vector<Candidate> proposed = search.propose(std::min(batch, trials - shares.size()));
    if (proposed.empty()) break;
    std::vector<Observation> results;
    for (const Candidate& c : proposed) {
      results.push_back(m.measure(c));
      if (results.back().ok) best = std::min(best, results.back().time_ns);
      shares.push_back(optimum / best);
    }
    search.observe(results);
  }
  shares.resize(trials, shares.empty() ? 0 : shares.back());
  return shares;
}

}  // namespace tuner::testing
