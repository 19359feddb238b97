// TaskEstimate: what `tuner estimate` says of one task: is tuning it worth the time?
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "compiler_core/base/status.h"
#include "db/resolve/resolve.h"
#include "db/staleness.h"
#include "tuner/jobs/tasks.h"
#include "tuner/study/gain_estimate.h"

namespace tuner {

struct TaskEstimate {
  CliTask task;
  int64_t uses = 1;
  Answer answer;
  Staleness staleness;
  std::optional<Gain> gain;  // over the answer; none: nothing to learn from
  Cost cost;
  int64_t trials_so_far = 0;
  double now_ns = 0;    // of what is answered now: measured, or predicted where it was not; 0: not known
  double bound_ns = 0;  // the roofline's, below which no config can be; 0: not known
  std::string note;

  // True if without the bound the gain would be larger or the time now smaller.
  bool bound_decides() const { return (gain && gain->cut) || (now_ns > 0 && now_ns == bound_ns); }
  // What the answer is: measured or the default, or chosen by a prediction.
  Before before() const {
    return answer.kind == AnswerKind::kExact || answer.kind == AnswerKind::kDefault ? Before::kDefault
                                                                                    : Before::kChosen;
  }
  bool skip() const { return gain && worth_skipping(*gain, before()); }
  std::string_view verdict() const { return !gain ? "unknown" : skip() ? "skip" : "tune"; }
};

// Where the answer rests on a prediction, the narrower of its interval and that of similar tasks counts.
Result<TaskEstimate> estimate_task(const Store& store, const GainEstimate& estimate, const Resolver& resolver,
                                   const CliTask& task, int64_t uses);

}  // namespace tuner
