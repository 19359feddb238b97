// A graph of ONNX Runtime as plain values: what decides which nodes are ours, and what becomes a model of its
// own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner::ort {

struct OrtGraph;
struct OrtNode;
class Api;

inline constexpr size_t kNoValue = SIZE_MAX;  // an optional operand that is not given

struct GraphValue {
  std::string name;
  int type = 0;  // ONNX's number of the element type
  std::vector<int64_t> shape;
  std::string open;                     // why type or shape is not known ahead; empty: both are
  bool constant = false;                // the same in every run
  std::span<const std::byte> elements;  // of a constant; the library's, as long as the graph
};

struct TensorAttribute {
  int type = 0;
  std::vector<int64_t> shape;
  std::string elements;
};

struct NodeAttribute {
  std::string name;
  std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>,
               std::vector<std::string>, TensorAttribute>
      value;
};

struct GraphNode {
  std::string name, op, domain;
  std::vector<size_t> inputs, outputs;  // into values, or kNoValue
  std::vector<size_t> read_inside;      // by graphs within the node
  std::vector<NodeAttribute> attributes;
  std::string foreign;              // why the node is not ours, seen without its operator; empty: nothing
  const OrtNode* handle = nullptr;  // as long as the graph
};

struct NodeGraph {
  int64_t operator_set = 0;  // of ONNX's own operators
  std::vector<GraphValue> values;
  std::vector<GraphNode> nodes;  // each behind those whose results it reads
  std::vector<size_t> outputs;   // values
};

// Failed: the library says so. A node that cannot be read as a whole is foreign.
Result<NodeGraph> read_graph(const Api& api, const OrtGraph* graph);

// "node conv1 (Conv)".
std::string label_of(const GraphNode& node);

}  // namespace tuner::ort
