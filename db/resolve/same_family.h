// Relatives of a task: tuned tasks whose configs suit it almost as well.
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
  // How fast its config is here. Assumed, not learned (README.md), and wide on purpose.
  Prediction prediction;
};

// Returns the relatives among `tasks`, closest first: the same shape with another epilogue on this target,
// then the same shape on near targets (near_targets()).
std::vector<Relative> relatives_of(const Workload& workload, const Target& target,
                                   const std::vector<JobRow::Task>& tasks);

// Of one family, which says that they are (TargetFamily::near). A target is near itself.
bool near_targets(const Target& a, const Target& b);

// Returns the other names that this workload's tasks use for CPUs with the target's vectors and threads. The
// target may have had one of these names before.
std::vector<std::string> names_of_same_vectors(std::string_view workload_key, const Target& target,
                                               const std::vector<JobRow::Task>& tasks);

}  // namespace tuner
