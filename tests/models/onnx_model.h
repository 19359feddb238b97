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

class OnnxModel {
 public:
  using Attribute = std::pair<std::string, std::variant<int64_t, double, std::vector<int64_t>, std::string,
                                                        std::vector<double>, std::vector<std::string>>>;

  // What is given with every call, and what a call computes.
  void input(const std::string& name, DType dtype, const std::vector<int64_t>& shape);
  void output(const std::string& name, DType dtype, const std::vector<int64_t>& shape);
  // What the model holds itself: row-major elements of this type.
  void weights(const std::string& name, DType dtype, const std::vector<int64_t>& shape,
               const std::string& elements);
  // In the order of computation. `op`: of the operator set, "Conv".
  void node(const std::string& op, const std::vector<std::string>& inputs,
            const std::vector<std::string>& outputs, const std::vector<Attribute>& attributes = {});

  // The whole model. Below 2 GB, as protobuf wants it.
  std::string bytes() const;

 private:
  std::string graph_;
  int nodes_ = 0;
};

}  // namespace tuner
