// Says which times can be, once for everyone who takes them from elsewhere: importers, messages of workers
// and the store. What is in a database already is read as it is.
#pragma once

#include <string_view>

namespace tuner {

// The shortest and the longest time of one call, in nanoseconds. A thousandth of a nanosecond is a 200th of a
// clock tick at 5 GHz, and light goes a third of a millimetre in it. 1e15 ns are 11.6 days; a job file lets a
// candidate run for one day at most. What lies outside is a mistaken unit or no time at all.
inline constexpr double kLeastCallNs = 1e-3, kMostCallNs = 1e15;
// As messages say it.
inline constexpr std::string_view kPlausibleCall = "0.001 to 1e+15 ns a call";

constexpr bool is_plausible_call(double ns) { return ns >= kLeastCallNs && ns <= kMostCallNs; }  // false: NaN

// The same for a time of a race, where 0 means that there is none.
constexpr bool is_plausible_or_none(double ns) { return ns == 0 || is_plausible_call(ns); }

}  // namespace tuner
