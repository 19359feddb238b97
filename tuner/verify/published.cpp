#include "tuner/verify/published.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace tuner {
namespace {

constexpr double kSameClock = 0.015;  // the pulse may differ by so much; clocks have steps of 3 %
constexpr double kSlowClock = 0.94;
constexpr double kSameMemory = 0.03;  // calm levels of one machine lie within so much

}  // namespace

double clock_now(const TunedConfig& published, const RaceRow& now) {
  if (published.ratio <= 0 || now.ratio <= 0) return 1;
  // Another harness divided by something else.
  if (published.environment.harness_abi != now.environment.harness_abi) return 1;
  return published.time_ns / published.ratio / (now.time_ns / now.ratio);
}

bool too_disturbed(const TunedConfig& published, const RaceRow& now) {
  if (2 * now.disturbed > now.turns - now.discarded) return true;
  return clock_now(published, now) < kSlowClock && now.ratio > published.ratio_high;
}

bool same_clock(const TunedConfig& published, const RaceRow& now) {
  return std::fabs(clock_now(published, now) - 1) <= kSameClock;
}

double memory_now(const TunedConfig& published, const RaceRow& now) {
  const double then_ns = published.memory_ns, now_ns = raced_memory_ns(now.finalists.at(0));
  return then_ns > 0 && now_ns > 0 ? now_ns / then_ns : 1;
}

bool same_memory(const TunedConfig& published, const RaceRow& now) {
  return std::fabs(memory_now(published, now) - 1) <= kSameMemory;
}

bool is_inside(const TunedConfig& published, const RaceRow& now) {
  if (too_disturbed(published, now)) return false;
  const double by_clock = same_clock(published, now) ? 1 : 1 / clock_now(published, now);
  const double by_memory = same_memory(published, now) ? 1 : memory_now(published, now);
  // Not their product: the sentinel follows the clock, too.
  return published.time_low_ns * std::min({by_clock, by_memory, 1.0}) <= now.time_ns &&
         now.time_ns <= published.time_high_ns * std::max({by_clock, by_memory, 1.0});
}

const char* verdict(const TunedConfig& published, const RaceRow& now) {
  return is_inside(published, now) ? "inside" : too_disturbed(published, now) ? "disturbed" : "OUTSIDE";
}

double half_width(const TunedConfig& published) {
  return published.time_ns > 0 ? (published.time_high_ns - published.time_low_ns) / 2 / published.time_ns : 0;
}

double to_published(const TunedConfig& published, const RaceRow& now) {
  return same_clock(published, now) ? now.time_ns / published.time_ns : now.ratio / published.ratio;
}

std::string judged_by(const TunedConfig& published, const RaceRow& now) {
  if (too_disturbed(published, now)) return ", the machine is too disturbed to tell";
  std::string by;
  if (!same_clock(published, now)) by += ", the clock has changed: judged by it";
  if (same_memory(published, now)) return by;
  const double slower = memory_now(published, now) - 1;
  char text[80];
  std::snprintf(text, sizeof text, ", shared memory is %.0f %% %s than then: judged by it",
                100 * std::fabs(slower), slower > 0 ? "slower" : "faster");
  return by + text;
}

nlohmann::ordered_json remeasured_json(const TunedConfig& published, const RaceRow& now) {
  return {{"ratio", now.ratio},
          {"time_ns", now.time_ns},
          {"samples_ns", now.finalists[0].samples_ns},
          {"sentinel_ns", now.finalists[0].sentinel_ns},
          {"memory_ns", now.finalists[0].memory_ns},
          {"process", now.finalists[0].process},
          {"turns", now.turns},
          {"discarded", now.discarded},
          {"disturbed", now.disturbed},
          {"certified", now.certified},
          {"clock", clock_now(published, now)},
          {"memory", memory_now(published, now)},
          {"inside", is_inside(published, now)},
          {"verdict", verdict(published, now)}};
}

}  // namespace tuner
