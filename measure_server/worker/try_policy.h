// TryPolicy: how often a measurement is tried again, when, and how patiently it waits for a calm machine.
//
// A value without clock, process or lock: it is told what came of each try, and answers.
//
//   a run that was answered       stands, unless something else slowed this machine down for longer than the
//                                 run's patience: then once more
//   revoked, refused, or the      stands: another try would end as this one did
//   device is another process's
//   any other failure             again, as long as tries are left: it says nothing about the candidate
//
// On a machine that stays disturbed no run gets a second try, and none waits long: whoever disturbs for so
// long will do so beside the next try, too.
#pragma once

#include <chrono>

#include "compiler_core/base/status.h"
#include "measure_server/runner/runner_protocol.h"

namespace tuner {

// True if another try would end with the same error: revoked, refused, or the device is another process's.
bool stands(const Status& error);

class TryPolicy {
 public:
  enum class Verdict {
    kStands,     // no further try
    kDisturbed,  // again: thrown away, because the machine was not calm
    kFailed,     // again if may_try(): perhaps its data is gone or damaged
  };

  // Of one measurement. `disturbed_in_a_row`: the runs before it on this worker that stayed disturbed.
  TryPolicy(bool on_device, int disturbed_in_a_row)
      : on_device_(on_device), disturbed_in_a_row_(disturbed_in_a_row) {}

  bool may_try() const;
  // Before the next try: a GPU that failed its check may work again later. 0: at once.
  std::chrono::seconds wait() const;
  // How long the next run may wait for a calm machine, if `asked` is what its lease says.
  double patience_ms(double asked) const;

  // A try that came to no run, because its inputs or its reference answer were not there.
  void failed_before_run() { ++failures_; }
  // What came of a run. `memory_disturbed`: a memory sentinel beside it was above the calm level. `best_ns`:
  // of the best trial so far; 0: not known.
  Verdict after(const Result<RunReply>& reply, bool memory_disturbed, double best_ns);

  int discarded() const { return discarded_; }  // runs thrown away so far
  int disturbed_in_a_row() const { return disturbed_in_a_row_; }

 private:
  const bool on_device_;
  int disturbed_in_a_row_;
  int failures_ = 0, discarded_ = 0;
  bool device_sick_ = false;
};

}  // namespace tuner
