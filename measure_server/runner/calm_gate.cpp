#include "measure_server/runner/calm_gate.h"

#include <algorithm>
#include <utility>

#include "measure_server/runner/pulse.h"

namespace tuner {
namespace {

// A slice is short beside the gaps that a neighbour leaves, which last about a millisecond, and long beside a
// pulse.
constexpr double kSliceNs = 1e5;
// Calls at least this long wait for a gap, so that they begin with it. Shorter ones go on meanwhile: that
// keeps their operands where a loop of calls leaves them.
constexpr double kLongCallNs = 4e5;
constexpr int kPulses = 3;            // of a moment
constexpr size_t kRemembered = 512;   // pulses: some milliseconds
constexpr size_t kLookAgain = 32;     // pulses after which the fast ones are found anew
constexpr double kOneOfTheFast = 20;  // one in so many is faster
constexpr double kAsFast = 1.06;      // as those

}  // namespace

CalmGate::CalmGate(double calm_ns, std::function<Pulse()> pulse, std::function<int64_t()> switches)
    : calm_ns_(calm_ns), pulse_(std::move(pulse)), switches_(std::move(switches)) {}

bool CalmGate::kept_the_core() {
  if (!switches_) return true;
  const int64_t before = std::exchange(switches_so_far_, switches_());
  return switches_so_far_ == before;
}

CalmGate::Moment CalmGate::now() {
  Moment m;
  for (int i = 0; i < kPulses; ++i) {
    const Pulse pulse = pulse_();
    if (pulse.ns <= 0) return {};
    remember(pulse.even_ns);
    m.slowest_ns = std::max(m.slowest_ns, pulse.even_ns);
    m.mean_ns += pulse.ns / kPulses;
  }
  return m;
}

void CalmGate::remember(double even_ns) {
  if (pulses_.size() < kRemembered)
    pulses_.push_back(even_ns);
  else
    pulses_[pulse_count_ % kRemembered] = even_ns;
  if (++pulse_count_ > kLookAgain && pulse_count_ % kLookAgain != 0) return;
  std::vector<double> sorted = pulses_;
  const auto at =
      sorted.begin() + static_cast<std::ptrdiff_t>(static_cast<double>(sorted.size()) / kOneOfTheFast);
  std::nth_element(sorted.begin(), at, sorted.end());
  low_ns_ = *at;
}

bool CalmGate::is_calm(const Moment& m) const {
  if (m.slowest_ns <= 0) return true;
  return m.slowest_ns <= kAsFast * low_ns_ && (calm_ns_ <= 0 || m.slowest_ns <= kPulseDisturbed * calm_ns_);
}

bool CalmGate::take(int64_t calls, const TakeSample& take, Sample& sample) {
  sample = {};
  double pulses_ns = 0;
  int moments = 0;
  kept_the_core();       // what it lost before is no matter
  Moment after = now();  // what was timed last may be long ago
  for (int64_t left = calls; left > 0;) {
    while (call_ns_ >= kLongCallNs && patience_ns_ > 0 && !is_calm(after)) {
      after = now();
      patience_ns_ -= kPulses * after.mean_ns;
    }
    const Moment before = after;
    const int64_t n =
        call_ns_ > 0 ? std::clamp<int64_t>(static_cast<int64_t>(kSliceNs / call_ns_), 1, left) : 1;
    Sample slice;
    if (!take(n, slice)) return false;
    call_ns_ = std::max(slice.run_ns / static_cast<double>(n), 1.0);
    after = now();
    const bool alone = kept_the_core();
    ++slices_;
    const bool calm = alone && is_calm(before) && is_calm(after);
    const bool hopeless = hopeless_ns_ > 0 && call_ns_ > hopeless_ns_;
    if (!calm && !hopeless && patience_ns_ > 0) {
      patience_ns_ -= slice.run_ns;
      ++retaken_;
      continue;
    }
    sample.run_ns += slice.run_ns;
    sample.cpu_ns += slice.cpu_ns;
    sample.calm = sample.calm && calm;
    pulses_ns += before.mean_ns + after.mean_ns;
    moments += 2;
    left -= n;
  }
  sample.pulse_ns = pulses_ns / std::max(moments, 1);
  return true;
}

}  // namespace tuner
