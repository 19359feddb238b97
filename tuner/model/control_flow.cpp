#include "tuner/model/control_flow.h"

#include <algorithm>

#include "compiler_core/graph/operator.h"
#include "tuner/model/onnx.pb.h"

namespace tuner {
namespace {

Result<graph::ValueId> viewed(GraphReader& reader, const std::string& name, graph::ValueId value,
                              const graph::Shape& shape) {
  return reader.add("tuner.View", name, {{"shape", shape}}, {value});
}

// Concat takes any number, but its math has a choice for each.
constexpr std::ptrdiff_t kMostAtOnce = 64;
Result<graph::ValueId> joined(GraphReader& reader, const std::string& name, Values parts, int64_t axis) {
  while (parts.size() > 1) {
    Values larger;
    for (auto begin = parts.begin(); begin != parts.end();) {
      const auto end = begin + std::min(kMostAtOnce, parts.end() - begin);
      ASSIGN_OR_RETURN(const graph::ValueId made, reader.add("Concat", name, {{"axis", axis}}, {begin, end}));
      larger.push_back(made);
      begin = end;
    }
    parts = std::move(larger);
  }
  return parts[0];
}

}  // namespace

Result<Values> read_control_flow(GraphReader& reader, const onnx::NodeProto& node, const std::string& name,
                                 const Scope& scope) {
  if (node.op_type() == "If") return read_if(reader, node, name, scope);
  if (node.op_type() == "Loop") return read_loop(reader, node, name, scope);
  CHECK(node.op_type() == "Scan") << node.op_type() << " is no control flow";
  return read_scan(reader, node, name, scope);
}

Result<int64_t> known_number(const graph::Graph& graph, graph::ValueId id, DType dtype,
                             const std::string& what) {
  if (id == graph::kNoValue) return invalid_argument(what, " has no elements, expected one ", dtype);
  const graph::Value& value = graph[id];
  if (value.type.dtype != dtype || value.type.elements() != 1)
    return invalid_argument(what, " is ", to_text(value.type), ", expected one ", dtype);
  if (!value.constant) return not_constant(graph, what, id);
  return value.constant->integers(dtype)[0];
}

graph::ValueId number_of(graph::GraphBuilder& builder, const std::string& name, DType dtype, int64_t value,
                         int64_t rank) {
  graph::Shape shape(static_cast<size_t>(rank), 1);
  return builder.constant(name, {dtype, std::move(shape)},
                          graph::Constant::of(std::vector<int64_t>{value}, dtype));
}

Result<graph::ValueId> part_of(GraphReader& reader, const std::string& name, graph::ValueId value,
                               int64_t axis, int64_t index) {
  graph::Shape shape = reader.builder()[value].type.shape;
  shape.erase(shape.begin() + axis);
  using List = std::vector<int64_t>;
  ASSIGN_OR_RETURN(
      const graph::ValueId part,
      reader.add("Slice", name, {{"starts", List{index}}, {"ends", List{index + 1}}, {"axes", List{axis}}},
                 {value}));
  return viewed(reader, name, part, shape);
}

Result<graph::ValueId> stacked(GraphReader& reader, const std::string& name, const Values& values,
                               int64_t axis, const std::string& what) {
  CHECK(!values.empty()) << what << " has no parts";
  Values parts;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == graph::kNoValue) return invalid_argument(what, " has no elements in iteration ", i);
    const graph::TensorType& type = reader.builder()[values[i]].type;
    const graph::TensorType& first = reader.builder()[values[0]].type;
    if (type != first)
      return invalid_argument(what, " is ", to_text(first), " in iteration 0 and ", to_text(type),
                              " in iteration ", i, ", expected one type");
    if (axis > std::ssize(type.shape))
      return invalid_argument(what, " is ", to_text(type), " in an iteration, which has no place for axis ",
                              axis);
    graph::Shape shape = type.shape;
    shape.insert(shape.begin() + axis, 1);
    ASSIGN_OR_RETURN(const graph::ValueId part, viewed(reader, name, values[i], shape));
    parts.push_back(part);
  }
  return joined(reader, name, std::move(parts), axis);
}

}  // namespace tuner
