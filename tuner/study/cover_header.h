// Writes a cover set as a C++ header that needs nothing else: the configs, the tree as a constexpr function,
// and a table of what it was made from.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tuner/study/cover_problem.h"

namespace tuner {

// Each operator has a namespace `name`_OP (or `name` if there is one problem) with struct Config, kConfigs,
// knob(), struct Shape with every feature of its places, choose() and kPlaces. C++17. `made_by` appears in
// the first comment.
std::string cover_header(const std::vector<std::pair<CoverProblem, CoverSolution>>& covers,
                         const std::string& name, const std::string& made_by);

// Returns the tree as indented text: "if ic <= 90: config 1" ...; configs count from 1.
std::string tree_text(const CoverTree& tree, const std::string& indent);

}  // namespace tuner
