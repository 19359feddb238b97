#include "tuner/model/subgraph.h"

#include <algorithm>

#include "tuner/model/onnx.pb.h"
#include "tuner/model/tensor_data.h"

namespace tuner {
namespace {

Status check_below(const onnx::GraphProto& graph, int depth) {
  for (int n = 0; n < graph.node_size(); ++n)
    for (const auto& a : graph.node(n).attribute()) {
      if (!a.has_g()) continue;
      if (depth == kMostDepth)
        return invalid_argument(label_of(graph, n), ": attribute ", plain(a.name()), " is graph ", depth + 1,
                                " of graphs within each other, expected at most ", kMostDepth);
      RETURN_IF_ERROR(check_below(a.g(), depth + 1));
    }
  return Status::ok();
}

std::set<std::string> read_from_outside(const onnx::GraphProto& graph) {
  std::set<std::string> read, own;
  for (const auto& input : graph.input()) own.insert(input.name());
  for (const auto& constant : graph.initializer()) own.insert(constant.name());
  for (const auto& node : graph.node()) {
    own.insert(node.output().begin(), node.output().end());
    read.insert(node.input().begin(), node.input().end());
    read.merge(names_from_outside(node));
  }
  for (const auto& output : graph.output()) read.insert(output.name());
  std::erase_if(read, [&](const std::string& name) { return name.empty() || own.contains(name); });
  return read;
}

const onnx::AttributeProto* find_attribute(const onnx::NodeProto& node, std::string_view name) {
  for (const auto& a : node.attribute())
    if (a.name() == name) return &a;
  return nullptr;
}

}  // namespace

Status check_depth(const onnx::GraphProto& graph) { return check_below(graph, 0); }

std::string op_of(const onnx::NodeProto& node) {
  const bool of_onnx = node.domain().empty() || node.domain() == "ai.onnx";
  return plain(of_onnx ? node.op_type() : node.domain() + "." + node.op_type());
}

std::string name_of(const onnx::GraphProto& graph, int n) {
  const onnx::NodeProto& node = graph.node(n);
  return plain(!node.name().empty() ? node.name() : node.output_size() > 0 ? node.output(0) : str("#", n));
}

std::string label_of(const onnx::GraphProto& graph, int n) {
  return str("node ", name_of(graph, n), " (", op_of(graph.node(n)), ")");
}

bool is_control_flow(std::string_view op) { return op == "If" || op == "Loop" || op == "Scan"; }

std::set<std::string> names_from_outside(const onnx::NodeProto& node) {
  std::set<std::string> names;
  for (const auto& a : node.attribute())
    if (a.has_g()) names.merge(read_from_outside(a.g()));
  return names;
}

Result<const onnx::GraphProto*> subgraph_of(const onnx::NodeProto& node, std::string_view attribute) {
  const onnx::AttributeProto* a = find_attribute(node, attribute);
  if (a == nullptr) return invalid_argument("attribute ", attribute, " is missing, expected a graph");
  if (a->type() != onnx::AttributeProto::GRAPH || !a->has_g())
    return invalid_argument("attribute ", attribute, " is none, expected a graph");
  return &a->g();
}

Result<std::vector<int64_t>> integers_of(const onnx::NodeProto& node, std::string_view attribute,
                                         const std::vector<int64_t>& otherwise) {
  const onnx::AttributeProto* a = find_attribute(node, attribute);
  if (a == nullptr) return otherwise;
  if (a->type() == onnx::AttributeProto::INT && a->has_i() && otherwise.size() == 1)
    return std::vector<int64_t>{a->i()};
  if (a->type() != onnx::AttributeProto::INTS)
    return invalid_argument("attribute ", attribute, " is of another type, expected integers");
  if (a->ints_size() != std::ssize(otherwise))
    return invalid_argument("attribute ", attribute, " has ", a->ints_size(), " numbers, expected ",
                            otherwise.size());
  return std::vector<int64_t>(a->ints().begin(), a->ints().end());
}

Status check_attribute_names(const onnx::NodeProto& node, std::span<const std::string_view> names) {
  std::set<std::string> seen;
  for (const auto& a : node.attribute()) {
    if (a.name().starts_with("__")) continue;  // a note of who made the model
    if (std::ranges::find(names, a.name()) == names.end())
      return invalid_argument("has no attribute ", plain(a.name()));
    if (!seen.insert(a.name()).second)
      return invalid_argument("attribute ", plain(a.name()), " stands twice");
  }
  return Status::ok();
}

}  // namespace tuner
