#include "tuner/daemon/tables/time_limit.h"

#include <algorithm>
#include <cmath>

namespace tuner {
namespace {

constexpr double kMostForRaces = 3;  // one part in so many of the time limit, while there are trials to make
constexpr double kShortestRaceS = 0.001;  // one heat; 0 would mean the default

}  // namespace

TimeLimit::TimeLimit(double limit_s, int64_t now_ms, double used_s)
    : limit_s_(std::max(limit_s, 0.0)),
      deadline_ms_(now_ms + std::llround(1000 * (limit_s_ - std::clamp(used_s, 0.0, limit_s_)))),
      stored_ms_(now_ms) {}

double TimeLimit::used_s(int64_t now_ms) const {
  return limit_s_ - static_cast<double>(deadline_ms_ - now_ms) / 1000;
}

bool TimeLimit::is_to_be_stored(int64_t now_ms) const {
  return exists() && static_cast<double>(now_ms - stored_ms_) >= std::max(1'000.0, 1'000 * limit_s_ / 50);
}

bool TimeLimit::ends_search(int64_t races, bool untried, int64_t now_ms) const {
  if (!exists()) return false;
  const double wanted_ms = untried ? 0 : static_cast<double>(races) * sum_ms_ / races_;
  return now_ms >= deadline_ms_ - static_cast<int64_t>(std::min(wanted_ms, 1000 * limit_s_ / kMostForRaces));
}

double TimeLimit::race_limit_s(int64_t races, int racers, bool searching, double most_s,
                               int64_t now_ms) const {
  auto left_ms = static_cast<double>(deadline_ms_ - now_ms);
  if (searching) left_ms = std::min(left_ms, 1000 * limit_s_ / kMostForRaces);
  const double heat_ms = late_ms_ / late_races_;
  if (left_ms < heat_ms) return 0;
  const double share_ms = left_ms * racers / static_cast<double>(std::max<int64_t>(races, 1));
  return std::clamp((share_ms - heat_ms) / 1000, kShortestRaceS, std::max(most_s, kShortestRaceS));
}

void TimeLimit::count_race(double took_ms, double limit_s) {
  ++races_;
  sum_ms_ += took_ms;
  if (took_ms < 1000 * limit_s) return;
  ++late_races_;
  late_ms_ += took_ms - 1000 * limit_s;
}

}  // namespace tuner
