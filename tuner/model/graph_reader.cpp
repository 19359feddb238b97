#include "tuner/model/graph_reader.h"

#include <algorithm>
#include <set>

#include "compiler_core/graph/operator.h"
#include "tuner/model/control_flow.h"
#include "tuner/model/node_attribute.h"
#include "tuner/model/node_order.h"
#include "tuner/model/onnx.pb.h"
#include "tuner/model/subgraph.h"

namespace tuner {
namespace {

Status define(Scope& scope, const std::string& name, graph::ValueId id) {
  if (!scope.define(name, id)) return invalid_argument("\"", plain(name), "\" is made twice");
  return Status::ok();
}

// What a file says of a branch's or body's value. Extents are left alone: in a loop they may change.
Status check_type(const char* what, const onnx::ValueInfoProto& declared, const graph::TensorType& type) {
  if (!declared.has_type()) return Status::ok();
  if (!declared.type().has_tensor_type())
    return invalid_argument(what, " \"", plain(declared.name()),
                            "\" is no tensor; sequences, maps and optionals are not served");
  const int number = declared.type().tensor_type().elem_type();
  if (number == onnx::TensorProto::UNDEFINED) return Status::ok();
  const auto dtype = dtype_of(number);
  if (dtype && *dtype == type.dtype) return Status::ok();
  return invalid_argument(what, " \"", plain(declared.name()), "\": found elements of type ",
                          type_name_of(number), " in the model, expected ", type.dtype,
                          ", which follows from its inputs");
}

// In nodes: one that has more than a few operands and attributes counts as several.
int64_t cost_of(const onnx::NodeProto& node) {
  constexpr int64_t kFew = 16;
  int64_t parts = int64_t{node.input_size()} + node.output_size() + node.attribute_size();
  for (const auto& a : node.attribute()) parts += int64_t{a.ints_size()} + a.floats_size() + a.strings_size();
  return 1 + parts / kFew;
}

}  // namespace

GraphReader::GraphReader(std::shared_ptr<const onnx::ModelProto> model, graph::GraphBuilder& builder,
                         TensorData& data, const RowBounds& bounds)
    : model_(std::move(model)), builder_(builder), data_(data), bounds_(bounds) {
  for (const auto& set : model_->opset_import())
    if (set.domain().empty() || set.domain() == "ai.onnx") operator_set_ = set.version();
}

Status GraphReader::read_initializer(const onnx::TensorProto& t, std::span<const std::byte> raw,
                                     const std::shared_ptr<const void>& owner, Scope& scope) {
  if (const auto known = constants_.find(&t); known != constants_.end())
    return define(scope, t.name(), known->second);
  auto value = data_.read(t, raw.data() == nullptr ? model_ : owner, raw);
  if (!value) return value.status().with_context(str("initializer \"", plain(t.name()), "\": "));
  const graph::ValueId id = builder_.constant(plain(t.name()), value->type, *value->constant);
  constants_.emplace(&t, id);
  return define(scope, t.name(), id);
}

Result<std::vector<size_t>> GraphReader::order_of(const onnx::GraphProto& graph, const Scope& scope) {
  if (const auto known = orders_.find(&graph); known != orders_.end()) return known->second;
  std::set<std::string> made;
  for (const auto& node : graph.node()) made.insert(node.output().begin(), node.output().end());
  std::vector<NodeNames> nodes;
  for (int n = 0; n < graph.node_size(); ++n) {
    const onnx::NodeProto& node = graph.node(n);
    nodes.push_back({label_of(graph, n),
                     {node.input().begin(), node.input().end()},
                     {node.output().begin(), node.output().end()}});
    // What a branch reads and nobody makes is told by who reads the branch; it may be the other one.
    for (const std::string& name : names_from_outside(node))
      if (made.contains(name)) nodes.back().inputs.push_back(name);
  }
  const auto is_known = [&](const std::string& name) {
    return scope.has_own(name) || (!made.contains(name) && scope.find(name));
  };
  ASSIGN_OR_RETURN(std::vector<size_t> order, node_order(nodes, is_known));
  return orders_.emplace(&graph, std::move(order)).first->second;
}

Status GraphReader::read_nodes(const onnx::GraphProto& graph, Scope& scope) {
  ASSIGN_OR_RETURN(const std::vector<size_t> order, order_of(graph, scope));
  for (const size_t n : order) {
    const Status read = read_node(graph, static_cast<int>(n), scope);
    // The builder names the node itself.
    if (!read)
      return read.message().starts_with("node ")
                 ? read
                 : read.with_context(label_of(graph, static_cast<int>(n)) + ": ");
  }
  return Status::ok();
}

Result<Values> GraphReader::operands(const onnx::NodeProto& node, const Scope& scope) const {
  Values inputs;
  for (const std::string& in : node.input()) {
    const auto made = in.empty() ? graph::kNoValue : scope.find(in);
    if (!made) return invalid_argument("reads \"", plain(in), "\", which nothing computes");
    inputs.push_back(*made);
  }
  return inputs;
}

Status GraphReader::read_node(const onnx::GraphProto& graph, int n, Scope& scope) {
  const onnx::NodeProto& proto = graph.node(n);
  graph::Node node{.name = name_of(graph, n) + suffix_, .op = op_of(proto), .operator_set = operator_set_};
  if (node.op == "Constant") return read_constant(proto, scope);
  Values made;
  if (is_control_flow(node.op)) {
    ASSIGN_OR_RETURN(made, read_control_flow(*this, proto, node.name, scope));
  } else {
    ASSIGN_OR_RETURN(node.inputs, operands(proto, scope));
    // Optional inputs at the end may be named or not.
    while (!node.inputs.empty() && node.inputs.back() == graph::kNoValue) node.inputs.pop_back();
    for (const auto& a : proto.attribute()) RETURN_IF_ERROR(read_attribute(a, data_, model_, node));
    std::vector<std::string> results;
    for (const std::string& out : proto.output()) results.push_back(out.empty() ? "" : plain(out) + suffix_);
    const std::string bound = bounds_.take(proto, node);
    Result<Values> added = builder_.add(std::move(node), results);
    if (!added) return invalid_argument(added.message(), bound);
    made = *std::move(added);
  }
  for (size_t i = 0; i < made.size(); ++i) {
    const std::string& name = proto.output(static_cast<int>(i));
    if (!name.empty()) RETURN_IF_ERROR(define(scope, name, made[i]));
  }
  return Status::ok();
}

Status GraphReader::read_constant(const onnx::NodeProto& proto, Scope& scope) {
  if (proto.output_size() != 1 || proto.attribute_size() != 1)
    return invalid_argument("expected one output and one attribute");
  if (const auto known = constants_.find(&proto); known != constants_.end())
    return define(scope, proto.output(0), known->second);
  RETURN_IF_ERROR(check_constant_attribute(proto.attribute(0)));
  ASSIGN_OR_RETURN(const graph::Value value, constant_of(proto.attribute(0)));
  const graph::ValueId id = builder_.constant(plain(proto.output(0)), value.type, *value.constant);
  constants_.emplace(&proto, id);
  return define(scope, proto.output(0), id);
}

Result<graph::Value> GraphReader::constant_of(const onnx::AttributeProto& a) {
  const auto list = [&](const auto& items, DType dtype, graph::Shape shape) -> Result<graph::Value> {
    const std::vector<double> numbers(items.begin(), items.end());
    return graph::Value{"", {dtype, std::move(shape)}, graph::Constant::of(numbers, dtype)};
  };
  if (a.name() == "value") return data_.read(a.t(), model_);
  if (a.name() == "value_float") return list(std::vector{a.f()}, DType::kFloat32, {});
  if (a.name() == "value_floats") return list(a.floats(), DType::kFloat32, {a.floats_size()});
  if (a.name() == "value_int")
    return graph::Value{
        "", {DType::kInt64, {}}, graph::Constant::of(std::vector<int64_t>{a.i()}, DType::kInt64)};
  if (a.name() == "value_ints")
    return graph::Value{
        "",
        {DType::kInt64, {a.ints_size()}},
        graph::Constant::of(std::vector<int64_t>(a.ints().begin(), a.ints().end()), DType::kInt64)};
  return invalid_argument("a constant given as ", plain(a.name()), " is not served");
}

// Each reading costs, also of a body without nodes: what a small file asks for is bounded.
Status GraphReader::spend(const onnx::GraphProto& graph) {
  int64_t cost = int64_t{1} + graph.initializer_size() + graph.input_size();
  for (const auto& node : graph.node()) cost += cost_of(node);
  if (!suffix_.empty()) unrolled_ += cost;
  if (unrolled_ <= kMostUnrolled) return Status::ok();
  return invalid_argument("unrolled, the loops of the model have more than ", kMostUnrolled,
                          " nodes; expected fewer iterations, or smaller bodies");
}

Result<Values> GraphReader::read_subgraph(const onnx::GraphProto& graph, const Values& inputs,
                                          int64_t outputs, const Scope& outer) {
  RETURN_IF_ERROR(spend(graph));
  if (graph.sparse_initializer_size() > 0) return invalid_argument("sparse initializers are not served");
  if (graph.output_size() != outputs)
    return invalid_argument("found ", graph.output_size(), " outputs, expected ", outputs,
                            ", as the node has them");
  Scope scope(&outer);
  std::set<std::string> initializers;
  for (const auto& t : graph.initializer()) initializers.insert(t.name());
  size_t given = 0;
  for (const auto& input : graph.input()) {
    // Old models list initializers, too.
    if (graph.input_size() > std::ssize(inputs) && initializers.contains(input.name())) continue;
    if (given++ >= inputs.size()) continue;
    const graph::ValueId id = inputs[given - 1];
    if (id != graph::kNoValue) RETURN_IF_ERROR(check_type("input", input, builder_[id].type));
    RETURN_IF_ERROR(define(scope, input.name(), id));
  }
  if (given != inputs.size())
    return invalid_argument("found ", given, " inputs, expected ", inputs.size(), ", as the node has them");
  for (const auto& t : graph.initializer()) RETURN_IF_ERROR(read_initializer(t, {}, model_, scope));
  RETURN_IF_ERROR(read_nodes(graph, scope));
  Values made;
  for (const auto& output : graph.output()) {
    const auto id = scope.find(output.name());
    if (!id) return invalid_argument("output \"", plain(output.name()), "\" is made by no node");
    if (*id != graph::kNoValue) RETURN_IF_ERROR(check_type("output", output, builder_[*id].type));
    made.push_back(*id);
  }
  return made;
}

Result<graph::ValueId> GraphReader::add(std::string_view op, const std::string& name,
                                        graph::Attributes attributes, Values inputs) {
  graph::Node node{
      .name = name, .op = std::string(op), .attributes = std::move(attributes), .inputs = std::move(inputs)};
  ASSIGN_OR_RETURN(const Values made, builder_.add(std::move(node), {name}));
  return made[0];
}

}  // namespace tuner
