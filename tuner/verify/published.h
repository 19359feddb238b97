// Compares published times with the same kernels measured anew, for `tuner verify --times` and the
// benchmarks.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "compiler_core/base/status.h"
#include "db/records.h"

namespace tuner {

// Returns how fast the core runs now, relative to when the time was published: the pulse's time then over
// now's.
double clock_now(const TunedConfig& published, const RaceRow& now);
// Returns how slow the memory that cores share is now, relative to then: the memory sentinel's time now over
// then's. 1 if it was not timed, as for kernels whose operands fit the core's own caches.
double memory_now(const TunedConfig& published, const RaceRow& now);
// Judges the new time: is it in the published 95 % interval? If the pulse says that the core runs at another
// clock (by more than 1.5 %), a time may have followed the clock fully, in part or, if memory bounds it, not
// at all. The interval is then stretched by what the clock explains. The same goes for shared memory that is
// faster or slower than then (by more than 3 %). Nothing can be judged if most turns were disturbed now, or if a
// ratio does not hold on a core that is more than 6 % slower than then, which may be a steady neighbour instead of a
// clock.
bool too_disturbed(const TunedConfig& published, const RaceRow& now);
bool same_clock(const TunedConfig& published, const RaceRow& now);
bool same_memory(const TunedConfig& published, const RaceRow& now);
bool is_inside(const TunedConfig& published, const RaceRow& now);
const char* verdict(const TunedConfig& published, const RaceRow& now);  // inside, OUTSIDE, disturbed
// Half of the interval, as a share of the published time.
double half_width(const TunedConfig& published);
// The new value over the published one: of the times, or of the ratios if those are judged.
double to_published(const TunedConfig& published, const RaceRow& now);

// What the verdict went by beside the interval, for a line of text, with a comma in front; empty: nothing.
std::string judged_by(const TunedConfig& published, const RaceRow& now);

// Has the keys ratio, time_ns, samples, turns, clock, memory, inside, verdict.
nlohmann::ordered_json remeasured_json(const TunedConfig& published, const RaceRow& now);

}  // namespace tuner
