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
  explicit QuantizedWriter(const NetworkOptions& options) : options_(options), random_(options.seed) {}

  std::string bytes() const { return model_.bytes(); }
  int64_t channels(int64_t published) const { return std::max<int64_t>(8, published / options_.narrower); }

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
    std::vector<std::string> inputs = operand(x);
    const std::vector<std::string> weights =
        drawn_weights({out, in, kernel, kernel}, in * kernel * kernel, out, x, y);
    inputs.insert(inputs.end(), weights.begin(), weights.end());
    inputs.insert(inputs.end(), {real(y.scale), byte(y.zero), drawn_bias(out)});
    model_.node("QLinearConv", inputs, {y.name},
                {{"kernel_shape", Shape{kernel, kernel}},
                 {"strides", Shape{stride, stride}},
                 {"pads", Shape{pad, pad, pad, pad}},
                 {"group", groups}});
    return y;
  }
  Bytes max_pool(const Bytes& x, int64_t kernel, int64_t stride) {
    const int64_t pad = kernel / 2;
    Bytes y = x;
    y.name = name();
    for (const size_t d : {2, 3}) y.shape[d] = 1 + (x.shape[d] + 2 * pad - kernel) / stride;
    model_.node("MaxPool", {x.name}, {y.name},
                {{"kernel_shape", Shape{kernel, kernel}},
                 {"strides", Shape{stride, stride}},
                 {"pads", Shape{pad, pad, pad, pad}}});
    return y;
  }
  Bytes add(const Bytes& a, const Bytes& b, bool linear) {
    Bytes y = result(a.shape, linear);
    y.scale = 1.25F * std::max(a.scale, b.scale);
    std::vector<std::string> inputs = operand(a);
    const std::vector<std::string> other = operand(b);
    inputs.insert(inputs.end(), other.begin(), other.end());
    inputs.insert(inputs.end(), {real(y.scale), byte(y.zero)});
    model_.node("com.microsoft.QLinearAdd", inputs, {y.name});
    return y;
  }
  // Averages of the image, then a class each.
  void classify(const Bytes& x, int64_t classes) {
    const Bytes mean{name(), {x.shape[0], x.shape[1], 1, 1}, x.scale / 2, 0};
    std::vector<std::string> inputs = operand(x);
    inputs.insert(inputs.end(), {real(mean.scale), byte(mean.zero)});
    model_.node("com.microsoft.QLinearGlobalAveragePool", inputs, {mean.name});
    Bytes flat{name(), {x.shape[0], x.shape[1]}, mean.scale, mean.zero};
    model_.node("Flatten", {mean.name}, {flat.name});
    const Bytes y = result({x.shape[0], classes}, true);
    inputs = operand(flat);
    const std::vector<std::string> weights =
        drawn_weights({x.shape[1], classes}, x.shape[1], classes, flat, y);
    inputs.insert(inputs.end(), weights.begin(), weights.end());
    inputs.insert(inputs.end(), {real(y.scale), byte(y.zero)});
    model_.node("QLinearMatMul", inputs, {y.name});
    model_.node("DequantizeLinear", operand(y), {"scores"});
    model_.output("scores", DType::kFloat32, y.shape);
  }

 private:
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
    std::uniform_int_distribution<int> numbers(-127, 127);
    size_t count = 1;
    for (const int64_t extent : shape) count *= static_cast<size_t>(extent);
    std::string elements(count, '\0');
    for (char& each : elements) each = static_cast<char>(numbers(random_));
    // QLinearMatMul has one scale for all columns.
    const size_t scale_count = shape.size() == 2 ? 1 : static_cast<size_t>(channels);
    const double deviation = 127 / std::sqrt(3.0) * kOperands * std::sqrt(static_cast<double>(terms));
    const Shape one_or_more = shape.size() == 2 ? Shape{} : Shape{channels};
    std::uniform_real_distribution<double> around(0.8, 1.2);
    std::vector<float> scales(scale_count);
    for (float& each : scales)
      each = static_cast<float>(around(random_) * kSpread / deviation * double{y.scale} / double{x.scale});
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

struct KnownQuantized {
  const char* name;
  void (*write)(QuantizedWriter&);
};
constexpr KnownQuantized kQuantized[] = {{"resnet50_int8", resnet50_int8},
                                         {"mobilenetv2_int8", mobilenetv2_int8}};

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
    QuantizedWriter writer(options);
    k.write(writer);
    return writer.bytes();
  }
  return invalid_argument("no network in 8 bits is called \"", name, "\"");
}

}  // namespace tuner::testing
