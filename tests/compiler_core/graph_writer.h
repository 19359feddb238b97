// Graphs for tests: written operator by operator, or drawn from a seed.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "compiler_core/graph/builder.h"
#include "compiler_core/oracle/oracle.h"

namespace tuner::graph::testing {

using Numbers = std::vector<double>;
using Dims = std::vector<int64_t>;

// Writes graphs of float32 tensors, operator by operator.
class GraphWriter {
 public:
  GraphWriter() : builder_("test", interpret) {}

  ValueId input(Dims shape) {
    return builder_.input(str("x", ++names_), {DType::kFloat32, std::move(shape)});
  }
  ValueId constant(Dims shape, const Numbers& numbers) {
    return builder_.constant(str("c", ++names_), {DType::kFloat32, std::move(shape)},
                             Constant::of(numbers, DType::kFloat32));
  }
  ValueId constant_of(DType dtype, Dims shape, const Numbers& numbers) {
    return builder_.constant(str("c", ++names_), {dtype, std::move(shape)}, Constant::of(numbers, dtype));
  }
  ValueId number(double x) { return constant({}, {x}); }
  ValueId integer(int64_t x) { return constant_of(DType::kInt64, {}, {static_cast<double>(x)}); }
  ValueId list(const Dims& integers) {
    return builder_.constant(str("i", ++names_), {DType::kInt64, {std::ssize(integers)}},
                             Constant::of(integers, DType::kInt64));
  }
  ValueId add(const std::string& op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    const auto made = builder_.add({.name = str("n", ++names_),
                                    .op = op,
                                    .attributes = std::move(attributes),
                                    .inputs = std::move(inputs)},
                                   {str("v", names_)});
    CHECK(made.is_ok()) << made.message();
    return made->front();
  }
  // An operator of several results.
  std::vector<ValueId> add_all(const std::string& op, std::vector<ValueId> inputs, Attributes attributes,
                               int results) {
    std::vector<std::string> names;
    for (int k = 0; k < results; ++k) names.push_back(str("v", names_ + 1, "_", k));
    const auto made = builder_.add({.name = str("n", ++names_),
                                    .op = op,
                                    .attributes = std::move(attributes),
                                    .inputs = std::move(inputs)},
                                   names);
    CHECK(made.is_ok()) << made.message();
    return *made;
  }
  const Dims& shape(ValueId id) const { return builder_[id].type.shape; }
  Graph finish(std::vector<ValueId> outputs) { return builder_.finish(std::move(outputs)); }

 private:
  GraphBuilder builder_;
  int names_ = 0;
};

// Activations as exporters write them.
inline ValueId written_out(GraphWriter& w, const std::string& what, ValueId x) {
  if (what == "Swish") return w.add("Mul", {w.add("Sigmoid", {x}), x});
  if (what == "Mish") return w.add("Mul", {x, w.add("Tanh", {w.add("Softplus", {x})})});
  if (what == "HardSwish") {
    const ValueId clip = w.add("Clip", {w.add("Add", {x, w.number(3)}), w.number(0), w.number(6)});
    return w.add("Div", {w.add("Mul", {x, clip}), w.number(6)});
  }
  if (what == "HardSwish by HardSigmoid")
    return w.add("Mul", {x, w.add("HardSigmoid", {x}, {{"alpha", 1.0 / 6}})});
  if (what == "Gelu") {
    const ValueId erf = w.add("Erf", {w.add("Div", {x, w.number(std::sqrt(2.0))})});
    return w.add("Mul", {w.add("Mul", {x, w.add("Add", {erf, w.number(1)})}), w.number(0.5)});
  }
  if (what == "Gelu in another order") {
    const ValueId erf = w.add("Erf", {w.add("Mul", {x, w.number(std::sqrt(0.5))})});
    return w.add("Mul", {w.add("Mul", {w.number(0.5), x}), w.add("Add", {w.number(1), erf})});
  }
  if (what == "Gelu by tanh") {
    const ValueId cube = w.add("Mul", {w.number(0.044715), w.add("Pow", {x, w.number(3)})});
    const ValueId inner = w.add("Mul", {w.number(0.7978845608), w.add("Add", {x, cube})});
    return w.add("Mul",
                 {w.add("Mul", {x, w.number(0.5)}), w.add("Add", {w.add("Tanh", {inner}), w.number(1)})});
  }
  const int64_t last = std::ssize(w.shape(x)) - 1;
  const Attributes axes{{"axes", Dims{last}}};
  const ValueId d = w.add("Sub", {x, w.add("ReduceMean", {x}, axes)});
  const ValueId square = what == "LayerNormalization" ? w.add("Pow", {d, w.number(2)}) : w.add("Mul", {d, d});
  const ValueId deviation =
      w.add("Sqrt", {w.add("Add", {w.add("ReduceMean", {square}, axes), w.number(1e-5)})});
  const ValueId norm = w.add("Div", {d, deviation});
  if (what != "LayerNormalization") return norm;
  const int64_t n = w.shape(x).back();
  Numbers scale, shift;
  for (int64_t k = 0; k < n; ++k) {
    scale.push_back(1 + 0.25 * static_cast<double>(k));
    shift.push_back(-0.5 * static_cast<double>(k));
  }
  return w.add("Add", {w.add("Mul", {norm, w.constant({n}, scale)}), w.constant({n}, shift)});
}
inline constexpr const char* kPatterns[] = {"Swish",
                                            "Mish",
                                            "HardSwish",
                                            "HardSwish by HardSigmoid",
                                            "Gelu",
                                            "Gelu in another order",
                                            "Gelu by tanh",
                                            "LayerNormalization",
                                            "LayerNormalization without scale"};

class RandomGraph {
 public:
  explicit RandomGraph(uint32_t seed) : random_(seed) {
    const int inputs = pick(1, 3);
    for (int k = 0; k < inputs; ++k) values_.push_back(w_.input(shape()));
    for (int k = pick(4, 14); k > 0; --k) step();
  }
  Graph finish() {
    std::vector<ValueId> outputs{values_.back()};
    while (pick(0, 2) == 0) outputs.push_back(any());
    return w_.finish(outputs);
  }
  double real() { return std::uniform_real_distribution<double>(-1.5, 1.5)(random_); }

 private:
  int pick(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  ValueId any() { return values_[static_cast<size_t>(pick(0, static_cast<int>(values_.size()) - 1))]; }
  Dims shape() { return {pick(1, 2), pick(1, 3), pick(1, 4), pick(1, 4)}; }
  ValueId constant(Dims shape) {
    Numbers numbers;
    for (int64_t n = TensorType{DType::kFloat32, shape}.elements(); n > 0; --n) numbers.push_back(real());
    return w_.constant(std::move(shape), numbers);
  }
  ValueId positive(int64_t n) {
    Numbers numbers;
    for (; n > 0; --n) numbers.push_back(0.5 + std::fabs(real()));
    return w_.constant({std::ssize(numbers)}, numbers);
  }

  void step() {
    const ValueId x = any();
    const Dims s = w_.shape(x);
    switch (pick(0, 15)) {
      case 0:
        return keep(w_.add(one_of({"Relu", "Sigmoid", "Tanh", "Neg", "Identity", "Dropout"}), {x}));
      case 1:
        return keep(
            w_.add(one_of({"Mul", "Add", "Sub"}), {x, constant(pick(0, 1) == 0 ? Dims{} : channel(s))}));
      case 2:
        if (s.size() != 4) return reshape(x);
        return convolution(x);
      case 3:
        if (s.size() < 2) return reshape(x);
        return keep(w_.add("BatchNormalization",
                           {x, constant({s[1]}), constant({s[1]}), constant({s[1]}), positive(s[1])}));
      case 4:
        return keep(written_out(w_, kPatterns[pick(0, static_cast<int>(std::size(kPatterns)) - 1)], x));
      case 5:
        return keep(w_.add(one_of({"Add", "Mul"}), {x, w_.add("Relu", {x})}));
      case 6:
        return keep(
            w_.add("Mul", {x, w_.add("Exp", {w_.add("Neg", {constant({})})})}));  // a constant to fold
      case 7:
        return keep(w_.add("Transpose", {x}));
      case 8:
        return keep(w_.add("Concat", {x, x}, {{"axis", int64_t{pick(0, static_cast<int>(s.size()) - 1)}}}));
      case 9:
        return split(x);
      case 10:
        return slice(x);
      case 11:
        return pad(x);
      case 12:
        if (s.size() != 4) return slice(x);
        return pooling(x);
      case 13:
        if (s.size() != 4) return pad(x);
        return transposed_convolution(x);
      case 14:
        return gemm(x);
      default:
        return reshape(x);
    }
  }
  std::string one_of(std::vector<std::string> names) {
    return names[static_cast<size_t>(pick(0, static_cast<int>(names.size()) - 1))];
  }
  static Dims channel(const Dims& s) {
    Dims shape(s.size() < 2 ? 1 : s.size() - 1, 1);
    shape[0] = s.size() < 2 ? 1 : s[1];
    return shape;
  }
  void keep(ValueId id) {
    if (TensorType{DType::kFloat32, w_.shape(id)}.elements() <= 400) values_.push_back(id);
  }
  void convolution(ValueId x) {
    const int64_t channels = w_.shape(x)[1], results = pick(1, 3);
    std::vector<ValueId> inputs{x, constant({results, channels, 1, 1})};
    if (pick(0, 1) == 0) inputs.push_back(constant({results}));
    keep(w_.add("Conv", inputs));
  }
  // Its other operands are constants, or made of x.
  void gemm(ValueId x) {
    const Dims s = w_.shape(x);
    const int64_t columns = s.empty() ? 1 : s.back();
    const ValueId a = w_.add("Reshape", {x, w_.list({-1, columns})});
    const int64_t rows = w_.shape(a)[0];
    const int64_t results = pick(0, 1) == 0 ? pick(1, 3) : rows;
    std::vector<ValueId> inputs{a, results == rows ? w_.add("Tanh", {a}) : constant({results, columns})};
    if (pick(0, 1) == 0) inputs.push_back(constant(pick(0, 1) == 0 ? Dims{results} : Dims{rows, 1}));
    Attributes attributes{{"transB", int64_t{1}}};
    if (pick(0, 1) == 0) attributes["alpha"] = 0.25 * pick(-2, 5);
    if (pick(0, 1) == 0) attributes["beta"] = 0.25 * pick(-2, 5);
    keep(w_.add("Gemm", inputs, attributes));
  }
  // Along one axis, in two parts where it has so much, by either form of the operator.
  void split(ValueId x) {
    const Dims s = w_.shape(x);
    if (s.empty()) return reshape(x);
    const int axis = pick(0, static_cast<int>(s.size()) - 1);
    const int64_t extent = s[static_cast<size_t>(axis)];
    if (extent == 1) return keep(w_.add("Split", {x}, {{"axis", int64_t{axis}}}));
    const int64_t first = pick(1, static_cast<int>(extent) - 1);
    for (const ValueId part :
         w_.add_all("Split", {x, w_.list({first, extent - first})}, {{"axis", int64_t{axis}}}, 2))
      keep(part);
  }
  // Some elements of one axis, forwards or backwards, every one or every second.
  void slice(ValueId x) {
    const Dims s = w_.shape(x);
    if (s.empty()) return reshape(x);
    const int axis = pick(0, static_cast<int>(s.size()) - 1);
    const auto extent = static_cast<int>(s[static_cast<size_t>(axis)]);
    const int from = pick(0, extent - 1), step = pick(1, 2);
    const bool backwards = pick(0, 2) == 0;
    const int to = backwards ? -extent - 1 : pick(from + 1, extent + 1);
    keep(w_.add("Slice",
                {x, w_.list({from}), w_.list({to}), w_.list({axis - (pick(0, 1) == 0 ? std::ssize(s) : 0)}),
                 w_.list({backwards ? -step : step})}));
  }
  // A border of up to two elements of each axis: a number, what is at the edge, or what lies mirrored.
  void pad(ValueId x) {
    const Dims s = w_.shape(x);
    const std::string mode = s.empty() ? "constant" : one_of({"constant", "edge", "reflect"});
    Dims pads;
    for (size_t k = 0; k < 2 * s.size(); ++k) {
      const int64_t extent = s[k % s.size()];
      pads.push_back(pick(0, static_cast<int>(mode == "reflect" ? std::min<int64_t>(2, extent - 1) : 2)));
    }
    if (pads.empty()) return reshape(x);
    std::vector<ValueId> inputs{x, w_.list(pads)};
    if (mode == "constant" && pick(0, 1) == 0) inputs.push_back(constant({}));
    keep(w_.add("Pad", inputs, {{"mode", mode}}));
  }
  void pooling(ValueId x) {
    const Dims s = w_.shape(x);
    if (pick(0, 3) == 0) return keep(w_.add(one_of({"GlobalAveragePool", "GlobalMaxPool"}), {x}));
    Attributes attributes;
    Dims kernel, pads(4), strides;
    for (size_t d = 0; d < 2; ++d) {
      kernel.push_back(pick(1, static_cast<int>(std::min<int64_t>(3, s[d + 2]))));
      strides.push_back(pick(1, 2));
      pads[d] = pads[d + 2] = kernel[d] > 1 ? pick(0, 1) : 0;
    }
    attributes = {{"kernel_shape", kernel}, {"strides", strides}, {"pads", pads}};
    const std::string op = one_of({"MaxPool", "AveragePool"});
    if (op == "AveragePool" && pick(0, 1) == 0) attributes["count_include_pad"] = int64_t{1};
    if (pick(0, 3) == 0) attributes["ceil_mode"] = int64_t{1};
    keep(w_.add(op, {x}, attributes));
  }
  void transposed_convolution(ValueId x) {
    const int64_t channels = w_.shape(x)[1], results = pick(1, 2), kernel = pick(1, 3), stride = pick(1, 2);
    std::vector<ValueId> inputs{x, constant({channels, results, kernel, kernel})};
    if (pick(0, 1) == 0) inputs.push_back(constant({results}));
    const int64_t cropped = kernel > 1 && w_.shape(x)[2] > 1 && w_.shape(x)[3] > 1 ? pick(0, 1) : 0;
    keep(w_.add("ConvTranspose", inputs,
                {{"strides", Dims{stride, stride}}, {"pads", Dims{cropped, cropped, cropped, cropped}}}));
  }
  void reshape(ValueId x) {
    const Dims s = w_.shape(x);
    if (pick(0, 3) == 0)
      return keep(w_.add("Flatten", {x}, {{"axis", int64_t{pick(0, static_cast<int>(s.size()))}}}));
    if (pick(0, 2) == 0) return keep(w_.add("Unsqueeze", {x, w_.list({0})}));
    keep(w_.add("Reshape", {x, w_.list({1, s.empty() ? 1 : s.back(), -1, 1})}));
  }

  std::mt19937 random_;
  GraphWriter w_;
  std::vector<ValueId> values_;
};

}  // namespace tuner::graph::testing
