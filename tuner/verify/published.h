// Judges a published time by the same kernel measured anew, for `tuner verify --times` and the benchmarks.
//
// Whatever disturbs a measurement makes it slower, never faster. So a time is disproved from one side: it is
// too fast only if every fresh process needs longer, and too slow only if every one needs less. A busy
// machine may make a true time look too fast: there a time counts as disproved only where it is so far off
// that nobody unseen could explain it.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "db/records.h"

namespace tuner {

enum class TimeVerdict : uint8_t {
  kInside,      // in the published interval
  kOutside,     // disproved
  kCannotTell,  // the machine is too busy to say
};
// "inside", "OUTSIDE", "cannot tell": in text and in JSON.
const char* verdict_name(TimeVerdict verdict);

// A machine is busy if more than this share of the slices of calls had to be taken anew, or if the memory
// that cores share is slower or faster than then by more than 3 %. What it hides is less than kUnseen: in 80
// measurements beside a program that streams through memory and a compiler on every core, the fastest process
// never took longer than the published interval and the clock explain (tests/bench/README.md,
// verify_times.sh).
inline constexpr double kBusyShare = 0.02, kUnseen = 1.03;
// What is hidden where the measurement itself failed: most turns were disturbed, the processes differ too
// much for a certificate, the core is so slow that a neighbour may share it, or memory is far from what it
// was. A neighbour on the core's other thread takes a factor of 2.3 at most and shows in the pulses.
inline constexpr double kHopeless = 1.5;

// With fewer processes a race says nothing of how they differ (measure_server/worker/race_statistics.h).
inline constexpr int kFewestProcesses = 3;

// What one measurement says, and what that rests on.
struct Judgement {
  TimeVerdict verdict = TimeVerdict::kCannotTell;
  bool slower = false;  // OUTSIDE: the kernel needs longer than published; else it needs less
  // The published interval, stretched by what clock and memory explain. A clock that differs by more than 1.5
  // % may be followed fully, in part or, by a kernel that waits for memory, not at all; memory that differs
  // by more than 3 % likewise.
  double low_ns = 0, high_ns = 0;
  double fastest_ns = 0, slowest_ns = 0;  // of the fresh processes
  std::string busy;                       // why the machine counts as busy; empty: it is calm
};

// Judges one measurement in fresh processes.
//   inside       its time is in the stretched interval, and most turns that count were calm
//   OUTSIDE      every process is beyond the stretched interval, on the same side; slower, and on a busy
//                machine: by more than what may be hidden there
//   cannot tell  all else
Judgement judge(const TunedConfig& published, const RaceRow& now);

// The verdict of several measurements in turn: one that is inside decides, and so do two that are OUTSIDE on
// the same side. Nothing: another measurement may decide; after kMostLooks it is "cannot tell".
std::optional<TimeVerdict> decided(std::span<const Judgement> looks);
inline constexpr size_t kMostLooks = 3;

// The core's speed now relative to when the time was published: the pulse's time then over now's. 1 if it
// cannot be compared.
double clock_now(const TunedConfig& published, const RaceRow& now);
// The memory sentinel's time now over then's: above 1 the memory that cores share is slower. 1 if it was not
// timed, as for kernels whose operands fit the core's own caches.
double memory_now(const TunedConfig& published, const RaceRow& now);

// The new value over the published one: of the times, or of the ratios to the pulse where the clock has
// changed.
double to_published(const TunedConfig& published, const RaceRow& now);

// The verdict with what it rests on, for people: a line each, none with a newline at its end. `looks`: the
// measurements so far, of which `now` is the latest.
//   "inside: 17.36 us now, published 17.07 us (95 %: 16.79 .. 17.37 us)" "cannot tell: the machine is busy",
//   "12 % of its calls were disturbed and taken anew", "18.40 us now, published ..." "OUTSIDE: every process
//   of 2 measurements took 19.31 us or more", "published ..."
std::vector<std::string> verdict_text(TimeVerdict verdict, const TunedConfig& published, const RaceRow& now,
                                      std::span<const Judgement> looks);

// The same for programs: what `now` measured, and the verdict of all `looks`.
nlohmann::ordered_json verdict_json(TimeVerdict verdict, const TunedConfig& published, const RaceRow& now,
                                    std::span<const Judgement> looks);

}  // namespace tuner
