// Time: wall time for people and files, also as text; and a steady clock, for limits. (Tests that need a
// clock standing still use tuner/daemon/rooms/clock.h.)
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tuner {

// Microseconds since 1970, UTC.
int64_t wall_time_us();

// Returns "2026-11-20T21:10:08.123456Z"; "" for 0, which stands for no time.
std::string time_text(int64_t us);
// Reads such text, and what people write: "2026-11-20", "2026-11-20 21:10", with fractions of any length and
// "+01:00" at the end. "" gives 0. Returns nothing if it is not a time since 1970 or not a day of the
// calendar.
std::optional<int64_t> time_from_text(std::string_view text);

using SteadyTime = std::chrono::steady_clock::time_point;
double seconds_since(SteadyTime begin);
double ms_since(SteadyTime begin);
SteadyTime seconds_from_now(double seconds);

}  // namespace tuner
