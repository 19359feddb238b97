// A cover for people, as `tuner cover` prints it.
#pragma once

#include <string>
#include <vector>

#include "tuner/study/cover_problem.h"

namespace tuner {

// How good the set is, its configs, the tree that chooses among them, and what every place gets. Ends with a
// newline.
std::string cover_text(const CoverProblem& problem, const CoverSolution& solution, const CoverWish& wish);
// What is said of workloads that nothing was measured for, and how to measure them: lines for stderr; empty
// if there are none. `tasks`: the job file.
std::string unmeasured_text(const std::vector<std::string>& unmeasured, const std::string& tasks);

}  // namespace tuner
