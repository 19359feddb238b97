#include "tuner/model/quantized_anchors.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>

#include "compiler_core/graph/fragment_tables.h"
#include "templates/schedule_template.h"

namespace tuner {
namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::Shape;
using graph::Use;
using graph::ValueId;

// Scale and zero point of a value, of its whole tensor: two constant inputs that stand side by side.
struct Quantization {
  float scale = 1;
  int64_t zero = 0;
};
std::optional<Quantization> quantization_of(const Use& use, size_t scale_input) {
  const auto one = [&](size_t input) -> std::optional<double> {
    if (!use.has(input)) return 0.0;
    if (!use.is_constant(input)) return std::nullopt;
    const auto numbers = use.numbers(input);
    if (!numbers.is_ok() || numbers->size() != 1) return std::nullopt;
    return numbers->front();
  };
  const std::optional<double> scale = one(scale_input), zero = one(scale_input + 1);
  if (!scale || !zero) return std::nullopt;
  return Quantization{static_cast<float>(*scale), static_cast<int64_t>(*zero)};
}

// One float per channel, of one number or as many.
std::optional<std::vector<float>> scales_of(const Use& use, size_t input, int64_t channels) {
  if (!use.is_constant(input)) return std::nullopt;
  const auto numbers = use.numbers(input);
  if (!numbers.is_ok()) return std::nullopt;
  std::vector<float> scales(numbers->begin(), numbers->end());
  if (scales.size() == 1) scales.assign(static_cast<size_t>(channels), scales[0]);
  return std::ssize(scales) == channels ? std::optional(scales) : std::nullopt;
}

bool is_zero(const Use& use, size_t input) {
  if (!use.has(input)) return true;
  if (!use.is_constant(input)) return false;
  const auto numbers = use.numbers(input);
  return numbers.is_ok() && std::ranges::all_of(*numbers, [](double x) { return x == 0; });
}

bool is_byte_type(DType t) { return t == DType::kUInt8 || t == DType::kInt8; }

bool is_image(const Shape& shape) { return shape.size() == 4; }

// The bias of a product whose left operand has this zero point:
// sum (x - zero) * w = sum x * w - zero * sum w. Weights of a channel stand side by side. Nothing where it is
// beyond int32.
std::optional<std::vector<double>> moved_bias(std::vector<double> bias, const std::vector<double>& weights,
                                              int64_t zero) {
  const size_t terms = weights.size() / bias.size();
  for (size_t c = 0; c < bias.size(); ++c) {
    const auto begin = weights.begin() + static_cast<std::ptrdiff_t>(c * terms);
    bias[c] -=
        static_cast<double>(zero) * std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(terms), 0.0);
    if (bias[c] < INT32_MIN || bias[c] > INT32_MAX) return std::nullopt;
  }
  return bias;
}

class QuantizedAnchors {
 public:
  QuantizedAnchors(Graph& graph, size_t n, const Target& accelerator)
      : g_(graph), node_(graph.nodes[n]), use_(g_, node_), target_(accelerator) {}

  std::optional<Anchor> find() {
    const bool on_device = !target_.family->in_process();
    if (on_device && node_.op == "com.microsoft.QLinearSoftmax") return softmax();
    if (on_device && node_.op == "tuner.QLinearLayerNormalization") return norm();
    if (!may_lie_anyhow(node_.outputs[0])) return std::nullopt;
    if (node_.op == "QLinearConv") return conv();
    if (node_.op == "QLinearMatMul") return matmul({.y_scale = 6});
    if (node_.op == "com.microsoft.QGemm" && use_.has(7)) return matmul({.y_scale = 7, .bias = 6});
    if (node_.op == "MaxPool") return max_pool();
    if (node_.op == "com.microsoft.QLinearAdd") return sum();
    if (node_.op == "com.microsoft.QLinearGlobalAveragePool") return average();
    return std::nullopt;
  }

 private:
  // An image in NHWC is no result of the model's, and nobody takes another view of it.
  bool may_lie_anyhow(ValueId v) const {
    if (target_.family->in_process()) return true;
    const Shape& shape = g_[v].type.shape;
    if (!is_image(shape) || shape[2] * shape[3] == 1) return true;
    if (std::ranges::count(g_.outputs, v) > 0) return false;
    return std::ranges::none_of(g_.nodes, [&](const Node& reader) {
      const bool views =
          reader.op == "tuner.View" || reader.op == "Split" || reader.op == "Slice" || reader.op == "Concat";
      return views && std::ranges::count(reader.inputs, v) > 0;
    });
  }

  std::optional<Anchor> served(Workload workload, Workload on_device, std::vector<ValueId> reads) const {
    if (!validate(on_device)) return std::nullopt;
    const bool yes = std::ranges::any_of(
        all_templates(), [&](const AnyTemplate* t) { return t->supports(on_device, target_).yes; });
    if (!yes) return std::nullopt;
    return Anchor{.workload = std::move(workload), .reads = std::move(reads), .before = {}};
  }

  ValueId numbers(const char* what, DType dtype, const std::vector<double>& values) {
    return graph::add_constant(g_, str(node_.name, "/", what), {dtype, {std::ssize(values)}}, values);
  }

  // Adds bias, scale and zero point behind the operands of a product.
  std::optional<std::vector<ValueId>> with_epilogue(std::vector<ValueId> reads,
                                                    const std::vector<double>& bias,
                                                    const std::vector<float>& scales, DType out,
                                                    int64_t zero) {
    reads.push_back(numbers("bias", DType::kInt32, bias));
    reads.push_back(numbers("scale", DType::kFloat32, {scales.begin(), scales.end()}));
    reads.push_back(numbers("zero_point", out, {static_cast<double>(zero)}));
    return reads;
  }

  // As the graph's operator: float32(x's * w's) / out's.
  static std::vector<float> joined(float x, std::vector<float> w, float out) {
    for (float& each : w) {
      const float product = x * each;
      each = product / out;
    }
    return w;
  }

  std::optional<Anchor> conv() {
    const Shape &image = use_.shape(0), &kernel = use_.shape(3);
    const auto x = quantization_of(use_, 1), y = quantization_of(use_, 6);
    const bool is_served_type = use_.dtype(0) == DType::kUInt8 && use_.dtype(3) == DType::kInt8;
    if (!x || !y || !is_image(image) || !is_served_type || !use_.is_constant(3) || !is_zero(use_, 5))
      return std::nullopt;
    const auto scales = scales_of(use_, 4, kernel[0]);
    const auto window = window2d_of(use_, image, Shape(kernel.begin() + 2, kernel.end()));
    if (!scales || !window || (use_.has(8) && !use_.is_constant(8))) return std::nullopt;
    if (x->zero != 0 && window->padding != std::array<int64_t, 4>{}) return std::nullopt;
    std::vector<double> bias(static_cast<size_t>(kernel[0]), 0);
    if (use_.has(8)) bias = *use_.numbers(8);
    const auto moved = moved_bias(bias, *use_.numbers(3), x->zero);
    if (!moved) return std::nullopt;
    Conv2dWorkload w{.batch = image[0],
                     .in_channels = image[1],
                     .in_height = image[2],
                     .in_width = image[3],
                     .out_channels = kernel[0],
                     .kernel_height = window->kernel[0],
                     .kernel_width = window->kernel[1],
                     .stride = window->stride};
    w.padding = window->padding;
    w.dilation = window->dilation;
    w.groups = use_.integer("group", 1);
    return product(w, {node_.inputs[0], node_.inputs[3]}, *moved, joined(x->scale, *scales, y->scale),
                   y->zero);
  }

  std::optional<Anchor> product(Conv2dWorkload w, std::vector<ValueId> reads, const std::vector<double>& bias,
                                const std::vector<float>& scales, int64_t zero) {
    w.bias = true;
    w.dtype = DType::kInt8;
    w.narrow_out = g_[node_.outputs[0]].type.dtype;
    w.constant = {"weight"};
    Conv2dWorkload on_device = w;
    if (!target_.family->in_process()) on_device.layout = on_device.out_layout = "NHWC";
    auto anchor = served(w, on_device, {});
    if (anchor) anchor->reads = *with_epilogue(std::move(reads), bias, scales, *w.narrow_out, zero);
    return anchor;
  }

  // Where a product of matrices has its inputs; each zero point stands behind its scale.
  struct ProductInputs {
    size_t y_scale, bias = SIZE_MAX;
  };
  std::optional<Anchor> matmul(const ProductInputs& in) {
    const Shape &a = use_.shape(0), &b = use_.shape(3);
    const auto x = quantization_of(use_, 1), y = quantization_of(use_, in.y_scale);
    const bool is_served_type = use_.dtype(0) == DType::kUInt8 && use_.dtype(3) == DType::kInt8;
    if (!x || !y || a.empty() || b.size() != 2 || !is_served_type || !use_.is_constant(3) ||
        !is_zero(use_, 5))
      return std::nullopt;
    const bool is_transposed = use_.integer("transB", 0) != 0;
    if (use_.integer("transA", 0) != 0 || use_.number("alpha", 1) != 1) return std::nullopt;
    const int64_t k = b[is_transposed ? 1 : 0], columns = b[is_transposed ? 0 : 1];
    const auto scales = scales_of(use_, 4, columns);
    std::vector<double> bias(static_cast<size_t>(columns), 0);
    if (use_.has(in.bias)) {
      if (!use_.is_constant(in.bias) || use_.type(in.bias).elements() != columns) return std::nullopt;
      bias = *use_.numbers(in.bias);
    }
    if (!scales) return std::nullopt;
    // One row per column, as moved_bias() wants them.
    std::vector<double> by_column = *use_.numbers(3);
    if (!is_transposed) {
      std::vector<double> rows(by_column.size());
      for (int64_t j = 0; j < columns; ++j)
        for (int64_t i = 0; i < k; ++i) rows[j * k + i] = by_column[i * columns + j];
      by_column = std::move(rows);
    }
    const auto moved = moved_bias(std::move(bias), by_column, x->zero);
    if (!moved) return std::nullopt;
    MatmulWorkload w{.m = std::accumulate(a.begin(), a.end(), int64_t{1}, std::multiplies<>()) / k,
                     .n = columns,
                     .k = k,
                     .transpose_b = is_transposed,
                     .bias = true,
                     .dtype = DType::kInt8};
    w.narrow_out = g_[node_.outputs[0]].type.dtype;
    w.constant = {"b"};
    auto anchor = served(w, w, {});
    if (anchor)
      anchor->reads = *with_epilogue({node_.inputs[0], node_.inputs[3]}, *moved,
                                     joined(x->scale, *scales, y->scale), *w.narrow_out, y->zero);
    return anchor;
  }

  std::optional<Anchor> max_pool() {
    const Shape &image = use_.shape(0), &result = g_[node_.outputs[0]].type.shape;
    const auto window = is_image(image) ? window2d_of(use_, image, {}) : std::nullopt;
    if (!window || !is_byte_type(use_.dtype(0)) || use_.gives(1) ||
        window->dilation != std::array<int64_t, 2>{1, 1})
      return std::nullopt;
    Pool2dWorkload w{.batch = image[0],
                     .channels = image[1],
                     .in_height = image[2],
                     .in_width = image[3],
                     .kernel_height = window->kernel[0],
                     .kernel_width = window->kernel[1],
                     .stride = window->stride};
    w.padding = window->padding;
    w.dtype = use_.dtype(0);
    if (w.out_height() != result[2] || w.out_width() != result[3]) return std::nullopt;
    Pool2dWorkload on_device = w;
    if (!target_.family->in_process()) on_device.layout = "NHWC";
    return served(w, on_device, {node_.inputs[0]});
  }

  // The operator alone: a result of type `out`, operands of these types by their places, and all other inputs
  // as numbers, written out. Nothing where one of these is not constant.
  std::optional<Workload> alone(const graph::TensorType& out,
                                const std::map<size_t, graph::TensorType>& operands) {
    Graph f;
    f.name = "fragment";
    Node node{.name = "", .op = node_.op, .operator_set = node_.operator_set, .attributes = {}};
    if (const auto epsilon = node_.attributes.find("epsilon"); epsilon != node_.attributes.end())
      node.attributes.insert(*epsilon);
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      const ValueId v = node_.inputs[i];
      if (v == kNoValue) {
        node.inputs.push_back(kNoValue);
        continue;
      }
      const auto operand = operands.find(i);
      const bool is_operand = operand != operands.end();
      if (!is_operand && !g_[v].constant) return std::nullopt;
      f.values.push_back({"", is_operand ? operand->second : graph::TensorType{g_[v].type.dtype, {}},
                          is_operand ? std::nullopt : g_[v].constant});
      node.inputs.push_back(f.values.size() - 1);
      if (is_operand) f.inputs.push_back(f.values.size() - 1);
    }
    f.values.push_back({"", out, std::nullopt});
    node.outputs = f.outputs = {f.values.size() - 1};
    f.output_names = {"out"};
    f.nodes.push_back(std::move(node));
    tables_ = graph::add_tables(f, g_);
    Result<Workload> made = program_workload(std::move(f));
    return made ? std::optional(*std::move(made)) : std::nullopt;
  }

  // On one dimension.
  std::optional<Anchor> sum() {
    const ValueId a = node_.inputs[0], b = node_.inputs[3];
    if (a == b || use_.shape(0) != use_.shape(3) || g_[a].constant || g_[b].constant) return std::nullopt;
    const graph::TensorType flat{use_.dtype(0), {g_[a].type.elements()}};
    const auto workload = alone(flat, {{0, flat}, {3, flat}});
    auto anchor = workload ? served(*workload, *workload, {a, b}) : std::nullopt;
    if (anchor) anchor->flat = true;
    return anchor;
  }

  // Of a matrix whose rows are those of the last axis.
  graph::TensorType rows() const {
    const int64_t columns = use_.shape(0).back();
    return {use_.dtype(0), {use_.type(0).elements() / columns, columns}};
  }
  std::optional<Anchor> softmax() {
    if (use_.is_constant(0)) return std::nullopt;
    const auto workload = alone(rows(), {{0, rows()}});
    std::vector<ValueId> reads = {node_.inputs[0]};
    reads.insert(reads.end(), tables_.begin(), tables_.end());
    return workload ? served(*workload, *workload, std::move(reads)) : std::nullopt;
  }
  std::optional<Anchor> norm() {
    if (use_.is_constant(0) || !use_.is_constant(1) || !use_.is_constant(2)) return std::nullopt;
    const auto workload = alone(rows(), {{0, rows()}, {1, use_.type(1)}, {2, use_.type(2)}});
    return workload ? served(*workload, *workload, {node_.inputs[0], node_.inputs[1], node_.inputs[2]})
                    : std::nullopt;
  }

  // The sum of an image's pixels as a window as large as it.
  std::optional<Anchor> average() {
    const Shape& image = use_.shape(0);
    const auto x = quantization_of(use_, 1), y = quantization_of(use_, 3);
    if (!x || !y || !is_image(image) || use_.dtype(0) != DType::kUInt8) return std::nullopt;
    const int64_t channels = image[1], pixels = image[2] * image[3];
    Conv2dWorkload w{.batch = image[0],
                     .in_channels = channels,
                     .in_height = image[2],
                     .in_width = image[3],
                     .out_channels = channels,
                     .kernel_height = image[2],
                     .kernel_width = image[3]};
    w.groups = channels;
    const auto count = static_cast<size_t>(channels);
    const float divisor = y->scale * static_cast<float>(pixels);
    const ValueId ones =
        graph::add_constant(g_, node_.name + "/ones", {DType::kInt8, {channels, 1, image[2], image[3]}},
                            std::vector<double>(count * static_cast<size_t>(pixels), 1));
    return product(w, {node_.inputs[0], ones},
                   std::vector<double>(count, static_cast<double>(-x->zero * pixels)),
                   std::vector<float>(count, x->scale / divisor), y->zero);
  }

  Graph& g_;
  const Node node_;  // a copy: constants are added
  const Use use_;
  const Target& target_;
  std::vector<ValueId> tables_;  // of the operator alone, as constants of the graph
};

}  // namespace

std::optional<Anchor> quantized_anchor(Graph& graph, size_t n, const Target& accelerator) {
  return QuantizedAnchors(graph, n, accelerator).find();
}

}  // namespace tuner
