// Guards: steps that a run leaves out, since a condition on data chooses something else.
//
// The graph has no branches: a Where chooses (README.md, "Control flow"). What only one of its operands needs
// is needed only if the condition has one value. That goes on backwards, to all that only such values need.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "compiler_core/graph/graph.h"
#include "compiler_core/graph/uses.h"
#include "tuner/model/partition.h"

namespace tuner {

// Of each node the guards that hold wherever its results are needed, the outermost ones first, at most
// kMostGuards. Conditions are bools of one element, each by the value that is no view of another.
inline constexpr size_t kMostGuards = 8;
std::vector<std::vector<StepGuard>> node_guards(const graph::Graph& graph, const graph::Uses& uses);

// Gives each step the guards of its last node that are by one of `conditions`, sorted, if that is an input or
// made by an earlier step.
void guard_steps(ModelSteps& model, const std::vector<std::vector<StepGuard>>& of_nodes,
                 const std::vector<graph::ValueId>& conditions);

// How much work each condition saves: operations of the steps that it guards, both ways together, and one for
// each element of a step that only moves them.
std::map<graph::ValueId, int64_t> guarded_work(const ModelSteps& model);

}  // namespace tuner
