#include "tests/models/network_writer.h"

#include <algorithm>
#include <cmath>

#include "compiler_core/base/elements.h"
#include "compiler_core/base/status.h"

namespace tuner::testing {
namespace {

int64_t elements_of(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (const int64_t extent : shape) n *= extent;
  return n;
}

}  // namespace

Tensor NetworkWriter::input(std::vector<int64_t> shape) {
  model_.input("data", DType::kFloat32, shape);
  return {"data", std::move(shape)};
}
Tensor NetworkWriter::input(const std::string& name, std::vector<int64_t> shape, DType dtype) {
  model_.input(name, dtype, shape);
  return {name, std::move(shape)};
}
void NetworkWriter::output(const Tensor& x) { model_.output(x.name, DType::kFloat32, x.shape); }

std::string NetworkWriter::weights(const std::vector<int64_t>& shape, double mean, double deviation) {
  std::normal_distribution<float> numbers(static_cast<float>(mean), static_cast<float>(deviation));
  std::vector<float> drawn(static_cast<size_t>(elements_of(shape)));
  for (float& x : drawn) x = numbers(random_);
  const std::string name = str("weights", names_++);
  model_.weights(name, DType::kFloat32, shape, element_bytes(drawn, DType::kFloat32));
  return name;
}
std::string NetworkWriter::integers(const std::vector<int64_t>& values, bool scalar) {
  const std::string name = str("integers", names_++);
  const std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t));
  model_.weights(name, DType::kInt64,
                 scalar ? std::vector<int64_t>() : std::vector<int64_t>{std::ssize(values)}, bytes);
  return name;
}
std::string NetworkWriter::number(float value) {
  const std::string name = str("number", names_++);
  model_.weights(name, DType::kFloat32, {}, element_bytes({value}, DType::kFloat32));
  return name;
}
std::string NetworkWriter::node(const std::string& op, const std::vector<std::string>& inputs,
                                const std::vector<OnnxModel::Attribute>& attributes) {
  std::string name = str("t", names_++);
  model_.node(op, inputs, {name}, attributes);
  return name;
}

Tensor NetworkWriter::drawn(const std::vector<int64_t>& shape, double deviation) {
  return {weights(shape, 0, deviation), shape};
}
std::string NetworkWriter::byte(int value) {
  const std::string name = str("byte", names_++);
  model_.weights(name, DType::kUInt8, {}, std::string(1, static_cast<char>(value)));
  return name;
}
Tensor NetworkWriter::rounded(const Tensor& x, float scale, int zero) {
  const std::string units = number(scale), middle = byte(zero);
  const std::string bytes = node("QuantizeLinear", {x.name, units, middle});
  return {node("DequantizeLinear", {bytes, units, middle}), x.shape};
}
NetworkWriter::Bytes NetworkWriter::weights_in_bytes(const std::vector<int64_t>& shape, double deviation,
                                                     int64_t axis) {
  constexpr int kMost = 63;
  constexpr double kDeviations = 3;  // of the largest number from 0
  std::normal_distribution<double> numbers(0, kMost / kDeviations);
  std::string elements(static_cast<size_t>(elements_of(shape)), '\0');
  for (char& each : elements)
    each = static_cast<char>(std::lround(std::clamp<double>(numbers(random_), -kMost, kMost)));
  const int64_t count = shape[static_cast<size_t>(axis)];
  std::uniform_real_distribution<float> around(0.8F, 1.2F);
  std::vector<float> scales(static_cast<size_t>(count));
  for (float& each : scales) each = around(random_) * static_cast<float>(deviation * kDeviations / kMost);
  const std::string bytes = str("bytes", names_++), units = str("scales", names_++),
                    zeros = str("zeros", names_++);
  model_.weights(bytes, DType::kInt8, shape, elements);
  model_.weights(units, DType::kFloat32, {count}, element_bytes(scales, DType::kFloat32));
  model_.weights(zeros, DType::kInt8, {count}, std::string(scales.size(), '\0'));
  return {bytes, units, zeros, std::move(scales)};
}
Tensor NetworkWriter::drawn_bytes(const std::vector<int64_t>& shape, double deviation, int64_t axis) {
  const Bytes w = weights_in_bytes(shape, deviation, axis);
  return {node("DequantizeLinear", {w.bytes, w.units, w.zeros}, {{"axis", axis}}), shape};
}
Tensor NetworkWriter::product_in_bytes(const Tensor& x, int64_t results) {
  const int64_t terms = x.shape.back();
  const Bytes w = weights_in_bytes({terms, results}, std::sqrt(1.0 / static_cast<double>(terms)), /*axis=*/1);
  const auto [found, is_new] = rounded_.try_emplace(x.name);
  if (is_new) {
    for (std::string& name : found->second) name = str("t", names_++);
    const auto& names = found->second;
    model_.node("DynamicQuantizeLinear", {x.name}, {names.begin(), names.end()});
  }
  const auto& [bytes, scale, zero] = found->second;
  const std::string sums = node("MatMulInteger", {bytes, w.bytes, zero, w.zeros}),
                    real = node("Cast", {sums}, {{"to", int64_t{onnx_type(DType::kFloat32)}}}),
                    units = node("Mul", {scale, w.units});
  Tensor y{node("Mul", {real, units}), x.shape};
  y.shape.back() = results;
  return y;
}
Tensor NetworkWriter::product_in_4_bits(const Tensor& x, int64_t results) {
  constexpr int64_t kGroup = 32, kPerByte = 2;
  const int64_t terms = x.shape.back(), groups = (terms + kGroup - 1) / kGroup;
  std::uniform_int_distribution<int> bytes(0, 255);
  std::string elements(static_cast<size_t>(results * groups * kGroup / kPerByte), '\0');
  for (char& each : elements) each = static_cast<char>(bytes(random_));
  // Numbers from -8 to 7 have a deviation of 4.6.
  const double deviation = std::sqrt(1.0 / static_cast<double>(terms)) / 4.6;
  std::uniform_real_distribution<float> around(0.8F, 1.2F);
  std::vector<float> scales(static_cast<size_t>(results * groups));
  for (float& each : scales) each = around(random_) * static_cast<float>(deviation);
  const std::string weights = str("bytes", names_++), units = str("scales", names_++);
  model_.weights(weights, DType::kUInt8, {results, groups, kGroup / kPerByte}, elements);
  model_.weights(units, DType::kFloat32, {results * groups}, element_bytes(scales, DType::kFloat32));
  Tensor y{node("com.microsoft.MatMulNBits", {x.name, weights, units},
                {{"K", terms}, {"N", results}, {"bits", int64_t{4}}, {"block_size", kGroup}}),
           x.shape};
  y.shape.back() = results;
  return y;
}
Tensor NetworkWriter::drawn_rounded(const std::vector<int64_t>& shape, double deviation, float scale,
                                    int zero) {
  std::normal_distribution<double> numbers(zero, deviation / double{scale});
  std::string elements(static_cast<size_t>(elements_of(shape)), '\0');
  for (char& each : elements)
    each = static_cast<char>(std::lround(std::clamp<double>(numbers(random_), 0, 255)));
  const std::string bytes = str("bytes", names_++);
  model_.weights(bytes, DType::kUInt8, shape, elements);
  return {node("DequantizeLinear", {bytes, number(scale), byte(zero)}), shape};
}
Tensor NetworkWriter::gemm_in_bytes(const Tensor& x, float scale, int64_t results) {
  const int64_t terms = x.shape[1];
  const Bytes w = weights_in_bytes({results, terms}, std::sqrt(1.0 / static_cast<double>(terms)), /*axis=*/0);
  constexpr double kDeviation = 0.1;  // of the bias
  std::normal_distribution<double> numbers(0, kDeviation);
  std::vector<float> units;
  std::string elements;
  for (const float of_weights : w.scales) {
    units.push_back(scale * of_weights);
    const auto number = static_cast<int32_t>(std::lround(numbers(random_) / double{units.back()}));
    elements.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  const std::string bias = str("bias", names_++), scales = str("scales", names_++);
  model_.weights(bias, DType::kInt32, {results}, elements);
  model_.weights(scales, DType::kFloat32, {results}, element_bytes(units, DType::kFloat32));
  const std::string real = node("DequantizeLinear", {bias, scales}, {{"axis", int64_t{0}}});
  const std::string reals = node("DequantizeLinear", {w.bytes, w.units, w.zeros}, {{"axis", int64_t{0}}});
  return {node("Gemm", {x.name, reals, real}, {{"transB", int64_t{1}}}), {x.shape[0], results}};
}
Tensor NetworkWriter::list(const std::vector<int64_t>& values) {
  return {integers(values), {std::ssize(values)}};
}
Tensor NetworkWriter::integer(int64_t value) { return {integers({value}, /*scalar=*/true), {}}; }
Tensor NetworkWriter::scalar(float value) { return {number(value), {}}; }
Tensor NetworkWriter::lower_triangle(int64_t rows, int64_t columns) {
  std::string elements;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t s = 0; s < columns; ++s) elements += s <= i + columns - rows ? '\1' : '\0';
  const std::string name = str("triangle", names_++);
  const std::vector<int64_t> shape{1, 1, rows, columns};
  model_.weights(name, DType::kBool, shape, elements);
  return {name, shape};
}
Tensor NetworkWriter::add(const std::string& op, const std::vector<Tensor>& inputs,
                          std::vector<int64_t> shape, const std::vector<OnnxModel::Attribute>& attributes) {
  return add(op, inputs, {{str("t", names_++), std::move(shape)}}, attributes)[0];
}
std::vector<Tensor> NetworkWriter::add(const std::string& op, const std::vector<Tensor>& inputs,
                                       std::vector<Tensor> results,
                                       const std::vector<OnnxModel::Attribute>& attributes) {
  std::vector<std::string> in, out;
  for (const Tensor& x : inputs) in.push_back(x.name);
  for (const Tensor& x : results) out.push_back(x.name);
  model_.node(op, in, out, attributes);
  return results;
}

Tensor NetworkWriter::conv(const Tensor& x, const Conv& c) {
  const int64_t in = x.channels() / c.groups, pad = c.dilation * (c.kernel / 2);
  const double deviation = std::sqrt(2.0 / static_cast<double>(in * c.kernel * c.kernel));
  std::vector<std::string> inputs{x.name, weights({c.channels, in, c.kernel, c.kernel}, 0, deviation)};
  if (c.bias) inputs.push_back(weights({c.channels}, 0, 0.1));
  const std::vector<int64_t> kernel{c.kernel, c.kernel}, strides{c.stride, c.stride},
      pads{pad, pad, pad, pad};
  const auto extent = [&](int64_t n) {
    return (n + 2 * pad - c.dilation * (c.kernel - 1) - 1) / c.stride + 1;
  };
  return {node("Conv", inputs,
               {{"dilations", std::vector<int64_t>{c.dilation, c.dilation}},
                {"group", c.groups},
                {"kernel_shape", kernel},
                {"pads", pads},
                {"strides", strides}}),
          {x.shape[0], c.channels, extent(x.shape[2]), extent(x.shape[3])}};
}
Tensor NetworkWriter::conv_transpose(const Tensor& x, int64_t channels) {
  const double deviation = std::sqrt(2.0 / static_cast<double>(x.channels()));
  const std::vector<int64_t> two{2, 2};
  return {node("ConvTranspose",
               {x.name, weights({x.channels(), channels, 2, 2}, 0, deviation), weights({channels}, 0, 0.1)},
               {{"kernel_shape", two}, {"strides", two}}),
          {x.shape[0], channels, 2 * x.shape[2], 2 * x.shape[3]}};
}
Tensor NetworkWriter::batch_norm(const Tensor& x) {
  const std::vector<int64_t> c{x.channels()};
  // Variances far from zero: means of squares are.
  return {node("BatchNormalization",
               {x.name, weights(c, 1, 0.1), weights(c, 0, 0.1), weights(c, 0, 0.1), weights(c, 1, 0.05)},
               {{"epsilon", 1e-5}}),
          x.shape};
}
Tensor NetworkWriter::gemm(const Tensor& x, int64_t results) {
  const int64_t terms = x.shape[1];
  const double deviation = std::sqrt(1.0 / static_cast<double>(terms));
  return {node("Gemm", {x.name, weights({results, terms}, 0, deviation), weights({results}, 0, 0.1)},
               {{"transB", int64_t{1}}}),
          {x.shape[0], results}};
}
Tensor NetworkWriter::max_pool(const Tensor& x, int64_t kernel, int64_t stride) {
  const int64_t pad = kernel == stride ? 0 : kernel / 2;
  const auto extent = [&](int64_t n) { return (n + 2 * pad - kernel) / stride + 1; };
  return {node("MaxPool", {x.name},
               {{"kernel_shape", std::vector<int64_t>{kernel, kernel}},
                {"pads", std::vector<int64_t>{pad, pad, pad, pad}},
                {"strides", std::vector<int64_t>{stride, stride}}}),
          {x.shape[0], x.channels(), extent(x.shape[2]), extent(x.shape[3])}};
}
Tensor NetworkWriter::lower(const Tensor& x) {
  const std::vector<int64_t> window{2, 1};
  return {node("MaxPool", {x.name}, {{"kernel_shape", window}, {"strides", window}}),
          {x.shape[0], x.channels(), x.shape[2] / 2, x.shape[3]}};
}
Tensor NetworkWriter::global_average(const Tensor& x) {
  return {node("GlobalAveragePool", {x.name}), {x.shape[0], x.channels(), 1, 1}};
}

Tensor NetworkWriter::relu6(const Tensor& x) {
  return {node("Clip", {x.name, number(0), number(6)}), x.shape};
}
Tensor NetworkWriter::unary(const std::string& op, const Tensor& x,
                            const std::vector<OnnxModel::Attribute>& attributes) {
  return {node(op, {x.name}, attributes), x.shape};
}
Tensor NetworkWriter::binary(const std::string& op, const Tensor& a, const Tensor& b) {
  return {node(op, {a.name, b.name}), a.shape};
}
Tensor NetworkWriter::concat(const std::vector<Tensor>& parts, int64_t axis) {
  std::vector<std::string> names;
  std::vector<int64_t> shape = parts[0].shape;
  shape[static_cast<size_t>(axis)] = 0;
  for (const Tensor& part : parts) {
    names.push_back(part.name);
    shape[static_cast<size_t>(axis)] += part.shape[static_cast<size_t>(axis)];
  }
  return {node("Concat", names, {{"axis", axis}}), shape};
}
std::vector<Tensor> NetworkWriter::halves(const Tensor& x) {
  const int64_t half = x.channels() / 2;
  const std::vector<std::string> names{str("t", names_), str("t", names_ + 1)};
  names_ += 2;
  model_.node("Split", {x.name, integers({half, half})}, names, {{"axis", int64_t{1}}});
  std::vector<int64_t> shape = x.shape;
  shape[1] = half;
  return {{names[0], shape}, {names[1], shape}};
}
Tensor NetworkWriter::enlarged(const Tensor& x) {
  const std::string scales = str("scales", names_++);
  model_.weights(scales, DType::kFloat32, {4}, element_bytes({1, 1, 2, 2}, DType::kFloat32));
  return {node("Resize", {x.name, "", scales},
               {{"coordinate_transformation_mode", std::string("asymmetric")},
                {"mode", std::string("nearest")},
                {"nearest_mode", std::string("floor")}}),
          {x.shape[0], x.channels(), 2 * x.shape[2], 2 * x.shape[3]}};
}
Tensor NetworkWriter::enlarged_to(const Tensor& x, const Tensor& other) {
  const OnnxModel::Attribute to_int64{"to", int64_t{onnx_type(DType::kInt64)}};
  const auto extent = [&](int64_t axis) {
    const std::string all = node("Shape", {other.name});
    const std::string one = node("Gather", {all, integers({axis}, /*scalar=*/true)}, {{"axis", int64_t{0}}});
    return node("Unsqueeze", {node("Cast", {one}, {to_int64}), integers({0})});
  };
  const std::string size =
      node("Cast", {node("Concat", {extent(2), extent(3)}, {{"axis", int64_t{0}}})}, {to_int64});
  const std::string images =
      node("Slice", {node("Shape", {x.name}), integers({0}), integers({2}), integers({0})});
  const std::string sizes = node("Concat", {images, size}, {{"axis", int64_t{0}}});
  return {
      node("Resize", {x.name, "", "", sizes},
           {{"coordinate_transformation_mode", std::string("half_pixel")}, {"mode", std::string("linear")}}),
      {x.shape[0], x.channels(), other.shape[2], other.shape[3]}};
}
Tensor NetworkWriter::transposed(const Tensor& x, const std::vector<int64_t>& order) {
  std::vector<int64_t> shape;
  for (const int64_t d : order) shape.push_back(x.shape[static_cast<size_t>(d)]);
  return {node("Transpose", {x.name}, {{"perm", order}}), shape};
}
Tensor NetworkWriter::flattened(const Tensor& x) {
  const std::string batch =
      node("Gather", {node("Shape", {x.name}), integers({0}, /*scalar=*/true)}, {{"axis", int64_t{0}}});
  const std::string shape =
      node("Concat", {node("Unsqueeze", {batch, integers({0})}), integers({-1})}, {{"axis", int64_t{0}}});
  return {node("Reshape", {x.name, shape}), {x.shape[0], elements_of(x.shape) / x.shape[0]}};
}
Tensor NetworkWriter::reshaped(const Tensor& x, const std::vector<int64_t>& shape) {
  return {node("Reshape", {x.name, integers(shape)}), shape};
}
Tensor NetworkWriter::softmax(const Tensor& x, int64_t axis) { return unary("Softmax", x, {{"axis", axis}}); }

Tensor NetworkWriter::linear(const Tensor& x, int64_t results) {
  const int64_t terms = x.shape.back();
  const double deviation = std::sqrt(1.0 / static_cast<double>(terms));
  std::vector<int64_t> shape = x.shape;
  shape.back() = results;
  const std::string product = node("MatMul", {x.name, weights({terms, results}, 0, deviation)});
  return {node("Add", {weights({results}, 0, 0.1), product}), shape};
}
Tensor NetworkWriter::layer_norm(const Tensor& x) {
  const std::vector<int64_t> c{x.shape.back()};
  return {node("LayerNormalization", {x.name, weights(c, 1, 0.1), weights(c, 0, 0.1)},
               {{"axis", int64_t{-1}}, {"epsilon", 1e-5}}),
          x.shape};
}
Tensor NetworkWriter::attention(const Tensor& x) {
  const int64_t c = x.shape.back();
  const Tensor query = linear(x, c), key = transposed(linear(x, c), {0, 2, 1}), value = linear(x, c);
  const std::string scale = number(static_cast<float>(1 / std::sqrt(static_cast<double>(c))));
  const Tensor scores{node("Mul", {node("MatMul", {query.name, key.name}), scale}),
                      {x.shape[0], x.shape[1], x.shape[1]}};
  return linear({node("MatMul", {softmax(scores, -1).name, value.name}), x.shape}, c);
}
Tensor NetworkWriter::squeezed(const Tensor& x, int64_t axis) {
  const std::string one = node("Gather", {node("Shape", {x.name}), integers({axis})}, {{"axis", int64_t{0}}});
  const std::string fits = node("Equal", {one, integers({1})});
  std::vector<int64_t> shape = x.shape;
  shape.erase(shape.begin() + axis);
  const std::string axes = integers({axis}), name = str("choice", names_++);
  OnnxGraph then(name + "_then"), otherwise(name + "_else");
  then.node("Squeeze", {x.name, axes}, {name + "_squeezed"});
  then.output(name + "_squeezed", DType::kFloat32, shape);
  otherwise.node("Identity", {x.name}, {name + "_same"});
  otherwise.output(name + "_same", DType::kFloat32, x.shape);
  return {
      node("If", {fits}, {{"then_branch", then.as_attribute()}, {"else_branch", otherwise.as_attribute()}}),
      shape};
}
Tensor NetworkWriter::louder(const Tensor& x) {
  const std::string largest = node("ReduceMax", {node("Abs", {x.name})}, {{"keepdims", int64_t{0}}});
  const std::string quiet = node("Less", {largest, number(0.5)}), name = str("choice", names_++);
  OnnxGraph then(name + "_then"), otherwise(name + "_else");
  then.node("Div", {x.name, largest}, {name + "_loud"});
  then.output(name + "_loud", DType::kFloat32, x.shape);
  otherwise.node("Identity", {x.name}, {name + "_same"});
  otherwise.output(name + "_same", DType::kFloat32, x.shape);
  return {
      node("If", {quiet}, {{"then_branch", then.as_attribute()}, {"else_branch", otherwise.as_attribute()}}),
      x.shape};
}
Tensor NetworkWriter::centered(const Tensor& x) {
  const std::vector<int64_t> row{x.shape[1], x.shape[2]};
  const std::string kept = number(0.9F), added = number(0.1F), name = str("scan", names_++);
  OnnxGraph body(name + "_body");
  body.input("mean", DType::kFloat32, row);
  body.input("frame", DType::kFloat32, row);
  body.node("Mul", {"mean", kept}, {"old"});
  body.node("Mul", {"frame", added}, {"new"});
  body.node("Add", {"old", "new"}, {"mean_out"});
  body.node("Sub", {"frame", "mean_out"}, {"centered"});
  body.output("mean_out", DType::kFloat32, row);
  body.output("centered", DType::kFloat32, row);
  const std::string last = str("t", names_++), made = str("t", names_++);
  model_.node("Scan", {weights(row, 0, 0.1), x.name}, {last, made},
              {{"body", body.as_attribute()}, {"num_scan_inputs", int64_t{1}}});
  return {made, x.shape};
}

}  // namespace tuner::testing
