// CalmGate: counts only those calls of a kernel that had the core to themselves. It times pulses (pulse.h)
// before and after each slice of calls, and asks the kernel of the system how often it took the core away
// since the slice before. A slice beside slow pulses, or one that lost the core, is repeated, as long as
// patience lasts.
//
// At an even clock (pulse.h) pulses agree within 2 %. Someone who computes on the core's other hardware
// thread doubles them; someone who waits for memory there scatters them by tens of percent. So a moment is
// calm when three pulses in a row are as fast as the fastest of the last milliseconds, and those are as fast
// as pulses beside other kernels of the task. Somebody who shares the core by turns shows in no pulse: he
// waits while we run. On two cores with two compilers and a program that streams through memory, half of the
// samples of a millisecond took 1.5 to 5 times as long, all between calm pulses; the involuntary context
// switches tell of every one.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "measure_server/runner/pulse.h"
#include "measure_server/runner/sampling.h"

namespace tuner {

class CalmGate {
 public:
  // `calm_ns`: an undisturbed pulse at an even clock; 0: not known. `pulse`: takes one on every thread that
  // the kernel uses and returns the slowest; zeros: there are no pulses here. `switches`: how often those
  // threads have lost their core to somebody else so far; asked once per slice, between timed calls. Null:
  // not known.
  CalmGate(double calm_ns, std::function<Pulse()> pulse, std::function<int64_t()> switches = nullptr);

  // Sets how much time may be spent on repeating disturbed slices, from now on, before they count.
  void be_patient(double ns) { patience_ns_ = ns; }
  // A call that takes longer than this is not worth another try. 0: no limit.
  void give_up_above(double call_ns) { hopeless_ns_ = call_ns; }

  // Takes one sample of `calls` calls. Sets `sample.calm` to false if a disturbed slice had to count. Returns
  // false as soon as `take` does.
  bool take(int64_t calls, const TakeSample& take, Sample& sample);

  int slices() const { return slices_; }    // that were taken so far, those that were repeated too
  int retaken() const { return retaken_; }  // slices that were repeated
  // One of the fastest of the latest pulses, at an even clock; 0: none yet.
  double low_ns() const { return low_ns_; }

 private:
  // Three pulses in a row.
  struct Moment {
    double slowest_ns = 0;  // at an even clock
    double mean_ns = 0;     // at the clock that they found
  };
  Moment now();
  bool kept_the_core();  // since it was last asked
  bool is_calm(const Moment& m) const;
  void remember(double even_ns);

  const double calm_ns_;
  const std::function<Pulse()> pulse_;
  const std::function<int64_t()> switches_;
  double patience_ns_ = 0, hopeless_ns_ = 0;
  double call_ns_ = 0;  // time of a call in the latest slice; 0: none yet
  double low_ns_ = 0;
  int64_t switches_so_far_ = 0;
  int slices_ = 0, retaken_ = 0;
  std::vector<double> pulses_;  // the latest pulses, from which low_ns_ is computed
  size_t pulse_count_ = 0;
};

}  // namespace tuner
