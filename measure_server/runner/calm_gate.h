// CalmGate: lets only those calls of a kernel count that had the core to themselves. It times a pulse
// (pulse.h) before and after each slice of calls; a slice beside a slow one is taken anew, as long as
// patience lasts.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "measure_server/runner/sampling.h"

namespace tuner {

class CalmGate {
 public:
  // What a pulse takes when nobody disturbs (`calm_ns`; 0: not known, then the lowest tenth of those seen so
  // far tells). `pulse`: nanoseconds of one, on every thread the kernel uses; 0: there is none, and every
  // slice counts as calm.
  CalmGate(double calm_ns, std::function<double()> pulse);

  // From here on so much time may be lost to disturbances before slices beside them count.
  void be_patient(double ns) { patience_ns_ = ns; }
  // A call that takes longer than this (0: none does) is not worth another try.
  void give_up_above(double call_ns) { hopeless_ns_ = call_ns; }

  // One sample of `calls` calls. Its `calm` is false where a disturbed slice had to count. False as soon as
  // `take` is.
  bool take(int64_t calls, const TakeSample& take, Sample& sample);

  int retaken() const { return retaken_; }   // slices
  double low_ns() const { return low_ns_; }  // the lowest tenth of the latest pulses ends here; 0 without any

 private:
  void pulse();
  bool is_calm(double pulse_ns) const;
  void wait();

  const double calm_ns_;
  const std::function<double()> pulse_;
  double patience_ns_ = 0, hopeless_ns_ = 0;
  double call_ns_ = 0;                 // of the latest slice; 0: none yet
  double latest_ns_ = 0, low_ns_ = 0;  // pulses
  int retaken_ = 0;
  std::vector<double> pulses_;  // those of which low_ns_ is told
  size_t pulse_count_ = 0;
};

}  // namespace tuner
