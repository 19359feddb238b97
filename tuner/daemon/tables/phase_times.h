// PhaseTimes: where the time of a job's trials goes, phase by phase, as it runs.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string_view>

namespace tuner {

// What a trial costs: the search thinking (model refits included), building, the run in its own process from
// fork to the end of the check, of that the comparison with the reference, and its writes to the database:
// proposed, leased, answered. Builds go on beside runs: the sum is more than the wall clock.
enum class TrialPhase : uint8_t { kPropose, kBuild, kRun, kCheck, kStore };
inline constexpr int kTrialPhases = 5;
std::string_view trial_phase_name(TrialPhase phase);  // "propose", "build", ...

class PhaseTimes {
 public:
  // `milliseconds` were spent on `trials` of them together.
  void add(TrialPhase phase, double milliseconds, int64_t trials = 1);
  double total_ms(TrialPhase phase) const { return at(phase).total_ms; }
  // Of a trial, over the latest thousand; 0: none yet.
  double median_ms(TrialPhase phase) const;

 private:
  struct Phase {
    double total_ms = 0;
    std::deque<double> latest;
  };
  const Phase& at(TrialPhase phase) const { return phases_[static_cast<size_t>(phase)]; }
  std::array<Phase, kTrialPhases> phases_;
};

}  // namespace tuner
