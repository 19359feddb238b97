// Published times held against the same kernels measured anew: what `tuner verify --times` and the benchmarks
// share.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "compiler_core/base/status.h"
#include "db/records.h"

namespace tuner {

// How fast the machine ran when this was measured again, over when it was published: the pulse's time then
// over now's.
double clock_now(const TunedConfig& published, const RaceRow& now);
// What is published is a time, so the time is judged: whether it is in the 95 % interval. Where the pulse
// says that the core runs at another clock than then (by more than 1.5 %), a time may have followed it
// wholly, in part or, where memory bounds it, not at all: the interval is stretched to what the clock
// explains. Where most turns were disturbed now, and where a ratio does not hold on a core more than 6 %
// slower than then, which may be a steady neighbour instead of a clock, nothing can be judged.
bool too_disturbed(const TunedConfig& published, const RaceRow& now);
bool same_clock(const TunedConfig& published, const RaceRow& now);
bool is_inside(const TunedConfig& published, const RaceRow& now);
const char* verdict(const TunedConfig& published, const RaceRow& now);  // inside, OUTSIDE, disturbed
// Of the interval, as a share of the published time.
double half_width(const TunedConfig& published);
// What was measured again over what was published: of the times, or of the ratios where those are judged.
double to_published(const TunedConfig& published, const RaceRow& now);

// ratio, time_ns, the samples, turns, clock, inside, verdict.
nlohmann::ordered_json remeasured_json(const TunedConfig& published, const RaceRow& now);

}  // namespace tuner
