// A cover set as a C++ header that needs nothing else: the configs, the tree as a constexpr function, and the
// table of what it was made from.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tuner/study/cover_problem.h"

namespace tuner {

// A namespace an operator, `name`_OP (or `name` alone when there is one problem): struct Config, kConfigs,
// knob(), struct Shape with every feature its places have, choose(), kPlaces. C++17. `made_by` stands in the
// first comment.
std::string cover_header(const std::vector<std::pair<CoverProblem, CoverSolution>>& covers,
                         const std::string& name, const std::string& made_by);

// The tree as text: "if ic <= 90: config 1" ..., indented; configs count from 1.
std::string tree_text(const CoverTree& tree, const std::string& indent);

}  // namespace tuner
