// What `tuner kernel judge` says of a kernel.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "compiler_core/base/process_times.h"
#include "measure_server/runner/runner_protocol.h"

namespace tuner {

enum class KernelVerdict : uint8_t {
  kRight,          // right, with a certified ratio
  kWrong,          // an answer was wrong, or not written
  kCrashed,        // it ended, or broke something of its process
  kTimedOut,       // it did not end in time
  kNotCompiled,    // the compiler refuses it
  kRefused,        // it does more than compute, or its times cannot be true
  kRightNotTimed,  // right, on this host's CPU: a kernel of a GPU that was not asked for its time
  kCannotTell,     // right as far as was seen, but this machine is too busy to say how fast
};
// right, wrong, crashed, timed out, not compiled, refused, "right, not timed", cannot tell
std::string_view verdict_word(KernelVerdict verdict);

struct KernelJudgement {
  KernelVerdict verdict = KernelVerdict::kCannotTell;
  std::string why;        // empty only if right
  Difference difference;  // if wrong
  // The rival's time over the kernel's, process by process: above 1 the kernel is faster. Value and
  // interval (95 %) of one more pair of processes; zeros: not measured.
  Spread ratio;
  double time_ns = 0, rival_time_ns = 0;  // of one call each; 0: not measured
  int processes = 0;                      // of each, that the ratio rests on
  int turns = 0, disturbed = 0;           // of both: that count; of these disturbed
  std::string isolation;                  // level of the runs; empty: it never ran, or on a GPU
  int input_sets = 0;                     // that its answers were compared on
  uint64_t seed = 0;                      // of the inputs
  std::string unread;                     // why nobody read its code; empty: it was read
};

// What the outcome of a run means for a verdict. Requires an outcome other than kOk.
KernelJudgement judgement_of(Outcome outcome, const std::string& message, const Difference& difference,
                             bool doubted);

}  // namespace tuner
