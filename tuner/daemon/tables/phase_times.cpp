#include "tuner/daemon/tables/phase_times.h"

#include <algorithm>
#include <vector>

#include "compiler_core/base/statistics.h"

namespace tuner {
namespace {

constexpr size_t kLatestTrials = 1000;

}  // namespace

std::string_view trial_phase_name(TrialPhase phase) {
  constexpr std::array<std::string_view, kTrialPhases> kNames = {"propose", "build", "run", "check", "store"};
  return kNames[static_cast<size_t>(phase)];
}

void PhaseTimes::add(TrialPhase phase, double milliseconds, int64_t trials) {
  if (trials <= 0) return;
  Phase& p = phases_[static_cast<size_t>(phase)];
  p.total_ms += milliseconds;
  const int64_t kept = std::min<int64_t>(trials, kLatestTrials);
  p.latest.insert(p.latest.end(), static_cast<size_t>(kept), milliseconds / static_cast<double>(trials));
  while (p.latest.size() > kLatestTrials) p.latest.pop_front();
}

double PhaseTimes::median_ms(TrialPhase phase) const {
  std::vector<double> values(at(phase).latest.begin(), at(phase).latest.end());
  return median(values);
}

}  // namespace tuner
