// Verification at first use: a kernel that was chosen elsewhere is raced against its default config once on
// the machine where it runs, before the application gets it.
//
// Both compute the same random inputs. Their answers may differ by what each may be off (tolerance.h). Then
// they are timed in turn by the runner's sampling (measure_server/runner/sampling.h): in each round both have
// a turn, the order alternates, and a turn's time is the lower quartile of its samples.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "deploy/runtime/function.h"
#include "templates/workload/tolerance.h"

namespace tuner::runtime {

enum class Verdict : uint8_t {
  kKept = 1,   // it is right, and not certainly slower than its default config
  kSlower,     // certainly slower, by kMuchSlower at least
  kWrong,      // it and its default config give different answers
  kUndecided,  // not raced to the end; `why` tells
};
std::string_view verdict_name(Verdict verdict);  // "kept", "slower", "wrong", "undecided"
std::optional<Verdict> verdict_from_name(std::string_view name);

struct FirstUse {
  Verdict verdict = Verdict::kUndecided;
  double kernel_ns = 0, default_ns = 0;  // medians of the turns; 0: not timed
  std::string why;                       // one line, of wrong and undecided
  bool passing = false;  // undecided for a reason that may be gone next time: not worth keeping
};

// One process shows less than a race of several: where its pages lie may cost a kernel some per cent. So a
// smaller difference is no reason to fall back; races of the farm give up a finalist by the same rule after
// one process.
inline constexpr double kMuchSlower = 1.10;

// Whether two kernels may give these values of one element. Nothing finite is like an infinity or no number.
bool are_alike(double a, double b, const Tolerance& tolerance);

// Times of one round, a turn of each.
struct Round {
  double kernel_ns = 0, default_ns = 0;
};
// Slower: by kMuchSlower in the trimmed mean of the rounds, and slower at all at 99.5 % confidence. Kept:
// otherwise, and if `finished` is false only if the rounds rule out kMuchSlower at 99.5 %. Undecided: fewer
// than kFewestRounds, or not finished and neither holds yet.
FirstUse judge_rounds(std::span<const Round> rounds, bool finished);
inline constexpr int kFewestRounds = 4, kMostRounds = 16;

struct FirstUseLimits {
  double race_ns = 2e9;                        // timing both ends after this
  int64_t operand_bytes = int64_t{512} << 20;  // more are not made
};

// Gives both a turn a round, `turn(true)` to the kernel, until the rounds decide, kMostRounds are over, or
// `in_time` says no. A turn returns the time of a call in nanoseconds; its error ends the race (wrong: the
// kernel failed; undecided: the default did).
FirstUse race_rounds(const std::function<Result<double>(bool of_kernel)>& turn,
                     const std::function<bool()>& in_time);

// Races `kernel` and `plain`, functions of the same workload; `tolerance`: what their answers may differ by.
// Takes about 0.3 s, and may exceed limits.race_ns by one turn. One race at a time in a process: another
// waits, as long as a race may take, and is then undecided.
FirstUse race_at_first_use(const Workload& workload, const Function& kernel, const Function& plain,
                           const Tolerance& tolerance, const FirstUseLimits& limits = {});

}  // namespace tuner::runtime
