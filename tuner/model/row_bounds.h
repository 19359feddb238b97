// RowBounds: results whose number of rows depends on data, as NonMaxSuppression's, get a bound from a person:
// --dim RESULT:0=N. Rows beyond those that there are, are -1. For the files that read models only.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "compiler_core/graph/graph.h"

namespace tuner {

namespace onnx {
class GraphProto;  // onnx.proto
class NodeProto;
}  // namespace onnx

class RowBounds {
 public:
  using Extents = std::map<std::string, int64_t>;
  // `named`: ModelExtents::named; must outlive it.
  explicit RowBounds(const Extents& named) : named_(named) {}

  // Puts the bound of a node that takes one into it. Returns what to add to a refusal of the node: how to
  // give the bound that is missing; else nothing.
  std::string take(const onnx::NodeProto& proto, graph::Node& node) const;
  // Whether a node of the graph, or of a graph in it, takes the bound "RESULT:0".
  static bool is_of(const onnx::GraphProto& graph, const std::string& place);

 private:
  const Extents& named_;
};

}  // namespace tuner
