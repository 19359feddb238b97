#include "tests/models/quantized_networks.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "compiler_core/base/elements.h"
#include "tests/models/onnx_model.h"

namespace tuner::testing {
namespace {

using Shape = std::vector<int64_t>;

// A value of bytes, and what they stand for: (byte - zero) * scale.
struct Bytes {
  std::string name;
  Shape shape;
  float scale = 1;
  int zero = 0;
};

// Bytes of results spread around their zero point by about this.
constexpr double kSpread = 40;
// That of operands, on average.
constexpr double kOperands = 35;

class QuantizedWriter {
 public:
  // `between`: operators of float32 between DequantizeLinear and QuantizeLinear, instead of those on bytes.
  QuantizedWriter(const NetworkOptions& options, bool between)
      : options_(options), between_(between), random_(options.seed) {}

  std::string bytes() const { return model_.bytes(); }
  int64_t channels(int64_t published) const { return std::max<int64_t>(8, published / options_.narrower); }
  int64_t tokens_of(int64_t published) const {
    return options_.image == 0 ? published : options_.image / 2 + 1;
  }

  Bytes image(int64_t published) {
    const int64_t size = options_.image == 0 ? published : options_.image;
    const Shape shape{options_.batch, 3, size, size};
    model_.input("data", DType::kFloat32, shape);
    const Bytes x{"image", shape, 1.0F / 128, 0};
    model_.node("QuantizeLinear", {"data", real(x.scale), byte(x.zero)}, {x.name});
    return x;
  }

  // `linear`: around 128, for what is added up; else what is below 0 becomes 0, as behind a ReLU.
  Bytes conv(const Bytes& x, int64_t out, int64_t kernel, int64_t stride = 1, int64_t groups = 1,
             bool linear = false) {
    const int64_t in = x.shape[1] / groups, pad = kernel / 2;
    const Bytes y = result({x.shape[0], out, 1 + (x.shape[2] + 2 * pad - kernel) / stride,
                            1 + (x.shape[3] + 2 * pad - kernel) / stride},
                           linear);
    const std::vector<std::string> weights =
        drawn_weights({out, in, kernel, kernel}, in * kernel * kernel, out, x, y);
    write({.on_bytes = "QLinearConv",
           .on_floats = "Conv",
           .operands = {operand(x), weights},
           .bias = drawn_bias(out),
           .attributes = {{"kernel_shape", Shape{kernel, kernel}},
                          {"strides", Shape{stride, stride}},
                          {"pads", Shape{pad, pad, pad, pad}},
                          {"group", groups}}},
          y, x.scale);
    return y;
  }
  Bytes max_pool(const Bytes& x, int64_t kernel, int64_t stride) {
    const int64_t pad = kernel / 2;
    Bytes y = x;
    y.name = name();
    for (const size_t d : {2, 3}) y.shape[d] = 1 + (x.shape[d] + 2 * pad - kernel) / stride;
    move("MaxPool", {x.name}, y,
         {{"kernel_shape", Shape{kernel, kernel}},
          {"strides", Shape{stride, stride}},
          {"pads", Shape{pad, pad, pad, pad}}});
    return y;
  }
  Bytes add(const Bytes& a, const Bytes& b, bool linear) {
    Bytes y = result(a.shape, linear);
    y.scale = 1.25F * std::max(a.scale, b.scale);
    write({.on_bytes = "com.microsoft.QLinearAdd", .on_floats = "Add", .operands = {operand(a), operand(b)}},
          y);
    return y;
  }
  Bytes matmul(const Bytes& x, int64_t out, bool linear) {
    const Bytes y = result({x.shape[0], out}, linear);
    const std::vector<std::string> weights = drawn_weights({x.shape[1], out}, x.shape[1], out, x, y);
    write({.on_bytes = "QLinearMatMul", .on_floats = "MatMul", .operands = {operand(x), weights}}, y);
    return y;
  }
  // Of two activations, which stay on bytes in both forms.
  Bytes product(const Bytes& a, const Bytes& b, float scale, int zero) {
    Bytes y{name(), a.shape, scale, zero};
    y.shape.back() = b.shape.back();
    std::vector<std::string> inputs = operand(a);
    const std::vector<std::string> other = operand(b);
    inputs.insert(inputs.end(), other.begin(), other.end());
    inputs.insert(inputs.end(), {real(y.scale), byte(y.zero)});
    model_.node("QLinearMatMul", inputs, {y.name});
    return y;
  }
  Bytes softmax(const Bytes& x) {
    const Bytes y{name(), x.shape, 1.0F / 256, 0};
    write({.on_bytes = "com.microsoft.QLinearSoftmax", .on_floats = "Softmax", .operands = {operand(x)}}, y);
    return y;
  }
  // There is no operator on bytes, so both forms have that of float32.
  Bytes layer_norm(const Bytes& x) {
    const Bytes y{name(), x.shape, 1.0F / 40, 128};
    std::uniform_real_distribution<float> gains(0.5F, 1.5F), offsets(-0.3F, 0.3F);
    std::vector<float> gain(static_cast<size_t>(x.shape.back())), offset(gain.size());
    for (float& each : gain) each = gains(random_);
    for (float& each : offset) each = offsets(random_);
    const auto numbers = [&](const std::vector<float>& values) {
      return constant(DType::kFloat32, {x.shape.back()}, element_bytes(values, DType::kFloat32));
    };
    const std::string made = name();
    model_.node("LayerNormalization", {floats(operand(x)), numbers(gain), numbers(offset)}, {made},
                {{"axis", int64_t{-1}}});
    model_.node("QuantizeLinear", {made, real(y.scale), byte(y.zero)}, {y.name});
    return y;
  }
  Bytes reshaped(const Bytes& x, const Shape& shape) {
    Bytes y = x;
    y.name = name(), y.shape = shape;
    std::string elements;
    for (const int64_t extent : shape) elements.append(reinterpret_cast<const char*>(&extent), sizeof extent);
    move("Reshape", {x.name, constant(DType::kInt64, {std::ssize(shape)}, elements)}, y, {});
    return y;
  }
  Bytes transposed(const Bytes& x, const Shape& order) {
    Bytes y = x;
    y.name = name();
    for (size_t d = 0; d < order.size(); ++d) y.shape[d] = x.shape[static_cast<size_t>(order[d])];
    move("Transpose", {x.name}, y, {{"perm", order}});
    return y;
  }
  Bytes tokens(int64_t count, int64_t width) {
    model_.input("data", DType::kFloat32, {count, width});
    const Bytes x{"tokens", {count, width}, 1.0F / 32, 128};
    model_.node("QuantizeLinear", {"data", real(x.scale), byte(x.zero)}, {x.name});
    return x;
  }
  void give(const Bytes& x) {
    model_.node("DequantizeLinear", operand(x), {"scores"});
    model_.output("scores", DType::kFloat32, x.shape);
  }
  // Averages of the image, then a class each.
  void classify(const Bytes& x, int64_t classes) {
    const Bytes mean{name(), {x.shape[0], x.shape[1], 1, 1}, x.scale / 2, 0};
    write({.on_bytes = "com.microsoft.QLinearGlobalAveragePool",
           .on_floats = "GlobalAveragePool",
           .operands = {operand(x)}},
          mean);
    const Bytes flat{name(), {x.shape[0], x.shape[1]}, mean.scale, mean.zero};
    move("Flatten", {mean.name}, flat, {});
    give(matmul(flat, classes, true));
  }

 private:
  struct Form {
    const char *on_bytes, *on_floats;
    std::vector<std::vector<std::string>> operands;  // bytes, scale and zero point of each
    std::string bias;                                // empty: none
    std::vector<OnnxModel::Attribute> attributes;
  };
  void write(const Form& form, const Bytes& y, float scale_of_x = 1) {
    std::vector<std::string> inputs;
    if (between_) {
      for (const std::vector<std::string>& each : form.operands) inputs.push_back(floats(each));
      if (!form.bias.empty()) inputs.push_back(bias_as_floats(form.bias, scale_of_x));
      const std::string made = name();
      model_.node(form.on_floats, inputs, {made}, form.attributes);
      model_.node("QuantizeLinear", {made, real(y.scale), byte(y.zero)}, {y.name});
      return;
    }
    for (const std::vector<std::string>& each : form.operands)
      inputs.insert(inputs.end(), each.begin(), each.end());
    inputs.insert(inputs.end(), {real(y.scale), byte(y.zero)});
    if (!form.bias.empty()) inputs.push_back(form.bias);
    model_.node(form.on_bytes, inputs, {y.name}, form.attributes);
  }
  // Weights of convolutions have a scale per index of their first axis.
  std::string floats(const std::vector<std::string>& operand) {
    const std::string made = name();
    model_.node("DequantizeLinear", operand, {made}, {{"axis", int64_t{0}}});
    return made;
  }
  std::string bias_as_floats(const std::string& bias, float scale_of_x) {
    std::vector<float> units;
    for (const float scale : scales_) units.push_back(scale_of_x * scale);
    const Shape shape{std::ssize(units)};
    return floats({bias, constant(DType::kFloat32, shape, element_bytes(units, DType::kFloat32))});
  }
  // An operator that changes no number.
  void move(const char* op, std::vector<std::string> inputs, const Bytes& y,
            const std::vector<OnnxModel::Attribute>& attributes) {
    if (!between_) return model_.node(op, inputs, {y.name}, attributes);
    inputs[0] = floats({inputs[0], real(y.scale), byte(y.zero)});
    const std::string made = name();
    model_.node(op, inputs, {made}, attributes);
    model_.node("QuantizeLinear", {made, real(y.scale), byte(y.zero)}, {y.name});
  }
  std::string name() { return str("t", names_++); }
  Bytes result(Shape shape, bool linear) {
    std::uniform_real_distribution<float> scales(0.01F, 0.05F);
    return {name(), std::move(shape), scales(random_), linear ? 128 : 0};
  }
  std::vector<std::string> operand(const Bytes& x) { return {x.name, real(x.scale), byte(x.zero)}; }
  std::string real(float value) {
    return constant(DType::kFloat32, {}, element_bytes({value}, DType::kFloat32));
  }
  std::string byte(int value, DType dtype = DType::kUInt8) {
    return constant(dtype, {}, std::string(1, static_cast<char>(value)));
  }
  std::string constant(DType dtype, const Shape& shape, const std::string& elements) {
    const std::string made = str("c", names_++);
    model_.weights(made, dtype, shape, elements);
    return made;
  }
  // Weights, a scale per channel such that sums of so many terms fill the range of y, and a zero point of 0.
  std::vector<std::string> drawn_weights(const Shape& shape, int64_t terms, int64_t channels, const Bytes& x,
                                         const Bytes& y) {
    // Seven bits, as with ONNX Runtime's reduce_range: on CPUs without VNNI its sums of two products of bytes
    // saturate at 16 bits.
    constexpr int kMost = 63;
    std::uniform_int_distribution<int> numbers(-kMost, kMost);
    size_t count = 1;
    for (const int64_t extent : shape) count *= static_cast<size_t>(extent);
    std::string elements(count, '\0');
    for (char& each : elements) each = static_cast<char>(numbers(random_));
    // QLinearMatMul has one scale for all columns.
    const size_t scale_count = shape.size() == 2 ? 1 : static_cast<size_t>(channels);
    const double deviation = kMost / std::sqrt(3.0) * kOperands * std::sqrt(static_cast<double>(terms));
    const Shape one_or_more = shape.size() == 2 ? Shape{} : Shape{channels};
    std::uniform_real_distribution<double> around(0.8, 1.2);
    std::vector<float> scales(scale_count);
    for (float& each : scales)
      each = static_cast<float>(around(random_) * kSpread / deviation * double{y.scale} / double{x.scale});
    scales_ = scales;
    return {constant(DType::kInt8, shape, elements),
            constant(DType::kFloat32, one_or_more, element_bytes(scales, DType::kFloat32)),
            constant(DType::kInt8, one_or_more, std::string(scale_count, '\0'))};
  }
  std::string drawn_bias(int64_t channels) {
    std::uniform_int_distribution<int32_t> numbers(-2000, 2000);
    std::string elements;
    for (int64_t c = 0; c < channels; ++c) {
      const int32_t number = numbers(random_);
      elements.append(reinterpret_cast<const char*>(&number), sizeof number);
    }
    return constant(DType::kInt32, {channels}, elements);
  }

  const NetworkOptions& options_;
  const bool between_;
  std::vector<float> scales_;  // of the weights that were drawn last
  OnnxModel model_;
  std::mt19937 random_;
  int names_ = 0;
};

// As networks.cpp has them.
void resnet50_int8(QuantizedWriter& w) {
  Bytes x = w.max_pool(w.conv(w.image(224), w.channels(64), 7, 2), 3, 2);
  const int64_t blocks[] = {3, 4, 6, 3};
  for (int64_t stage = 0; stage < 4; ++stage) {
    const int64_t width = w.channels(int64_t{64} << stage);
    for (int64_t block = 0; block < blocks[stage]; ++block) {
      const int64_t stride = block == 0 && stage > 0 ? 2 : 1;
      Bytes y = w.conv(w.conv(x, width, 1), width, 3, stride);
      y = w.conv(y, 4 * width, 1, 1, 1, true);
      x = w.add(y, block == 0 ? w.conv(x, 4 * width, 1, stride, 1, true) : x, false);
    }
  }
  w.classify(x, 1000);
}

void mobilenetv2_int8(QuantizedWriter& w) {
  Bytes x = w.conv(w.image(224), w.channels(32), 3, 2);
  struct Stage {
    int64_t expansion, channels, blocks, stride;
  };
  for (const Stage& s : {Stage{1, 16, 1, 1},
                         {6, 24, 2, 2},
                         {6, 32, 3, 2},
                         {6, 64, 4, 2},
                         {6, 96, 3, 1},
                         {6, 160, 3, 2},
                         {6, 320, 1, 1}})
    for (int64_t block = 0; block < s.blocks; ++block) {
      const int64_t stride = block == 0 ? s.stride : 1, inner = x.shape[1] * s.expansion,
                    out = w.channels(s.channels);
      Bytes y = x;
      if (s.expansion > 1) y = w.conv(y, inner, 1);
      y = w.conv(w.conv(y, inner, 3, stride, inner), out, 1, 1, 1, true);
      x = stride == 1 && x.shape[1] == out ? w.add(x, y, true) : y;
    }
  w.classify(w.conv(x, w.channels(1280), 1), 1000);
}

// Two layers of attention and products, normalized before each, and a softmax over classes.
void transformer_int8(QuantizedWriter& w) {
  const int64_t width = w.channels(256), heads = 4, of_head = width / heads, tokens = w.tokens_of(128);
  Bytes x = w.tokens(tokens, width);
  for (int layer = 0; layer < 2; ++layer) {
    const Bytes before = w.layer_norm(x);
    const auto head = [&](const Shape& order) {
      return w.transposed(w.reshaped(w.matmul(before, width, true), {1, tokens, heads, of_head}), order);
    };
    const Bytes query = head({0, 2, 1, 3}), key = head({0, 2, 3, 1}), value = head({0, 2, 1, 3});
    const float spread = 30 * query.scale * key.scale * std::sqrt(static_cast<float>(of_head));
    const Bytes weights = w.softmax(w.product(query, key, spread, 128));
    const Bytes mixed = w.transposed(w.product(weights, value, value.scale, 128), {0, 2, 1, 3});
    x = w.add(x, w.matmul(w.reshaped(mixed, {tokens, width}), width, true), true);
    x = w.add(x, w.matmul(w.matmul(w.layer_norm(x), 4 * width, false), width, true), true);
  }
  w.give(w.softmax(w.matmul(x, 40, true)));
}

struct KnownQuantized {
  const char* name;
  void (*write)(QuantizedWriter&);
  bool between = false;
};
constexpr KnownQuantized kQuantized[] = {{"resnet50_int8", resnet50_int8},
                                         {"mobilenetv2_int8", mobilenetv2_int8},
                                         {"transformer_int8", transformer_int8},
                                         {"resnet50_qdq", resnet50_int8, true},
                                         {"mobilenetv2_qdq", mobilenetv2_int8, true},
                                         {"transformer_qdq", transformer_int8, true}};

}  // namespace

const std::vector<std::string>& quantized_network_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const KnownQuantized& k : kQuantized) all.emplace_back(k.name);
    return all;
  }();
  return names;
}

Result<std::string> quantized_network(std::string_view name, const NetworkOptions& options) {
  for (const KnownQuantized& k : kQuantized) {
    if (name != k.name) continue;
    QuantizedWriter writer(options, k.between);
    k.write(writer);
    return writer.bytes();
  }
  return invalid_argument("no network in 8 bits is called \"", name, "\"");
}

}  // namespace tuner::testing
