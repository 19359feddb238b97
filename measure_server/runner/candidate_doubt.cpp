// What the report of a candidate's process is worth: are its numbers numbers, and do its times add up?
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <iterator>
#include <vector>

#include "compiler_core/base/process_emulator.h"
#include "compiler_core/runtime/kernel_loader.h"
#include "measure_server/runner/candidate_run.h"
#include "measure_server/runner/sampling.h"

namespace tuner {

bool CandidateRun::samples_fit() const {
  const CandidateReport& report = *plan_.report;
  if (report.phase != Phase::kDone || report.samples < 1 || report.samples > CandidateReport::kMaxSamples ||
      report.other_samples > CandidateReport::kMaxSamples || !(report.pulse_ns >= 0) ||
      !std::isfinite(report.pulse_ns))
    return false;
  for (uint32_t i = 0; i < report.other_samples; ++i)
    if (!(report.other_ns[i] > 0) || !std::isfinite(report.other_ns[i])) return false;
  for (uint32_t i = 0; i < report.samples; ++i)
    if (!(report.run_ns[i] > 0) || !std::isfinite(report.run_ns[i]) || !(report.cpu_ns[i] >= 0) ||
        !std::isfinite(report.cpu_ns[i]) || !(report.pulses_ns[i] >= 0) ||
        !std::isfinite(report.pulses_ns[i]))
      return false;
  return true;
}

// A candidate could have written anything here: what is no number a record may hold is left out.
void CandidateRun::take_facts() {
  constexpr double kMost = 1e9;
  const CandidateReport& report = *plan_.report;
  for (uint32_t i = 0; i < std::min(report.facts, CandidateReport::kMaxFacts); ++i) {
    const CandidateReport::Fact& fact = report.fact[i];
    const std::string name(fact.name, strnlen(fact.name, sizeof fact.name));
    if (fact.value >= 0 && fact.value <= kMost) reply_.facts[name] = fact.value;
  }
}

namespace {

std::string rounded_ms(double ns) { return str(std::round(ns / 1e4) / 100, " ms"); }

}  // namespace

// Its clock, which it may have patched, against the processor's counter, which is read in place: over the
// timed calls alone, however short they were. The counter is read outside of the clock, so it sees a
// reading more in each piece. A race, which has one try, allows more.
//
// The system may stop the child between the two readings, for longer than a heat's turn lasts. So of twenty
// pieces the one in which the counter says most more does not count. Whoever forges so few of them gains
// nothing: a time is the quartile or the median of samples, and each has many pieces.
std::string CandidateRun::clock_doubt() const {
  constexpr uint64_t kOneOddOf = 20;
  const CandidateReport& report = *plan_.report;
  const ClockPair now = read_clocks();
  const double tick_ns = ns_of_tick(clocks_at_begin_, now);
  if (tick_ns <= 0) return "";
  const auto by_counter = [&](uint64_t ticks) { return static_cast<double>(ticks) * tick_ns; };
  std::vector<CandidateReport::Piece> odd(std::begin(report.odd_pieces), std::end(report.odd_pieces));
  std::ranges::sort(odd, std::greater(), [&](const auto& p) { return by_counter(p.ticks) - p.wall_ns; });
  odd.resize(std::clamp<uint64_t>(report.timed_pieces / kOneOddOf, 1, odd.size()));
  double clock_ns = report.timed_wall_ns, counter_ns = by_counter(report.timed_ticks);
  for (const CandidateReport::Piece& piece : odd) {
    clock_ns -= piece.wall_ns;
    counter_ns -= by_counter(piece.ticks);
  }
  const double allowed_ns = (in_race_ ? 0.1 : 0.02) * counter_ns +
                            (100 + 2 * now.reading_ns) * static_cast<double>(report.timed_pieces);
  if (std::fabs(clock_ns - counter_ns) <= allowed_ns) return "";
  return str("its clock says ", rounded_ms(clock_ns), " for its timed calls, the processor's counter ",
             rounded_ms(counter_ns));
}

// In a wary run: a call on inputs of a moment ago takes as long as one on inputs of which elements changed.
// Whoever uses the core meanwhile slows both. A race has one try.
std::string CandidateRun::memory_doubt() const {
  const CandidateReport& report = *plan_.report;
  const double same_ns = report.same_call_ns, changed_ns = report.changed_call_ns;
  const double most_ns = (in_race_ ? 2 : 1.5) * same_ns + (artifact_.manifest.threads <= 1 ? 1e3 : 50e3);
  if (same_ns > 0 && !(changed_ns <= most_ns))
    return str("a call takes ", same_ns / 1e6, " ms on the inputs of the call before, and ", changed_ns / 1e6,
               " ms after some elements of them changed");
  return "";
}

// Why its times cannot be what its calls took; empty: they may be. CPU time is the same whoever asks the
// kernel for it, however busy the machine is; so a clock that was tampered with shows. And one call on
// inputs that it had not seen has to take about as long as those that were timed: what is more than that by
// far was not done there. A neighbour on the core and cold caches slow a single call, by less than this.
// Threads of a pool spin for a while after a loop, and while they wait for one that the system stopped, so
// several are known less well. A race has one try. An emulator spends CPU time of its own, on translating
// code when it first runs: its times are those of no machine, and nobody gains by changing them.
std::string CandidateRun::doubt() const {
  if (is_emulated_process()) return "";
  const bool alone = artifact_.manifest.threads <= 1;
  const double turn_ns = alone ? 150e3 : 3e6;  // a turn's own waking and waiting, of each thread
  const double share = alone ? 0.03 : 0.1;
  constexpr double kFirstWaitNs = 0.5e6;  // for the first turn, once it is there
  const CandidateReport& report = *plan_.report;
  const double threads = std::max(artifact_.manifest.threads, 1);
  const double slack_ns = turn_ns * threads * turns_ + share * seen_cpu_ns_;
  const auto ms = rounded_ms;
  if (std::string why = clock_doubt(); !why.empty()) return why;
  if (!(std::fabs(report.cpu_ns_of_all - seen_cpu_ns_) <= slack_ns))
    return str("its clocks say ", ms(report.cpu_ns_of_all), " of CPU time, ours ", ms(seen_cpu_ns_));
  if (!(report.turns_wall_ns <= seen_wall_ns_ * 1.001 + turn_ns))
    return str("its clock says ", ms(report.turns_wall_ns), ", ours ", ms(seen_wall_ns_));
  const double in_turns_ns = seen_cpu_ns_ - fork_cpu_ns_;
  if (!(report.turns_wall_ns >= (1 - share) * (in_turns_ns - slack_ns - kFirstWaitNs) / threads))
    return str("its clock says ", ms(report.turns_wall_ns), " for ", ms(in_turns_ns), " of CPU time");
  for (uint32_t i = 0; i < report.samples; ++i)
    if (report.cpu_ns[i] > 1.05 * report.run_ns[i] + turn_ns)
      return str("a call took ", report.run_ns[i], " ns and ", report.cpu_ns[i], " ns of CPU time");
  if (const std::string why = memory_doubt(); !why.empty()) return why;
  if (!finished_ || proved_with_ == 0 || (in_race_ && !alone)) return "";
  // Its claims are a device's, about another clock than ours.
  const KernelLoader* const loader = find_kernel_loader(artifact_.manifest.kind);
  if (loader != nullptr && !loader->clock().empty()) return "";
  int64_t bytes = 0;
  for (const ArgInfo& a : artifact_.manifest.args) bytes += a.bytes;
  const double reading_ns = 0.25 * static_cast<double>(bytes);  // at 4 GB/s
  const double claim_ns = estimate_median({report.run_ns, report.run_ns + report.samples}).median;
  const double call_ns = !alone ? 2e6 : in_race_ ? 300e3 : 30e3;
  const double most_ns = (in_race_ ? 9 : 3) * claim_ns + reading_ns + call_ns;
  // What the child says of this call is its own. A turn with this call and the last one alone is ours.
  const bool ours = !may_pause_ && !in_race_;
  const double most_of_turn_ns = threads * (2 * most_ns + 8 * reading_ns) + slack_ns + 500e3;
  if (!(report.proof_ns <= most_ns) || (ours && latest_cpu_ns_ > most_of_turn_ns))
    return str("a call on inputs that it had not seen took ",
               ms(report.proof_ns <= most_ns ? latest_cpu_ns_ : report.proof_ns), ", the timed ones ",
               claim_ns / 1e6, " ms");
  return "";
}

}  // namespace tuner
