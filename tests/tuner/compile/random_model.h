// Random models of what the check of a library must not stumble over: masks of huge numbers, quantisation,
// numbers that are large, tiny or cancel each other, sines of large numbers, normalizations, and branches by
// comparison.
#pragma once

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "compiler_core/graph/graph.h"
#include "tests/models/onnx_model.h"

namespace tuner::testing {

class RandomModel {
 public:
  explicit RandomModel(uint32_t seed) : random_(seed), rows_(pick(2, 9)) {
    values_.push_back({input(DType::kFloat32, {rows_, pick(3, 40)}), 0});
    values_.back().columns = last_columns_;
    for (int64_t k = pick(4, 12); k > 0; --k) step();
    model_.output(values_.back().name, DType::kFloat32, {rows_, values_.back().columns});
  }
  std::string bytes() const { return model_.bytes(); }

 private:
  struct Value {
    std::string name;
    int64_t columns;
  };
  int64_t pick(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }
  double real(double size) { return std::uniform_real_distribution<double>(-size, size)(random_); }
  static std::string bytes_of(const std::vector<double>& numbers, DType dtype) {
    const graph::Constant made = graph::Constant::of(numbers, dtype);
    return {reinterpret_cast<const char*>(made.bytes().data()), made.bytes().size()};
  }

  std::string input(DType dtype, const std::vector<int64_t>& shape) {
    const std::string name = "in" + std::to_string(names_++);
    model_.input(name, dtype, shape);
    last_columns_ = shape[1];
    return name;
  }
  std::string weights(const std::vector<int64_t>& shape, double size) {
    std::vector<double> numbers(static_cast<size_t>(graph::TensorType{DType::kFloat32, shape}.elements()));
    for (double& x : numbers) x = real(size);
    return constant(shape, numbers, DType::kFloat32);
  }
  std::string constant(const std::vector<int64_t>& shape, const std::vector<double>& numbers, DType dtype) {
    const std::string name = "w" + std::to_string(names_++);
    model_.weights(name, dtype, shape, bytes_of(numbers, dtype));
    return name;
  }
  std::string number(double x) { return constant({}, {x}, DType::kFloat32); }
  std::string node(const std::string& op, const std::vector<std::string>& inputs,
                   const std::vector<OnnxModel::Attribute>& attributes = {}) {
    const std::string name = "v" + std::to_string(names_++);
    model_.node(op, inputs, {name}, attributes);
    return name;
  }
  void keep(const std::string& name, int64_t columns) { values_.push_back({name, columns}); }

  void step() {
    const Value x = values_[static_cast<size_t>(pick(0, std::ssize(values_) - 1))];
    switch (pick(0, 13)) {
      case 0: {  // a product, as a layer has it
        const int64_t n = pick(1, 40);
        return keep(node("Add", {node("MatMul", {x.name, weights({x.columns, n}, 1)}), weights({n}, 1)}), n);
      }
      case 1: {  // attention's mask
        const std::string mask = input(DType::kInt64, {rows_, x.columns});
        const std::string hidden = node("Sub", {number(1), node("Cast", {mask}, {{"to", int64_t{1}}})});
        const double huge =
            pick(0, 1) == 0 ? -10000.0 : -static_cast<double>(std::numeric_limits<float>::max());
        return keep(node("Softmax", {node("Add", {x.name, node("Mul", {hidden, number(huge)})})}), x.columns);
      }
      case 2: {  // bytes and back
        const std::string scale = number(0.01 + std::fabs(real(0.1)));
        const std::string zero = constant({}, {static_cast<double>(pick(0, 255))}, DType::kUInt8);
        const std::string byte = node("QuantizeLinear", {x.name, scale, zero});
        return keep(node("DequantizeLinear", {byte, scale, zero}), x.columns);
      }
      case 3:  // large and tiny
        return keep(node("Mul", {x.name, number(pick(0, 1) == 0 ? 3.7e5 : 2.3e-30)}), x.columns);
      case 4: {  // what cancels
        const std::string large = node("Add", {x.name, number(real(1e4))});
        return keep(node("Sub", {large, node("ReduceMean", {large}, {{"axes", std::vector<int64_t>{1}}})}),
                    x.columns);
      }
      case 5:
        return keep(node(pick(0, 1) == 0 ? "Sin" : "Cos", {node("Mul", {x.name, number(real(1e4))})}),
                    x.columns);
      case 6:
        return keep(node(one_of({"Relu", "Sigmoid", "Tanh", "Exp", "Neg", "Softplus", "Erf"}), {x.name}),
                    x.columns);
      case 7: {  // a branch by comparison
        const std::string above = node("Greater", {x.name, number(real(0.5))});
        return keep(node("Where", {above, x.name, node("Mul", {x.name, number(real(100))})}), x.columns);
      }
      case 8:
        return keep(node(one_of({"Floor", "Ceil", "Round"}), {node("Mul", {x.name, number(real(50))})}),
                    x.columns);
      case 9: {
        const std::vector<int64_t> n{x.columns};
        return keep(node("LayerNormalization", {x.name, weights(n, 1), weights(n, 1)}), x.columns);
      }
      case 10: {
        const Value y = values_[static_cast<size_t>(pick(0, std::ssize(values_) - 1))];
        return keep(node("Concat", {x.name, y.name}, {{"axis", int64_t{1}}}), x.columns + y.columns);
      }
      case 11:
        return keep(
            node("Div", {x.name, node("Sqrt", {node("Add", {node("Mul", {x.name, x.name}), number(1e-6)})})}),
            x.columns);
      case 12: {  // the range of the data itself
        const std::string as_double = node("ReduceMax", {x.name}, {{"axes", std::vector<int64_t>{1}}});
        return keep(node("Sub", {x.name, as_double}), x.columns);
      }
      default: {
        const int64_t n = pick(1, 20);
        const std::string bytes = input(DType::kUInt8, {rows_, x.columns});
        const std::string image = node("Cast", {bytes}, {{"to", int64_t{1}}});
        return keep(node("MatMul", {node("Mul", {image, x.name}), weights({x.columns, n}, 0.02)}), n);
      }
    }
  }
  std::string one_of(std::vector<std::string> names) {
    return names[static_cast<size_t>(pick(0, std::ssize(names) - 1))];
  }

  std::mt19937 random_;
  OnnxModel model_;
  int names_ = 0;
  int64_t rows_, last_columns_ = 0;
  std::vector<Value> values_;
};

}  // namespace tuner::testing
