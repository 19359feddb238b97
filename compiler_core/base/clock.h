// Time: of the wall, for people and files, and as text; of a clock that never goes back, for limits.
// (What a test has to hold still has a clock of its own: tuner/daemon/clock.h.)
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tuner {

// Microseconds since 1970, UTC.
int64_t wall_time_us();

// "2026-11-20T21:10:08.123456Z"; "" of 0, which stands for no time.
std::string time_text(int64_t us);
// The same back, and what people write: "2026-11-20", "2026-11-20 21:10", fractions of any length, "+01:00"
// behind it. 0 of "". Nothing: it is no time since 1970, or no day of the calendar.
std::optional<int64_t> time_from_text(std::string_view text);

using SteadyTime = std::chrono::steady_clock::time_point;
double seconds_since(SteadyTime begin);
double ms_since(SteadyTime begin);
SteadyTime seconds_from_now(double seconds);

}  // namespace tuner
