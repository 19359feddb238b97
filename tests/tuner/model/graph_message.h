// Messages of graphs within graphs, written by hand: nodes, and what they hold.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tuner/model/onnx.pb.h"

namespace tuner::testing {

using Names = std::vector<std::string>;

inline onnx::NodeProto& add_node(onnx::GraphProto& graph, const std::string& op, const Names& inputs,
                                 const Names& outputs) {
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type(op);
  node.set_name("node_" + (outputs.empty() ? op : outputs[0]));
  for (const std::string& in : inputs) node.add_input(in);
  for (const std::string& out : outputs) node.add_output(out);
  return node;
}

inline onnx::AttributeProto& add_attribute(onnx::NodeProto& node, const std::string& name,
                                           onnx::AttributeProto::AttributeType type) {
  onnx::AttributeProto& a = *node.add_attribute();
  a.set_name(name);
  a.set_type(type);
  return a;
}
inline onnx::GraphProto& add_subgraph(onnx::NodeProto& node, const std::string& name) {
  onnx::GraphProto& graph = *add_attribute(node, name, onnx::AttributeProto::GRAPH).mutable_g();
  graph.set_name(name);
  return graph;
}
inline void add_integer(onnx::NodeProto& node, const std::string& name, int64_t value) {
  add_attribute(node, name, onnx::AttributeProto::INT).set_i(value);
}
inline void add_integers(onnx::NodeProto& node, const std::string& name, const std::vector<int64_t>& values) {
  auto& a = add_attribute(node, name, onnx::AttributeProto::INTS);
  for (const int64_t x : values) a.add_ints(x);
}

// An input or output; without a shape: one of a subgraph, which says its type only.
inline void describe(onnx::ValueInfoProto& value, const std::string& name, int type) {
  value.set_name(name);
  value.mutable_type()->mutable_tensor_type()->set_elem_type(type);
}
inline void describe(onnx::ValueInfoProto& value, const std::string& name, int type,
                     const std::vector<int64_t>& shape) {
  describe(value, name, type);
  auto& dims = *value.mutable_type()->mutable_tensor_type()->mutable_shape();
  for (const int64_t extent : shape) dims.add_dim()->set_dim_value(extent);
}

inline onnx::TensorProto tensor(const std::string& name, int type, const std::vector<int64_t>& shape,
                                const std::vector<double>& numbers) {
  onnx::TensorProto t;
  t.set_name(name);
  t.set_data_type(type);
  for (const int64_t extent : shape) t.add_dims(extent);
  for (const double x : numbers) {
    if (type == onnx::TensorProto::FLOAT) t.add_float_data(static_cast<float>(x));
    if (type == onnx::TensorProto::INT64) t.add_int64_data(static_cast<int64_t>(x));
    if (type == onnx::TensorProto::BOOL || type == onnx::TensorProto::INT32)
      t.add_int32_data(static_cast<int32_t>(x));
  }
  return t;
}
inline void add_constant(onnx::GraphProto& graph, const std::string& name, int type,
                         const std::vector<int64_t>& shape, const std::vector<double>& numbers) {
  *graph.add_initializer() = tensor(name, type, shape, numbers);
}

}  // namespace tuner::testing
