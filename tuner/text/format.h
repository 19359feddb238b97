// Formats figures for people.
#pragma once

#include <cstdint>
#include <string>

#include "compiler_core/target_family.h"
#include "db/records.h"
#include "templates/workload/workload.h"

namespace tuner {

// The value with so many digits behind the point: fixed(2.135, 1) is "2.1".
std::string fixed(double value, int digits);
// "812 ns", "1.234 us", "56.78 ms", "2.345 s": four digits.
std::string format_time(double ns);
// A median with its interval: "1.234 ms (95 %: 1.221 .. 1.240 ms)".
std::string format_time(double ns, double low_ns, double high_ns);
// "certified" or "not certified: why"; also the time with the other kind of constants if known: "1.62 ms with
// constants cold".
std::string format_certainty(const TunedConfig& tuned);
// Speed relative to the default config: "1.87 times as fast as the default config (1.762 ms)", or "not
// known".
std::string format_gain(const TunedConfig& tuned);
// Returns the roofline's time divided by the kernel's, from the measured peak and bandwidth of its machine;
// 0: not known. Above 1 for algorithms that do less arithmetic than the workload says.
double roofline_share(const Workload& workload, const TunedConfig& tuned);
// "245.9 GFLOP/s (92.1 % of the vector unit's peak of 267.0), 92 % of the roofline"
std::string format_speed(const Workload& workload, const TunedConfig& tuned);
// Who won where several tie: "the stored answer stays"; empty where one finalist was faster than all others.
std::string format_tie(const TunedConfig& tuned);
// For a race that decided: "9 finalists, 3 tie: the smallest code won the tie; at most 0.4 % slower than the fastest; 12 of 310
// turns disturbed and taken anew; 2.135 x pulse (95 %: 2.118 .. 2.152)". Otherwise says that there was none.
std::string format_race(const TunedConfig& tuned);
// Whose peak stands beside a time: "vector unit's"; "int8" where a CPU's fastest unit for that type may be another one;
// of a device as its family says.
std::string peak_owner(DType dtype, const TargetFamily& family);
// Unix microseconds as "2026-11-20 21:10:08 UTC"; 0 as "-".
std::string format_utc(int64_t us);
// Unix microseconds for JSON, "2026-11-20T21:10:08.123456Z"; 0 as "".
std::string iso_utc(int64_t us);
// "118 ok, 6 build_error, 4 run_timeout".
std::string format_outcomes(const std::vector<std::pair<Outcome, int64_t>>& outcomes);

}  // namespace tuner
