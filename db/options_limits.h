// Holds the options of a measurement against the table of limits (compiler_core/base/measure_limits.h).
#pragma once

#include <algorithm>
#include <string_view>
#include <type_traits>

#include "compiler_core/base/measure_limits.h"
#include "db/records.h"

namespace tuner {

// Calls visit(limit, value) for each number that has one.
template <class Options, class Visit>
requires std::is_same_v<std::remove_const_t<Options>, MeasureOptions>
void each_limit(Options& o, const Visit& visit) {
  visit(kMinRepeatMs, o.min_repeat_ms);
  visit(kRepeats, o.repeats);
  visit(kPrecision, o.precision);
  visit(kBuildTimeoutS, o.build_timeout_s);
  visit(kRunTimeoutS, o.run_timeout_s);
  visit(kMemoryLimitBytes, o.memory_limit_bytes);
  visit(kCutFactor, o.cut_factor);
}
template <class Options, class Visit>
requires std::is_same_v<std::remove_const_t<Options>, RaceOptions>
void each_limit(Options& o, const Visit& visit) {
  visit(kMinRepeatMs, o.min_repeat_ms);
  visit(kRaceProcesses, o.processes);
  visit(kRaceRounds, o.rounds);
  visit(kRaceLimitS, o.limit_s);
}

// The first option that is out of its limits, in one line that begins with `path`. `zero_is_default`: 0 is
// none.
template <class Options>
Status within_limits(const Options& options, std::string_view path, bool zero_is_default = false) {
  Status status;
  each_limit(options, [&](const MeasureLimit& limit, auto value) {
    if (zero_is_default && value == 0) return;
    if (status.is_ok() && !limit.holds(static_cast<double>(value)))
      status = invalid_argument(path, ".", limit.name, ": ", limit.expected(), ", found ", value);
  });
  return status;
}

// The options of a job that an earlier release let in: what lies beyond a bound is brought to it.
template <class Options>
Options limited(Options options) {
  each_limit(options, [](const MeasureLimit& limit, auto& value) {
    const double within = std::clamp(static_cast<double>(value), limit.least, limit.most);
    if (within != static_cast<double>(value))
      value = static_cast<std::remove_reference_t<decltype(value)>>(within);
  });
  return options;
}

}  // namespace tuner
