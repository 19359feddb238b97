// The order in which a model's nodes can run. Files list them in any order: converters to float16, for one,
// append their Casts at the end.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {
namespace onnx {
class GraphProto;
}

// Numbers of the graph's nodes, each behind those whose results it reads, otherwise as the file has them.
// `is_known`: names that no node makes, as inputs. InvalidArgument: a node reads what nothing makes, or nodes
// that read each other's results.
Result<std::vector<int>> node_order(const onnx::GraphProto& graph,
                                    const std::function<bool(const std::string&)>& is_known);

}  // namespace tuner
