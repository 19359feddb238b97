// Relatives of a task: tuned tasks whose config means nearly the same for it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/target.h"
#include "db/learning/predictor.h"
#include "db/records.h"

namespace tuner {

struct Relative {
  std::string workload_key, target;
  std::string difference;  // "another epilogue", "2 threads there", "tuned for znver4"
  // What its config reaches here. Assumed, not learned (README.md): wide on purpose.
  Prediction prediction;
};

// Of those in `tasks`, the closest first: same shape with another epilogue on the target, then the shape on
// near targets (see near_targets).
std::vector<Relative> relatives_of(const Workload& workload, const Target& target,
                                   const std::vector<JobRow::Task>& tasks);

// Of one family, which says that they are (TargetFamily::near). A target is near itself.
bool near_targets(const Target& a, const Target& b);

// Other names that tasks of this workload have for CPUs of the target's vectors and threads: one of them may
// be what the target was called before.
std::vector<std::string> names_of_same_vectors(std::string_view workload_key, const Target& target,
                                               const std::vector<JobRow::Task>& tasks);

}  // namespace tuner
