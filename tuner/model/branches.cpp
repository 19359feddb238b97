// If: one branch, or both and a choice.
#include <array>

#include "compiler_core/graph/operator.h"
#include "tuner/model/control_flow.h"
#include "tuner/model/onnx.pb.h"
#include "tuner/model/subgraph.h"

namespace tuner {
namespace {

constexpr std::string_view kThen = "then_branch", kElse = "else_branch";

Result<Values> read_branch(GraphReader& reader, const onnx::NodeProto& node, std::string_view branch,
                           const Scope& scope) {
  ASSIGN_OR_RETURN(const onnx::GraphProto* graph, subgraph_of(node, branch));
  auto made = reader.read_subgraph(*graph, {}, node.output_size(), scope);
  if (!made) return made.status().with_context(str(branch, ": "));
  return made;
}

// Both have elements of the same type at the same places: a choice between other ones would give a shape that
// depends on data.
Status check_equal(const graph::GraphBuilder& builder, int output, graph::ValueId then,
                   graph::ValueId other) {
  const auto text = [&](graph::ValueId id) {
    return id == graph::kNoValue ? "empty" : to_text(builder[id].type);
  };
  if (then != graph::kNoValue && other != graph::kNoValue && builder[then].type == builder[other].type)
    return Status::ok();
  return invalid_argument("output ", output, " is ", text(then), " in ", kThen, " and ", text(other), " in ",
                          kElse, ", and its condition depends on data; expected one type and shape");
}

// Computes both branches and takes the results of one.
Result<Values> read_both(GraphReader& reader, const onnx::NodeProto& node, const std::string& name,
                         graph::ValueId condition, const Scope& scope) {
  ASSIGN_OR_RETURN(const Values then, read_branch(reader, node, kThen, scope));
  ASSIGN_OR_RETURN(const Values other, read_branch(reader, node, kElse, scope));
  if (!reader.builder()[condition].type.shape.empty()) {  // [1] would give a scalar a dimension
    ASSIGN_OR_RETURN(condition,
                     reader.add("tuner.View", name + "_condition", {{"shape", graph::Shape()}}, {condition}));
  }
  Values made;
  for (int i = 0; i < node.output_size(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (node.output(i).empty() || then[at] == other[at]) {
      made.push_back(then[at]);
      continue;
    }
    RETURN_IF_ERROR(check_equal(reader.builder(), i, then[at], other[at]));
    ASSIGN_OR_RETURN(const graph::ValueId chosen, reader.add("Where", i == 0 ? name : str(name, "_", i), {},
                                                             {condition, then[at], other[at]}));
    made.push_back(chosen);
  }
  return made;
}

}  // namespace

Result<Values> read_if(GraphReader& reader, const onnx::NodeProto& node, const std::string& name,
                       const Scope& scope) {
  constexpr std::array<std::string_view, 2> kAttributes{kThen, kElse};
  RETURN_IF_ERROR(check_attribute_names(node, kAttributes));
  for (const std::string_view branch : kAttributes) RETURN_IF_ERROR(subgraph_of(node, branch).status());
  ASSIGN_OR_RETURN(const Values inputs, reader.operands(node, scope));
  if (inputs.size() != 1 || inputs[0] == graph::kNoValue)
    return invalid_argument("found ", inputs.size(), " inputs, expected one with elements, the condition");
  const graph::Graph& graph = reader.builder().graph();
  const graph::TensorType type = graph[inputs[0]].type;
  if (type.dtype != DType::kBool || type.elements() != 1)
    return invalid_argument("input 0, the condition, is ", to_text(type), ", expected one bool");
  if (const auto& known = graph[inputs[0]].constant)
    return read_branch(reader, node, known->integers(DType::kBool)[0] != 0 ? kThen : kElse, scope);
  auto made = read_both(reader, node, name, inputs[0], scope);
  if (made) return made;
  // One branch may be all that is needed.
  const std::string options = constant_options(graph, inputs[0]);
  if (options.empty()) return made;
  return invalid_argument(made.message(), ". If its condition is the same in every run: ", options);
}

}  // namespace tuner
