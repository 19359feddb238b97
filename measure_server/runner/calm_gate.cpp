#include "measure_server/runner/calm_gate.h"

#include <algorithm>

#include "measure_server/runner/pulse.h"

namespace tuner {
namespace {

// A slice is short beside the gaps that a neighbour leaves, which last about a millisecond, and long beside a
// pulse.
constexpr double kSliceNs = 1e5;
// Calls at least this long wait for a gap, so that they begin with it. Shorter ones go on meanwhile: that
// keeps their operands where a loop of calls leaves them.
constexpr double kLongCallNs = 4e5;
constexpr size_t kRemembered = 512;
constexpr size_t kLookAgain = 32;  // pulses after which the lowest tenth is found anew

}  // namespace

CalmGate::CalmGate(double calm_ns, std::function<double()> pulse)
    : calm_ns_(calm_ns), pulse_(std::move(pulse)) {}

void CalmGate::pulse() {
  latest_ns_ = pulse_();
  if (latest_ns_ <= 0) return;
  if (pulses_.size() < kRemembered)
    pulses_.push_back(latest_ns_);
  else
    pulses_[pulse_count_ % kRemembered] = latest_ns_;
  if (++pulse_count_ > kLookAgain && pulse_count_ % kLookAgain != 0) return;
  std::vector<double> sorted = pulses_;
  const auto at = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 10);
  std::nth_element(sorted.begin(), at, sorted.end());
  low_ns_ = *at;
}

bool CalmGate::is_calm(double pulse_ns) const {
  return pulse_ns <= 0 || pulse_ns <= kPulseDisturbed * (calm_ns_ > 0 ? calm_ns_ : low_ns_);
}

void CalmGate::wait() {
  while (patience_ns_ > 0 && !is_calm(latest_ns_)) {
    pulse();
    patience_ns_ -= std::max(latest_ns_, 1.0);
  }
}

bool CalmGate::take(int64_t calls, const TakeSample& take, Sample& sample) {
  sample = {};
  double pulses_ns = 0;
  int pulses = 0;
  pulse();  // what was timed last may be long ago
  for (int64_t left = calls; left > 0;) {
    if (call_ns_ >= kLongCallNs) wait();
    const double before = latest_ns_;
    const int64_t n =
        call_ns_ > 0 ? std::clamp<int64_t>(static_cast<int64_t>(kSliceNs / call_ns_), 1, left) : 1;
    Sample slice;
    if (!take(n, slice)) return false;
    call_ns_ = std::max(slice.run_ns / static_cast<double>(n), 1.0);
    pulse();
    const bool calm = is_calm(before) && is_calm(latest_ns_);
    const bool hopeless = hopeless_ns_ > 0 && call_ns_ > hopeless_ns_;
    if (!calm && !hopeless && patience_ns_ > 0) {
      patience_ns_ -= slice.run_ns;
      ++retaken_;
      continue;
    }
    sample.run_ns += slice.run_ns;
    sample.cpu_ns += slice.cpu_ns;
    sample.calm = sample.calm && calm;
    pulses_ns += before + latest_ns_;
    pulses += 2;
    left -= n;
  }
  sample.pulse_ns = pulses_ns / std::max(pulses, 1);
  return true;
}

}  // namespace tuner
