// Graphs inside of nodes, as a file has them: the branches of If, the bodies of Loop and Scan. For
// graph_reader.cpp and the files of control flow only.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {

namespace onnx {
class GraphProto;  // onnx.proto
class NodeProto;
}  // namespace onnx

// How deep graphs may stand within each other: more is a file made to harm.
inline constexpr int kMostDepth = 16;
// InvalidArgument with the node: graphs stand deeper within each other than kMostDepth. Everything below
// requires that they do not.
Status check_depth(const onnx::GraphProto& graph);

// "Conv"; outside of ONNX's own domain "domain.Op".
std::string op_of(const onnx::NodeProto& node);
// A node without a name is called as its first output, or by its number.
std::string name_of(const onnx::GraphProto& graph, int n);
// "node y (Relu)".
std::string label_of(const onnx::GraphProto& graph, int n);

// If, Loop and Scan.
bool is_control_flow(std::string_view op);

// The names that the subgraphs of a node read and do not make themselves.
std::set<std::string> names_from_outside(const onnx::NodeProto& node);

// The subgraph that an attribute holds. InvalidArgument: there is none, or it is stored as something else.
Result<const onnx::GraphProto*> subgraph_of(const onnx::NodeProto& node, std::string_view attribute);
// The integers or the one integer of an attribute; `otherwise` if it is not there. InvalidArgument: stored as
// something else, or not as many as in `otherwise`.
Result<std::vector<int64_t>> integers_of(const onnx::NodeProto& node, std::string_view attribute,
                                         const std::vector<int64_t>& otherwise);
// InvalidArgument: an attribute with another name than these, or twice with the same.
Status check_attribute_names(const onnx::NodeProto& node, std::span<const std::string_view> names);

}  // namespace tuner
