// A cover as JSON, for `tuner cover --json`.
#pragma once

#include <nlohmann/json.hpp>

#include "tuner/study/cover_problem.h"

namespace tuner {

// True if the solution is as good as was wished; rounding of a percentage does not decide.
bool is_reached(const CoverSolution& solution, const CoverWish& wish);

nlohmann::ordered_json solution_json(const CoverProblem& problem, const CoverSolution& solution,
                                     const CoverWish& wish);
using Covers = std::vector<std::pair<CoverProblem, CoverSolution>>;
nlohmann::ordered_json covers_json(const Covers& covers, const std::vector<std::string>& unmeasured,
                                   const CoverWish& wish);

}  // namespace tuner
