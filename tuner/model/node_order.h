// The order in which a model's nodes can run. Files list them in any order: converters to float16, for one,
// append their Casts at the end.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {

// What a node reads and makes; an empty name is an operand that is not given.
struct NodeNames {
  std::string label;  // "node y (Relu)", for messages
  std::vector<std::string> inputs, outputs;
};

// Numbers of the nodes, each behind those whose results it reads, otherwise as they stand. `is_known`: names
// that no node makes, as inputs. InvalidArgument: a node reads what nothing makes, or nodes that read each
// other's results.
Result<std::vector<size_t>> node_order(const std::vector<NodeNames>& nodes,
                                       const std::function<bool(const std::string&)>& is_known);

}  // namespace tuner
