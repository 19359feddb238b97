#include "tuner/verify/published.h"

#include <algorithm>
#include <cmath>

namespace tuner {
namespace {

constexpr double kSameClock = 0.015;  // the pulse may differ by so much; clocks have steps of 3 %
constexpr double kSlowClock = 0.94;

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

bool is_inside(const TunedConfig& published, const RaceRow& now) {
  if (too_disturbed(published, now)) return false;
  const double slower = same_clock(published, now) ? 1 : 1 / clock_now(published, now);
  return published.time_low_ns * std::min(slower, 1.0) <= now.time_ns &&
         now.time_ns <= published.time_high_ns * std::max(slower, 1.0);
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
          {"inside", is_inside(published, now)},
          {"verdict", verdict(published, now)}};
}

}  // namespace tuner
