// An ONNX model as exporters write it: one graph of static shapes, as the bytes of its protobuf message
// (onnx.proto of github.com/onnx/onnx, IR version 8, operator set 17).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "compiler_core/base/dtype.h"

namespace tuner {

// TensorProto::DataType. For the types that our operands have.
int onnx_type(DType dtype);

// A graph: that of a model, or a branch or body as the attribute of a node.
class OnnxGraph {
 public:
  struct Subgraph {
    std::string bytes;
  };
  using Attribute =
      std::pair<std::string, std::variant<int64_t, double, std::vector<int64_t>, std::string,
                                          std::vector<double>, std::vector<std::string>, Subgraph>>;

  using Attributes = std::vector<Attribute>;

  // `nodes`: what nodes are called, with a number behind it.
  OnnxGraph(std::string name, std::string nodes) : name_(std::move(name)), nodes_(std::move(nodes)) {}
  explicit OnnxGraph(const std::string& name) : OnnxGraph(name, name + "_node") {}

  // What is given with every call, and what a call computes.
  void input(const std::string& name, DType dtype, const std::vector<int64_t>& shape);
  void output(const std::string& name, DType dtype, const std::vector<int64_t>& shape);
  // What the graph holds itself: row-major elements of this type.
  void weights(const std::string& name, DType dtype, const std::vector<int64_t>& shape,
               const std::string& elements);
  // In the order of computation. `op`: of the operator set, "Conv"; or "com.microsoft.QLinearAdd".
  void node(const std::string& op, const std::vector<std::string>& inputs,
            const std::vector<std::string>& outputs, const std::vector<Attribute>& attributes = {});
  Subgraph as_attribute() const { return {message()}; }

 protected:
  std::string message() const;
  // Whether a node of this graph itself is of "com.microsoft".
  bool has_microsofts() const { return has_microsofts_; }

 private:
  std::string name_, nodes_, fields_;
  int next_ = 0;
  bool has_microsofts_ = false;
};

class OnnxModel : public OnnxGraph {
 public:
  OnnxModel() : OnnxGraph("network", "node") {}

  // The whole model. Below 2 GB, as protobuf wants it.
  std::string bytes() const;
};

}  // namespace tuner
