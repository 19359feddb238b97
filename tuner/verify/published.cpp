#include "tuner/verify/published.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "compiler_core/base/process_times.h"
#include "compiler_core/base/status.h"
#include "templates/workload/workload.h"
#include "tuner/text/format.h"

namespace tuner {
namespace {

constexpr double kSameClock = 0.015;  // the pulse may differ by so much; clocks have steps of 3 %
constexpr double kSlowClock = 0.94;   // slower than this may be a steady neighbour
constexpr double kSameMemory = 0.03;  // calm levels of one machine lie within so much
// A kernel feels the memory that cores share as the sentinel does, or more if it reads more than that: 8 MB
// of weights took 1.25 to 1.28 times as long where the sentinel said 1.08.
constexpr double kOtherMemory = 0.15, kOtherMemoryOfLarge = 0.06;
constexpr int64_t kSentinelReads = int64_t{4} << 20;  // 4 MiB on most machines (runner/sentinel.h)

bool same_clock(const TunedConfig& published, const RaceRow& now) {
  return std::fabs(clock_now(published, now) - 1) <= kSameClock;
}

bool same_memory(const TunedConfig& published, const RaceRow& now) {
  return std::fabs(memory_now(published, now) - 1) <= kSameMemory;
}

std::string percent(double fraction) { return str(std::lround(100 * fraction), " %"); }

// "5 % slower".
std::string slower(double by) { return percent(std::fabs(by)) + (by > 0 ? " slower" : " faster"); }

// Nothing that was measured can be trusted to be the kernel's own time; empty: it can.
std::string spoilt(const TunedConfig& published, const RaceRow& now) {
  const int counted = now.turns - now.discarded;
  if (2 * now.disturbed > counted) return str(now.disturbed, " of ", counted, " turns were disturbed");
  const double clock = clock_now(published, now);
  if (clock < kSlowClock && now.ratio > published.ratio_high)
    return str("the core is ", slower(1 / clock - 1), " than then");
  return "";
}

bool other_memory(const TunedConfig& published, const RaceRow& now) {
  const Result<Workload> workload = workload_from_key(published.workload_key);
  const bool large = workload && workload->bytes() > kSentinelReads;
  return std::fabs(memory_now(published, now) - 1) > (large ? kOtherMemoryOfLarge : kOtherMemory);
}

// Why undisturbed calls may still be slower than the kernel was when its time was published, and by which
// factor at most.
struct Busy {
  std::string why;
  double hidden = 1;
};
Busy busy(const TunedConfig& published, const RaceRow& now) {
  if (std::string why = spoilt(published, now); !why.empty()) return {why, kHopeless};
  if (!now.certified) return {now.uncertified_why, kHopeless};
  const std::string memory =
      str("the memory that cores share is ", slower(memory_now(published, now) - 1), " than then");
  if (other_memory(published, now)) return {memory, kHopeless};
  if (const double share = now.slices > 0 ? static_cast<double>(now.retaken) / now.slices : 0;
      share > kBusyShare)
    return {str(percent(share), " of its calls were disturbed and taken anew"), kUnseen};
  if (!same_memory(published, now)) return {memory, kUnseen};
  return {};
}

// Fastest and slowest process.
std::pair<double, double> process_range(const RaceRow& now) {
  std::pair<double, double> range{now.time_ns, now.time_ns};
  if (now.finalists.empty()) return range;
  const RaceFinalist& f = now.finalists.front();
  const std::vector<ProcessTime> all = process_times(
      {.times_ns = f.samples_ns, .pulses_ns = f.sentinel_ns, .memory_ns = f.memory_ns, .process = f.process});
  for (const ProcessTime& p : all)
    range = {std::min(range.first, p.time_ns), std::max(range.second, p.time_ns)};
  return range;
}

}  // namespace

const char* verdict_name(TimeVerdict verdict) {
  switch (verdict) {
    case TimeVerdict::kInside:
      return "inside";
    case TimeVerdict::kOutside:
      return "OUTSIDE";
    case TimeVerdict::kCannotTell:
      break;
  }
  return "cannot tell";
}

double clock_now(const TunedConfig& published, const RaceRow& now) {
  if (published.ratio <= 0 || now.ratio <= 0) return 1;
  // Another harness divided by something else.
  if (published.environment.harness_abi != now.environment.harness_abi) return 1;
  return published.time_ns / published.ratio / (now.time_ns / now.ratio);
}

double memory_now(const TunedConfig& published, const RaceRow& now) {
  const double then_ns = published.memory_ns;
  const double now_ns = now.finalists.empty() ? 0 : raced_memory_ns(now.finalists.front());
  return then_ns > 0 && now_ns > 0 ? now_ns / then_ns : 1;
}

double to_published(const TunedConfig& published, const RaceRow& now) {
  return same_clock(published, now) ? now.time_ns / published.time_ns : now.ratio / published.ratio;
}

Judgement judge(const TunedConfig& published, const RaceRow& now) {
  const Busy disturbance = busy(published, now);
  Judgement out{.busy = disturbance.why};
  std::tie(out.fastest_ns, out.slowest_ns) = process_range(now);
  const double by_clock = same_clock(published, now) ? 1 : 1 / clock_now(published, now);
  const double by_memory = same_memory(published, now) ? 1 : memory_now(published, now);
  // Not their product: the sentinel follows the clock, too.
  out.low_ns = published.time_low_ns * std::min({by_clock, by_memory, 1.0});
  out.high_ns = published.time_high_ns * std::max({by_clock, by_memory, 1.0});
  // Nobody makes a kernel faster, but a neighbour of then may be gone.
  const double gone = other_memory(published, now) ? kHopeless : 1;
  const double limit_ns =
      std::max(out.high_ns, disturbance.hidden * published.time_high_ns * std::max(by_clock, 1.0));
  const bool too_fast = out.fastest_ns > limit_ns;
  const bool too_slow = out.slowest_ns < out.low_ns / gone;
  const bool between = out.low_ns <= now.time_ns && now.time_ns <= out.high_ns;
  out.slower = too_fast;
  if (too_fast || too_slow)
    out.verdict = TimeVerdict::kOutside;
  else if (between && spoilt(published, now).empty())
    out.verdict = TimeVerdict::kInside;
  return out;
}

std::optional<TimeVerdict> decided(std::span<const Judgement> looks) {
  int slower = 0, faster = 0;
  for (const Judgement& look : looks) {
    if (look.verdict == TimeVerdict::kInside) return look.verdict;
    if (look.verdict == TimeVerdict::kOutside) ++(look.slower ? slower : faster);
  }
  if (std::max(slower, faster) > 1) return TimeVerdict::kOutside;
  return looks.size() < kMostLooks ? std::optional<TimeVerdict>() : TimeVerdict::kCannotTell;
}

namespace {

// What all measurements that found the time OUTSIDE on the side of the last one say together.
struct Outside {
  size_t looks = 0;
  double fastest_ns = 0, slowest_ns = 0;
};
Outside outside_of(std::span<const Judgement> looks) {
  Outside all;
  for (const Judgement& look : looks) {
    if (look.verdict != TimeVerdict::kOutside || look.slower != looks.back().slower) continue;
    all.fastest_ns = all.looks == 0 ? look.fastest_ns : std::min(all.fastest_ns, look.fastest_ns);
    all.slowest_ns = std::max(all.slowest_ns, look.slowest_ns);
    ++all.looks;
  }
  return all;
}

// What stretched the interval, if anything did.
std::vector<std::string> stretched_by(const TunedConfig& published, const RaceRow& now,
                                      const Judgement& look) {
  std::string by;
  if (!same_clock(published, now)) by = str("the clock is ", slower(1 / clock_now(published, now) - 1));
  if (!same_memory(published, now))
    by += str(by.empty() ? "" : " and ", "shared memory ", slower(memory_now(published, now) - 1));
  if (by.empty()) return {};
  const std::string low = format_time(look.low_ns), high = format_time(look.high_ns);
  return {str(by, " than then: ", low, " to ", high, " is inside")};
}

}  // namespace

std::vector<std::string> verdict_text(TimeVerdict verdict, const TunedConfig& published, const RaceRow& now,
                                      std::span<const Judgement> looks) {
  const Judgement& last = looks.back();
  const std::string times =
      str(format_time(now.time_ns), " now, published ",
          format_time(published.time_ns, published.time_low_ns, published.time_high_ns));
  std::vector<std::string> lines;
  switch (verdict) {
    case TimeVerdict::kInside:
      lines = {str("inside: ", times)};
      break;
    case TimeVerdict::kOutside: {
      const Outside all = outside_of(looks);
      lines = {str("OUTSIDE: every process of ", all.looks, " measurements took ",
                   last.slower ? str(format_time(all.fastest_ns), " or more")
                               : str(format_time(all.slowest_ns), " or less")),
               times};
      break;
    }
    case TimeVerdict::kCannotTell:
      lines = {
          last.busy.empty() ? "cannot tell: the measurements disagree" : "cannot tell: the machine is busy",
          last.busy.empty() ? str("a process took ", format_time(last.fastest_ns), ", another ",
                                  format_time(last.slowest_ns))
                            : last.busy,
          times};
  }
  for (std::string& line : stretched_by(published, now, last)) lines.push_back(std::move(line));
  return lines;
}

nlohmann::ordered_json verdict_json(TimeVerdict verdict, const TunedConfig& published, const RaceRow& now,
                                    std::span<const Judgement> looks) {
  const Judgement& last = looks.back();
  return {{"verdict", verdict_name(verdict)},
          {"inside", verdict == TimeVerdict::kInside},
          {"measurements", looks.size()},
          {"busy", last.busy},
          {"inside_from_ns", last.low_ns},
          {"inside_to_ns", last.high_ns},
          {"fastest_process_ns", last.fastest_ns},
          {"slowest_process_ns", last.slowest_ns},
          {"time_ns", now.time_ns},
          {"ratio", now.ratio},
          {"clock", clock_now(published, now)},
          {"memory", memory_now(published, now)},
          {"samples_ns", now.finalists.at(0).samples_ns},
          {"sentinel_ns", now.finalists[0].sentinel_ns},
          {"memory_ns", now.finalists[0].memory_ns},
          {"process", now.finalists[0].process},
          {"turns", now.turns},
          {"discarded", now.discarded},
          {"disturbed", now.disturbed},
          {"slices", now.slices},
          {"retaken", now.retaken},
          {"certified", now.certified}};
}

}  // namespace tuner
