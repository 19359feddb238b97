// Figures as people read them.
#pragma once

#include <cstdint>
#include <string>

#include "db/records.h"
#include "templates/workload/workload.h"

namespace tuner {

// "812 ns", "1.234 us", "56.78 ms", "2.345 s": four digits.
std::string format_time(double ns);
// "1.234 ms (95 %: 1.221 .. 1.240 ms)" of a median and its interval.
std::string format_time(double ns, double low_ns, double high_ns);
// "certified" or "not certified: why"; where known, the time with constants the other way: "1.62 ms with
// constants cold".
std::string format_certainty(const TunedConfig& tuned);
// How many times as fast as the default config, "1.87 times as fast as the default config (1.762 ms)"; "not
// known".
std::string format_gain(const TunedConfig& tuned);
// The part of the time that no kernel of this machine could be faster in, by its measured peak and bandwidth;
// 0: not known. Above 1 for algorithms that do less arithmetic than the workload says.
double roofline_share(const Workload& workload, const TunedConfig& tuned);
// "245.9 GFLOP/s (92.1 % of the vector unit's peak of 267.0), 92 % of the roofline"
std::string format_speed(const Workload& workload, const TunedConfig& tuned);
// "9 finalists, 3 tie; at most 0.4 % slower than the fastest; 12 of 310 turns disturbed and taken anew; 2.135
// x pulse (95 %: 2.118 .. 2.152)" of a race that decided; else that there is none.
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

}  // namespace tuner
