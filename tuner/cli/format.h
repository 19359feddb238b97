// Figures as people read them.
#pragma once

#include <cstdint>
#include <string>

#include "db/store.h"
#include "templates/workload.h"

namespace tuner::cli {

// "812 ns", "1.234 us", "56.78 ms", "2.345 s": four digits.
std::string format_time(double ns);
// "1.234 ms (95 %: 1.221 .. 1.240 ms)" of a median and its interval.
std::string format_time(double ns, double low_ns, double high_ns);
// "9 finalists, 3 tie; at most 0.4 % slower than the fastest; 2.135 x sentinel (95 %: 2.118 .. 2.152)" of a
// raced config; "not raced: the time of one trial" else.
std::string format_race(const TunedConfig& tuned);
// "123.4 GFLOP/s", and " (71.2 % of 173.3 peak)" when the peak is known.
std::string format_gflops(int64_t flops, double ns, double peak_gflops);
// That, or "812.3 GB/s" of a workload that is bound by memory: its compulsory traffic over the time.
std::string format_speed(const Workload& workload, double ns, double peak_gflops);
// "2026-11-20 21:10:08 UTC" of Unix microseconds; "-" of 0.
std::string format_utc(int64_t us);
// "2026-11-20T21:10:08.123456Z", for JSON; "" of 0.
std::string iso_utc(int64_t us);
// "118 ok, 6 build_error, 4 run_timeout".
std::string format_outcomes(const std::vector<std::pair<Outcome, int64_t>>& outcomes);

}  // namespace tuner::cli
