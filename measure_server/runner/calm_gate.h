// CalmGate: lets only those calls of a kernel count that had the core to themselves. It times pulses
// (pulse.h) before and after each slice of calls; a slice beside slow ones is taken anew, as long as patience
// lasts.
//
// A clock is steady: at any moment pulses agree within a percent. Who computes on the other hardware thread
// doubles them, who waits for memory there scatters them by tens of percent. So a moment is calm when three
// pulses in a row are as fast as the fastest of the last milliseconds, and these not slower than clocks
// explain.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "measure_server/runner/sampling.h"

namespace tuner {

class CalmGate {
 public:
  // `calm_ns`: what a pulse takes when nobody disturbs; 0: not known. `pulse`: nanoseconds of one, on every
  // thread the kernel uses; 0: there is none, and every slice counts as calm.
  CalmGate(double calm_ns, std::function<double()> pulse);

  // From here on so much time may be lost to disturbances before slices beside them count.
  void be_patient(double ns) { patience_ns_ = ns; }
  // A call that takes longer than this (0: none does) is not worth another try.
  void give_up_above(double call_ns) { hopeless_ns_ = call_ns; }

  // One sample of `calls` calls. Its `calm` is false where a disturbed slice had to count. False as soon as
  // `take` is.
  bool take(int64_t calls, const TakeSample& take, Sample& sample);

  int retaken() const { return retaken_; }   // slices
  double low_ns() const { return low_ns_; }  // one of the fastest of the latest pulses; 0 without any

 private:
  // Three pulses in a row.
  struct Moment {
    double slowest_ns = 0, mean_ns = 0;
  };
  Moment now();
  bool is_calm(const Moment& m) const;
  void remember(double pulse_ns);

  const double calm_ns_;
  const std::function<double()> pulse_;
  double patience_ns_ = 0, hopeless_ns_ = 0;
  double call_ns_ = 0;  // of the latest slice; 0: none yet
  double low_ns_ = 0;
  int retaken_ = 0;
  std::vector<double> pulses_;  // those of which low_ns_ is told
  size_t pulse_count_ = 0;
};

}  // namespace tuner
