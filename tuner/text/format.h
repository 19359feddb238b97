// Formats figures for people.
#pragma once

#include <cstdint>
#include <string>

#include "compiler_core/target_family.h"
#include "db/records.h"
#include "templates/workload/workload.h"

namespace tuner {

// printf to the end of `out`.
__attribute__((format(printf, 2, 3))) void append_format(std::string& out, const char* format, ...);
// The value with so many digits behind the point: fixed(2.135, 1) is "2.1".
std::string fixed(double value, int digits);
// "812 ns", "1.234 us", "56.78 ms", "2.345 s": four digits.
std::string format_time(double ns);
// A median with its interval: "1.234 ms (95 %: 1.221 .. 1.240 ms)"; "1.234 ms (exact)" of one without width.
std::string format_time(double ns, double low_ns, double high_ns);
// Returns the least time that the measured peak and bandwidth of its machine allow for direct sums; 0: not
// known.
double roofline_ns(const Workload& workload, const TunedConfig& tuned);
// That divided by the kernel's time. Above 1 for algorithms that do less arithmetic than the workload says.
double roofline_share(const Workload& workload, const TunedConfig& tuned);
// "245.9 GFLOP/s (92.1 % of the vector unit's peak of 267.0)"; where sums of padding need not be done, the
// share is of what remains: "804.2 GFLOP/s, 729.2 without padding (267.8 % of the vector unit's peak of
// 272.3)".
std::string format_speed(const Workload& workload, const TunedConfig& tuned);
// "92 % of the roofline (1.121 ms)", "2.68x the roofline of direct sums (48.15 us)": the time in brackets
// over the kernel's. Empty: not known.
std::string format_roofline(const Workload& workload, const TunedConfig& tuned);
// Who won where several tie: "the stored answer stays"; empty where one finalist was faster than all others.
std::string format_tie(const TunedConfig& tuned);
// For a race that decided: "9 finalists, 3 tie: the smallest code won the tie; at most 0.4 % slower than the
// fastest; 12 of 310 turns disturbed and taken anew; 2.135 x pulse (95 %: 2.118 .. 2.152)". Otherwise says
// that there was none.
std::string format_race(const TunedConfig& tuned);
// Whose peak stands beside a time: "vector unit's"; "int8" where a CPU's fastest unit for that type may be
// another one; of a device as its family says.
std::string peak_owner(DType dtype, const TargetFamily& family);
// Unix microseconds as "2026-11-20 21:10:08 UTC"; 0 as "-".
std::string format_utc(int64_t us);
// Unix microseconds for JSON, "2026-11-20T21:10:08.123456Z"; 0 as "".
std::string iso_utc(int64_t us);
// "118 ok, 6 build_error, 4 run_timeout".
std::string format_outcomes(const std::vector<std::pair<Outcome, int64_t>>& outcomes);

}  // namespace tuner
