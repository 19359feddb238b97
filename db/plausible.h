// Says which times and races can be, once for everyone who takes them from elsewhere: importers, messages of
// workers and the store. What is in a database already is read as it is.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "compiler_core/base/status.h"
#include "db/records.h"

namespace tuner {

// The shortest and the longest time of one call, in nanoseconds. A thousandth of a nanosecond is a 200th of a
// clock tick at 5 GHz, and light goes a third of a millimetre in it. 1e15 ns are 11.6 days; a job file lets a
// candidate run for ten minutes at most. What lies outside is a mistaken unit or no time at all.
inline constexpr double kLeastCallNs = 1e-3, kMostCallNs = 1e15;
// As messages say it.
inline constexpr std::string_view kPlausibleCall = "0.001 to 1e+15 ns a call";

constexpr bool is_plausible_call(double ns) { return ns >= kLeastCallNs && ns <= kMostCallNs; }  // false: NaN

// The same for a time of a race, where 0 means that there is none.
constexpr bool is_plausible_or_none(double ns) { return ns == 0 || is_plausible_call(ns); }

// How the race contradicts its own samples, for people; nothing if it does not. Its winner's time lies within
// the winner's samples and within its interval. A certified winner is not slower in each of its samples than
// another finalist in each of its own, unless that one left the race earlier.
std::optional<std::string> why_contradicts_samples(const RaceRow& race);

}  // namespace tuner
