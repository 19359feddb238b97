// The limits of jobs and measurements: one table for every door that takes such numbers. Job files, the
// command line, messages of clients, stored jobs, packs and the runner read it, so what one door lets in no
// later one refuses.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "compiler_core/base/status.h"

namespace tuner {

struct MeasureLimit {
  std::string_view name;  // of the key in a job file, and of the field in a message
  double least, most;
  bool above = false;                         // values lie above `least`, which is none itself
  bool whole = false;                         // integers
  constexpr bool holds(double value) const {  // false: NaN
    return (above ? value > least : value >= least) && value <= most;
  }
  // "expected a number above 0 and at most 600", "expected an integer from 1 to 1000".
  std::string expected() const {
    const char* const kind = whole ? "an integer" : "a number";
    const auto text = [&](double v) { return whole ? str(static_cast<int64_t>(v)) : str(v); };
    return above ? str("expected ", kind, " above ", text(least), " and at most ", text(most))
                 : str("expected ", kind, " from ", text(least), " to ", text(most));
  }
};

// One candidate holds its worker for as long as this table says, whatever its tenant asks for.
inline constexpr MeasureLimit kMinRepeatMs{"min_repeat_ms", 0, 60'000, true};
inline constexpr MeasureLimit kRepeats{"repeats", 1, 1'000, false, true};
inline constexpr MeasureLimit kPrecision{"precision", 0, 1};
inline constexpr MeasureLimit kBuildTimeoutS{"build_timeout_s", 0, 600, true};
inline constexpr MeasureLimit kRunTimeoutS{"run_timeout_s", 0, 600, true};
inline constexpr MeasureLimit kMemoryLimitBytes{"memory_limit_bytes", 1 << 20, 1LL << 40, false, true};
inline constexpr MeasureLimit kCutFactor{"cut_factor", -1e6, 1e6};  // negative: never
// Of a race; a heat of it may take each finalist's run_timeout_s.
inline constexpr MeasureLimit kRaceProcesses{"processes", 1, 1'000, false, true};
inline constexpr MeasureLimit kRaceRounds{"rounds", 1, 500, false, true};
inline constexpr MeasureLimit kRaceLimitS{"limit_s", 0, 600, true};
inline constexpr MeasureLimit kRaceFinalists{"finalists", 1, 64, false, true};
// Of a job.
inline constexpr MeasureLimit kJobTrials{"trials", 1, 10'000'000, false, true};
inline constexpr MeasureLimit kJobUses{"uses", 1, 1'000'000'000, false, true};
inline constexpr MeasureLimit kJobTimeLimitS{"time_limit_s", 0, 1e9};

// Of a lease: what it may take besides its candidate (reference answers, devices that start); how long it may
// lie at its worker, behind others.
inline constexpr double kLeaseSlackS = 900, kLeaseWaitS = 3'600;

}  // namespace tuner
