#include "tests/bench/cpu/onnx_graph.h"

#include <cstring>

#include "compiler_core/base/elements.h"
#include "tests/models/onnx_model.h"

namespace tuner {
namespace {

using Attributes = std::vector<OnnxModel::Attribute>;

class GraphWriter {
 public:
  GraphWriter(const BenchCase& bench_case, bool rounds_left) : case_(bench_case), rounds_left_(rounds_left) {}
  bool rounds_left() const { return rounds_left_; }

  // An operand that comes with every call.
  std::string input(const std::string& name) {
    const HostTensor& t = case_.operand(name);
    model_.input(name, t.dtype, t.shape);
    graph_.inputs.push_back(name);
    return name;
  }
  // One that the model holds.
  std::string weights(const std::string& name) {
    const HostTensor& t = case_.operand(name);
    model_.weights(name, t.dtype, t.shape, element_bytes(t.values, t.dtype));
    graph_.has_weights = true;
    return name;
  }
  std::string operand(const std::string& name) {
    return case_.workload().is_constant(name) ? weights(name) : input(name);
  }
  // Numbers that are no operand of the case: axes.
  std::string integers(const std::string& name, const std::vector<int64_t>& values) {
    std::string bytes(values.size() * sizeof(int64_t), '\0');
    std::memcpy(bytes.data(), values.data(), bytes.size());
    model_.weights(name, DType::kInt64, {static_cast<int64_t>(values.size())}, bytes);
    return name;
  }
  // Likewise: the number as a tensor of this shape; without dimensions unless said.
  std::string number(const std::string& name, DType dtype, float value,
                     const std::vector<int64_t>& shape = {}) {
    const std::vector<float> values(shape.empty() ? 1 : static_cast<size_t>(shape.front()), value);
    model_.weights(name, dtype, shape, element_bytes(values, dtype));
    return name;
  }
  // The inputs of QLinearConv and QLinearMatMul: with scales of 1 for x and for out, that of w is ours. Its
  // own relu they have not: there it must be one.
  Result<std::vector<std::string>> quantised(const std::string& x, const std::string& w,
                                             Activation activation) {
    if (activation != Activation::kNone)
      return failed("QLinear operators have no relu but saturation, which is one if the zero point is 0");
    const DType out = case_.operand("out").dtype;
    const std::string one = number("one", DType::kFloat32, 1);
    return std::vector{operand(x),
                       one,
                       number("zero_u8", DType::kUInt8, 0),
                       operand(w),
                       weights("scale"),
                       number("zero_s8", DType::kInt8, 0, case_.operand("scale").shape),
                       one,
                       number("out_zero_point", out, case_.operand("zero_point").values.front())};
  }
  // Its result's name.
  std::string node(const std::string& op, const std::vector<std::string>& inputs,
                   const Attributes& attributes = {}) {
    steps_.push_back({op, inputs, attributes});
    return result(steps_.size() - 1);
  }
  // What a product adds at its end.
  void epilogue(std::string value, bool residual, Activation activation) {
    if (residual) value = node("Add", {value, input("residual")});
    if (activation == Activation::kRelu) node("Relu", {value});
  }
  // The last node computes "out".
  SingleNodeGraph finish() {
    for (size_t i = 0; i < steps_.size(); ++i) {
      const Step& s = steps_[i];
      model_.node(s.op, s.inputs, {i + 1 == steps_.size() ? "out" : result(i)}, s.attributes);
      graph_.operators += str(i == 0 ? "" : ", ", s.op);
    }
    const HostTensor& out = case_.operand("out");
    model_.output("out", out.dtype, out.shape);
    graph_.model = model_.bytes();
    return std::move(graph_);
  }

 private:
  struct Step {
    std::string op;
    std::vector<std::string> inputs;
    Attributes attributes;
  };
  static std::string result(size_t step) { return str("result", step); }

  const BenchCase& case_;
  const bool rounds_left_;
  OnnxModel model_;
  SingleNodeGraph graph_;
  std::vector<Step> steps_;
};

template <size_t N>
std::vector<int64_t> list(const std::array<int64_t, N>& values) {
  return {values.begin(), values.end()};
}

// True if the epilogue is a bias, a residual and relu, in this order.
template <class Product>
bool is_plain(const Product& w) {
  const ActivationKind kind = w.activation.kind;
  return !w.scale && w.post.empty() && (kind == ActivationKind::kNone || kind == ActivationKind::kRelu);
}

Status write(GraphWriter& g, const MatmulWorkload& w) {
  if (!is_plain(w)) return failed("only bias, residual and relu are done here, in this order");
  if (w.transpose_a || w.transpose_b) return failed("operands that are stored transposed are not done here");
  if (is_float(w.dtype) && w.dtype != w.out_dtype())
    return failed("ONNX's MatMul of ", w.dtype, " writes ", w.dtype, ", not ", w.out_dtype());
  if (requantises(w)) {
    if (w.bias) return failed("QLinearMatMul has no bias");
    if (w.residual) return failed("QLinearMatMul has no residual");
    ASSIGN_OR_RETURN(const std::vector<std::string> inputs, g.quantised("a", "b", w.activation));
    g.node("QLinearMatMul", inputs);
    return Status::ok();
  }
  // uint8 times int8, summed in int32.
  const std::string a = g.operand("a"), b = g.operand("b");
  std::string value = g.node(w.dtype == DType::kInt8 ? "MatMulInteger" : "MatMul", {a, b});
  if (w.bias) value = g.node("Add", {value, g.weights("bias")});
  g.epilogue(value, w.residual, w.activation);
  return Status::ok();
}

Status write(GraphWriter& g, const MatmulNBitsWorkload& w) {
  if (w.activation != Activation::kNone && w.activation != Activation::kRelu)
    return failed("only bias and relu are done here");
  std::vector<std::string> inputs{g.operand("a"), g.operand("b"), g.operand("scales")};
  if (w.zero_points) inputs.push_back(g.operand("zero_points"));
  // By its documentation 0 leaves the choice to the library, and 4 is int8.
  const int64_t accuracy = g.rounds_left() ? 4 : 0;
  std::string value = g.node(
      "com.microsoft.MatMulNBits", inputs,
      {{"K", w.k}, {"N", w.n}, {"bits", int64_t{4}}, {"block_size", w.group}, {"accuracy_level", accuracy}});
  if (w.bias) value = g.node("Add", {value, g.weights("bias")});
  g.epilogue(value, /*residual=*/false, w.activation);
  return Status::ok();
}

Status write(GraphWriter& g, const Conv2dWorkload& w) {
  if (!is_plain(w)) return failed("only bias, residual and relu are done here, in this order");
  std::vector<std::string> inputs;
  if (requantises(w)) {
    if (w.residual) return failed("QLinearConv has no residual");
    ASSIGN_OR_RETURN(inputs, g.quantised("data", "weight", w.activation));
  } else if (w.dtype == DType::kFloat32) {
    inputs = {g.operand("data"), g.operand("weight")};
  } else {
    return failed("ONNX Runtime has no convolution of ", w.dtype, " into ", w.out_dtype());
  }
  if (w.bias) inputs.push_back(g.weights("bias"));
  const std::string value = g.node(requantises(w) ? "QLinearConv" : "Conv", inputs,
                                   {{"kernel_shape", std::vector{w.kernel_height, w.kernel_width}},
                                    {"strides", list(w.stride)},
                                    {"pads", list(w.padding)},
                                    {"dilations", list(w.dilation)},
                                    {"group", w.groups}});
  g.epilogue(value, w.residual, w.activation);
  return Status::ok();
}

Status write(GraphWriter& g, const Pool2dWorkload& w) {
  const bool is_max = w.pooling == Pooling::kMax;
  const bool whole =
      w.kernel_height == w.in_height && w.kernel_width == w.in_width && w.padding == std::array<int64_t, 4>{};
  const std::string data = g.operand("data");
  if (whole) {
    g.node(is_max ? "GlobalMaxPool" : "GlobalAveragePool", {data});
    return Status::ok();
  }
  Attributes attributes{{"kernel_shape", std::vector{w.kernel_height, w.kernel_width}},
                        {"strides", list(w.stride)},
                        {"pads", list(w.padding)}};
  if (!is_max) attributes.emplace_back("count_include_pad", int64_t{w.count_include_pad});
  g.node(is_max ? "MaxPool" : "AveragePool", {data}, attributes);
  return Status::ok();
}

Status write(GraphWriter& g, const SoftmaxWorkload&) {
  g.node("Softmax", {g.operand("x")}, {{"axis", int64_t{-1}}});
  return Status::ok();
}

Status write(GraphWriter& g, const LayerNormWorkload& w) {
  const std::string x = g.operand("x"), gamma = g.weights("gamma"), beta = g.weights("beta");
  g.node("LayerNormalization", {x, gamma, beta}, {{"axis", int64_t{-1}}, {"epsilon", w.epsilon}});
  return Status::ok();
}

Status write(GraphWriter& g, const ReduceWorkload& w) {
  const std::string x = g.operand("x");
  const OnnxModel::Attribute drop{"keepdims", int64_t{0}}, rows{"axes", std::vector<int64_t>{1}};
  switch (w.reduction) {
    case RowReduction::kSum:  // the one whose axes are an operand in this operator set
      g.node("ReduceSum", {x, g.integers("axes", {1})}, {drop});
      break;
    case RowReduction::kMax:
      g.node("ReduceMax", {x}, {rows, drop});
      break;
    case RowReduction::kMin:
      g.node("ReduceMin", {x}, {rows, drop});
      break;
    case RowReduction::kMean:
      g.node("ReduceMean", {x}, {rows, drop});
      break;
  }
  return Status::ok();
}

Status write(GraphWriter& g, const TransposeWorkload&) {
  g.node("Transpose", {g.operand("x")}, {{"perm", std::vector<int64_t>{1, 0}}});
  return Status::ok();
}

Status write(GraphWriter& g, const ElementwiseWorkload& w) {
  std::string value = g.operand("x");
  if (w.scale) value = g.node("Mul", {value, g.weights("scale")});
  if (w.bias) value = g.node("Add", {value, g.weights("bias")});
  if (!w.scale && !w.bias && !w.residual && w.activation == Activation::kNone) g.node("Identity", {value});
  g.epilogue(value, w.residual, w.activation);
  return Status::ok();
}

// Of operators without a form of their own above.
template <class W>
Status write(GraphWriter&, const W&) {
  return failed("a ", W::kOp, " is not written as a model here");
}

}  // namespace

Result<SingleNodeGraph> onnx_graph(const BenchCase& bench_case, bool rounds_left) {
  GraphWriter g(bench_case, rounds_left);
  RETURN_IF_ERROR(std::visit([&](const auto& w) { return write(g, w); }, bench_case.workload().op()));
  return g.finish();
}

}  // namespace tuner
