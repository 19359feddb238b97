#include "tuner/daemon/tables/belief.h"

#include <algorithm>
#include <numeric>

#include "compiler_core/base/status.h"
#include "db/plausible.h"

namespace tuner {
namespace {

constexpr int kDefaultRepeats = 9;
// More than any one machine, for targets whose units are not known: ten times the fastest GPU there is.
constexpr double kMostGflopsOfAll = 5e7, kMostGbpsOfAll = 1e6;
// The runner's own clock around a run, and the sum of calls within it.
constexpr double kRunRatio = 1.1, kRunSlackMs = 5;

std::string faster_than_any(double ns, double least_ns) {
  return str("a call of ", ns, " ns, and no machine of this target does one in less than ", least_ns, " ns");
}

std::optional<std::string> too_much(const char* what, const char* unit, double found, double most,
                                    double most_of_all) {
  const double limit = most > 0 ? most : most_of_all;
  if (found <= limit) return std::nullopt;
  return str(what, " of ", found, " ", unit, ", and no machine of this target has more than ", limit);
}

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

// All that must have happened since the lease.
std::optional<std::string> longer_than_held(const char* what, double ms, const Circumstances& known) {
  if (!known.held_ms) return std::nullopt;
  const double most = static_cast<double>(*known.held_ms) * kClockRatio + kClockSlackMs;
  if (ms <= most) return std::nullopt;
  return str(what, " take ", ms, " ms, but it came ", *known.held_ms, " ms after its lease");
}

}  // namespace

std::optional<std::string> why_impossible(const MeasureRecord& r, const Circumstances& known) {
  if (auto why = longer_than_held("its queue, build and run", r.queue_ms + r.build_ms + r.run_ms, known))
    return why;
  if (auto why = too_much("a peak", "GFLOP/s", r.peak_gflops, known.bound.most_gflops, kMostGflopsOfAll))
    return why;
  if (auto why = too_much("a bandwidth", "GB/s", r.read_gbps, known.bound.most_gbps, kMostGbpsOfAll))
    return why;
  if (r.outcome != Outcome::kOk) return std::nullopt;
  if (r.max_error > 1) return str("a right answer with an error of ", r.max_error, " tolerances");
  const int repeats = known.repeats > 0 ? known.repeats : kDefaultRepeats;
  if (std::ssize(r.run_ns) > repeats)
    return str(r.run_ns.size(), " samples where ", repeats, " were asked for");
  const double fastest = std::ranges::min(r.run_ns);
  if (fastest < known.bound.least_ns) return faster_than_any(fastest, known.bound.least_ns);
  const double calls_ms = sum(r.run_ns) / 1e6;
  if (r.run_ms > 0 && calls_ms > r.run_ms * kRunRatio + kRunSlackMs)
    return str("samples of ", calls_ms, " ms in a run of ", r.run_ms, " ms");
  return longer_than_held("its samples", calls_ms, known);
}

std::optional<std::string> why_impossible(const RaceRow& race, const std::vector<TrialRow>& finalists,
                                          const Circumstances& known) {
  double calls_ns = 0;
  for (const RaceFinalist& f : race.finalists) {
    if (std::ranges::find(finalists, f.trial_id, &TrialRow::id) == finalists.end())
      return str("trial ", f.trial_id, " was not given to this race");
    for (const std::vector<double>* times : {&f.samples_ns, &f.other_ns}) {
      if (times->empty()) continue;
      const double fastest = std::ranges::min(*times);
      if (fastest < known.bound.least_ns) return faster_than_any(fastest, known.bound.least_ns);
      calls_ns += sum(*times);
    }
  }
  if (auto why = why_contradicts_samples(race)) return why;
  for (const double ns : {race.default_time_ns, race.other_time_ns})
    if (ns > 0 && ns < known.bound.least_ns) return faster_than_any(ns, known.bound.least_ns);
  return longer_than_held("its samples", calls_ns / 1e6, known);
}

std::optional<std::string> why_impossible(double peak_gflops, double read_gbps,
                                          const std::vector<std::string>& targets) {
  // What it offers, in any type: the widest of these bounds. Figures are those of one thread.
  MachineBound widest;
  for (const std::string& target : targets) {
    const MachineBound bound = machine_bound({.workload_key = "", .target = target});
    widest.most_gflops = std::max(widest.most_gflops, bound.most_gflops);
    widest.most_gbps = std::max(widest.most_gbps, bound.most_gbps);
  }
  if (auto why = too_much("a peak", "GFLOP/s", peak_gflops, widest.most_gflops, kMostGflopsOfAll)) return why;
  return too_much("a bandwidth", "GB/s", read_gbps, widest.most_gbps, kMostGbpsOfAll);
}

}  // namespace tuner
