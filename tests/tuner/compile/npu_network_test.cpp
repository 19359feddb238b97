// Networks in 8 bits compiled for the NPU: every value that a step makes is that of plain loops, bit for bit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <set>

#include "compiler_core/backend.h"
#include "compiler_core/graph/operator.h"
#include "tests/models/quantized_networks.h"
#include "tests/random_seed.h"
#include "tests/support/temporary_folder.h"
#include "tuner/compile/compile_model.h"
#include "tuner/model/compiled_model.h"
#include "tuner/model/device_counts.h"
#include "tuner/model/layouts.h"

namespace tuner {
namespace {

using graph::Graph;
using graph::Node;
using graph::Use;
using graph::ValueId;

// The operators of these networks as ONNX and ONNX Runtime define them, by loops, in float32.
class QLinearReference {
 public:
  QLinearReference(const Graph& g, const float* input) : g_(g) {
    values_[g.inputs[0]].assign(input, input + g[g.inputs[0]].type.elements());
    for (const Node& node : g.nodes) {
      makers_[node.outputs[0]] = &node;
      run(node, Use(g, node));
    }
  }
  bool has(ValueId v) const { return values_.contains(v); }
  // Elements in the order of the graph, NCHW.
  const std::vector<float>& operator[](ValueId v) const { return values_.at(v); }

 private:
  const std::vector<float>& in(const Node& node, size_t i) {
    const ValueId v = node.inputs[i];
    if (!values_.contains(v) && g_[v].constant) {
      const std::vector<double> numbers = g_[v].constant->numbers(g_[v].type.dtype);
      values_[v].assign(numbers.begin(), numbers.end());
    }
    return values_.at(v);
  }
  float quantized(float real, float zero, DType dtype) {
    const float least = dtype == DType::kInt8 ? -128 : 0;
    return std::min(std::max(std::nearbyint(real) + zero, least), least + 255);
  }

  void run(const Node& node, const Use& use) {
    const ValueId to = node.outputs[0];
    std::vector<float>& out = values_[to];
    out.resize(static_cast<size_t>(g_[to].type.elements()));
    const DType dtype = g_[to].type.dtype;
    if (const Node* const norm = maker(node, "QuantizeLinear", "LayerNormalization")) {
      layer_norm(*norm, node, out);
    } else if (node.op == "LayerNormalization") {
      // Its values are bytes behind the QuantizeLinear.
    } else if (node.op == "com.microsoft.QLinearSoftmax") {
      softmax(node, use, out);
    } else if (node.op == "Transpose") {
      transpose(node, use, out);
    } else if (node.op == "QuantizeLinear") {
      for (size_t i = 0; i < out.size(); ++i)
        out[i] = quantized(in(node, 0)[i] / in(node, 1)[0], in(node, 2)[0], dtype);
    } else if (node.op == "DequantizeLinear") {
      for (size_t i = 0; i < out.size(); ++i) out[i] = (in(node, 0)[i] - in(node, 2)[0]) * in(node, 1)[0];
    } else if (node.op == "QLinearConv") {
      conv(node, use, out);
    } else if (node.op == "QLinearMatMul") {
      matmul(node, use, out);
    } else if (node.op == "MaxPool") {
      max_pool(node, use, out);
    } else if (node.op == "com.microsoft.QLinearAdd") {
      const float c = in(node, 6)[0], a_scale = in(node, 1)[0] / c, b_scale = in(node, 4)[0] / c;
      for (size_t i = 0; i < out.size(); ++i) {
        const float a = (in(node, 0)[i] - in(node, 2)[0]) * a_scale;
        const float b = (in(node, 3)[i] - in(node, 5)[0]) * b_scale;
        out[i] = quantized(a + b, in(node, 7)[0], dtype);
      }
    } else if (node.op == "com.microsoft.QLinearGlobalAveragePool") {
      average(node, use, out);
    } else {
      ASSERT_TRUE(node.op == "Flatten" || node.op == "Reshape" || node.op == "tuner.View") << node.op;
      out = in(node, 0);
    }
  }
  // The node of operator `before` that makes the first input of this one, if this one is an `op`.
  const Node* maker(const Node& node, const char* op, const char* before) const {
    const auto made = makers_.find(node.inputs[0]);
    return node.op == op && made != makers_.end() && made->second->op == before ? made->second : nullptr;
  }
  // As the NPU's page defines `norm`, for bytes that a DequantizeLinear reads and a QuantizeLinear makes.
  void layer_norm(const Node& norm, const Node& quantize, std::vector<float>& out) {
    const Node* const dequantize = makers_.at(norm.inputs[0]);
    ASSERT_EQ(dequantize->op, "DequantizeLinear");
    const std::vector<float>& bytes = in(*dequantize, 0);
    const float of_x = in(*dequantize, 1)[0], of_y = in(quantize, 1)[0];
    const float epsilon = static_cast<float>(Use(g_, norm).number("epsilon", 1e-5)) / (of_x * of_x);
    const size_t columns = in(norm, 1).size();
    for (size_t row = 0; row < out.size(); row += columns) {
      int64_t sum = 0, squares = 0;
      for (size_t c = 0; c < columns; ++c) {
        const auto x = static_cast<int64_t>(bytes[row + c]);
        sum += x, squares += x * x;
      }
      const auto n = static_cast<int64_t>(columns);
      const float mean = static_cast<float>(sum) / static_cast<float>(n);
      const float variance = static_cast<float>(n * squares - sum * sum) / static_cast<float>(n * n);
      const float factor = 1.0F / std::sqrt(variance + epsilon);
      for (size_t c = 0; c < columns; ++c) {
        const float scaled = (bytes[row + c] - mean) * factor * (in(norm, 1)[c] / of_y);
        out[row + c] =
            quantized(scaled + in(norm, 2)[c] / of_y, in(quantize, 2)[0], g_[quantize.outputs[0]].type.dtype);
      }
    }
  }
  // By a table of integers, as the NPU's page defines it.
  void softmax(const Node& node, const Use& use, std::vector<float>& out) {
    const auto columns = static_cast<size_t>(use.shape(0).back());
    const std::vector<float>& x = in(node, 0);
    const double scale = in(node, 1)[0];
    for (size_t row = 0; row < out.size(); row += columns) {
      const float most = *std::max_element(x.begin() + static_cast<std::ptrdiff_t>(row),
                                           x.begin() + static_cast<std::ptrdiff_t>(row + columns));
      const auto exponential = [&](size_t c) {
        return std::llrint((1 << 22) * std::exp(-static_cast<double>(most - x[row + c]) * scale));
      };
      int64_t total = 0;
      for (size_t c = 0; c < columns; ++c) total += exponential(c);
      const float share = 1.0F / in(node, 3)[0] / static_cast<float>(total);
      for (size_t c = 0; c < columns; ++c)
        out[row + c] = quantized(static_cast<float>(exponential(c)) * share, in(node, 4)[0], DType::kUInt8);
    }
  }
  void transpose(const Node& node, const Use& use, std::vector<float>& out) {
    const auto perm = use.integers("perm");
    const auto &from = use.shape(0), &to = g_[node.outputs[0]].type.shape;
    std::vector<int64_t> step(from.size(), 1);  // of the operand, by its dimensions
    for (size_t d = from.size() - 1; d-- > 0;) step[d] = step[d + 1] * from[d + 1];
    for (size_t i = 0; i < out.size(); ++i) {
      auto rest = static_cast<int64_t>(i);
      int64_t at = 0;
      for (size_t d = to.size(); d-- > 0; rest /= to[d])
        at += rest % to[d] * step[static_cast<size_t>(perm[d])];
      out[i] = in(node, 0)[static_cast<size_t>(at)];
    }
  }
  void conv(const Node& node, const Use& use, std::vector<float>& out) {
    const auto &x = use.shape(0), &w = use.shape(3), &y = g_[node.outputs[0]].type.shape;
    const auto strides = use.integers("strides"), pads = use.integers("pads");
    const int64_t groups = use.integer("group", 1), in_group = x[1] / groups, out_group = w[0] / groups;
    const std::vector<float>&data = in(node, 0), &weight = in(node, 3), &w_scale = in(node, 4);
    const auto x_zero = static_cast<int32_t>(in(node, 2)[0]);
    for (int64_t n = 0; n < y[0]; ++n)
      for (int64_t oc = 0; oc < y[1]; ++oc) {
        const float scale = in(node, 1)[0] * w_scale[static_cast<size_t>(oc)] / in(node, 6)[0];
        for (int64_t oh = 0; oh < y[2]; ++oh)
          for (int64_t ow = 0; ow < y[3]; ++ow) {
            auto sum = static_cast<int32_t>(in(node, 8)[static_cast<size_t>(oc)]);
            for (int64_t ic = 0; ic < in_group; ++ic)
              for (int64_t kh = 0; kh < w[2]; ++kh)
                for (int64_t kw = 0; kw < w[3]; ++kw) {
                  const int64_t row = oh * strides[0] + kh - pads[0], column = ow * strides[1] + kw - pads[1];
                  if (row < 0 || row >= x[2] || column < 0 || column >= x[3]) continue;
                  const int64_t channel = oc / out_group * in_group + ic;
                  sum += (static_cast<int32_t>(data[((n * x[1] + channel) * x[2] + row) * x[3] + column]) -
                          x_zero) *
                         static_cast<int32_t>(weight[((oc * in_group + ic) * w[2] + kh) * w[3] + kw]);
                }
            out[((n * y[1] + oc) * y[2] + oh) * y[3] + ow] =
                quantized(static_cast<float>(sum) * scale, in(node, 7)[0], DType::kUInt8);
          }
      }
  }
  void matmul(const Node& node, const Use& use, std::vector<float>& out) {
    const auto &a = use.shape(0), &b = use.shape(3);
    const int64_t rows = a[a.size() - 2], terms = a.back(), columns = b.back();
    const std::vector<float>&left = in(node, 0), &right = in(node, 3);
    for (int64_t i = 0; i < std::ssize(out) / columns; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        const int64_t matrix = b.size() == 2 ? 0 : i / rows * terms * columns;
        int32_t sum = 0;
        for (int64_t k = 0; k < terms; ++k)
          sum += static_cast<int32_t>(left[i * terms + k] - in(node, 2)[0]) *
                 static_cast<int32_t>(right[matrix + k * columns + j] - in(node, 5)[0]);
        const float scale = in(node, 1)[0] * in(node, 4)[0] / in(node, 6)[0];
        out[i * columns + j] = quantized(static_cast<float>(sum) * scale, in(node, 7)[0], DType::kUInt8);
      }
  }
  void max_pool(const Node& node, const Use& use, std::vector<float>& out) {
    const auto &x = use.shape(0), &y = g_[node.outputs[0]].type.shape;
    const auto kernel = use.integers("kernel_shape"), strides = use.integers("strides"),
               pads = use.integers("pads");
    for (int64_t plane = 0; plane < y[0] * y[1]; ++plane)
      for (int64_t oh = 0; oh < y[2]; ++oh)
        for (int64_t ow = 0; ow < y[3]; ++ow) {
          float most = -128;
          for (int64_t kh = 0; kh < kernel[0]; ++kh)
            for (int64_t kw = 0; kw < kernel[1]; ++kw) {
              const int64_t row = oh * strides[0] + kh - pads[0], column = ow * strides[1] + kw - pads[1];
              if (row >= 0 && row < x[2] && column >= 0 && column < x[3])
                most = std::max(most, in(node, 0)[(plane * x[2] + row) * x[3] + column]);
            }
          out[(plane * y[2] + oh) * y[3] + ow] = most;
        }
  }
  void average(const Node& node, const Use& use, std::vector<float>& out) {
    const int64_t pixels = use.shape(0)[2] * use.shape(0)[3];
    const float scale = in(node, 1)[0] / (in(node, 3)[0] * static_cast<float>(pixels));
    for (size_t c = 0; c < out.size(); ++c) {
      int32_t sum = 0;
      for (int64_t p = 0; p < pixels; ++p)
        sum += static_cast<int32_t>(in(node, 0)[c * static_cast<size_t>(pixels) + static_cast<size_t>(p)] -
                                    in(node, 2)[0]);
      out[c] = quantized(static_cast<float>(sum) * scale, in(node, 4)[0], DType::kUInt8);
    }
  }

  const Graph& g_;
  std::map<ValueId, std::vector<float>> values_;
  std::map<ValueId, const Node*> makers_;
};

struct NetworkCase {
  const char* name;
  size_t accelerated;  // steps at least
};

class NpuNetwork : public ::testing::TestWithParam<NetworkCase> {};

// Element i of a result as it lies in memory.
size_t place_of(const graph::TensorType& type, int64_t block, size_t i) {
  if (block != kChannelsLast) return i;
  const size_t pixels = static_cast<size_t>(type.shape[2] * type.shape[3]),
               channels = static_cast<size_t>(type.shape[1]);
  const size_t n = i / (channels * pixels), c = i / pixels % channels, p = i % pixels;
  return (n * pixels + p) * channels + c;
}

TEST_P(NpuNetwork, EveryValueIsThatOfPlainLoops) {
  const TemporaryFolder folder;
  const bool whole = wanted_rounds(1) > 1;  // the long suite: networks as published
  const auto bytes = testing::quantized_network(
      GetParam().name, {.image = whole ? 224 : 64, .batch = 1, .narrower = whole ? 1 : 4, .seed = 3});
  ASSERT_TRUE(bytes.is_ok()) << bytes.message();
  CompileRequest request{.model = folder.file("net.onnx"), .output = folder.file("net")};
  std::ofstream(request.model, std::ios::binary) << *bytes;
  request.target = *resolve_target("cpu");
  request.accelerator = *parse_target("npu");
  request.db = folder.file("none.db");
  request.tune = false;
  auto model = prepare_model(request, [] { return false; });
  ASSERT_TRUE(model.is_ok()) << model.message();
  // What building takes away.
  const struct {
    Graph graph;
    ModelSteps steps;
    MemoryPlan memory;
  } prepared{model->graph, model->steps, model->memory};
  AlignedBuffer input(prepared.graph[prepared.graph.inputs[0]].type.bytes());
  std::memcpy(input.data(), model->check_inputs[0].data(), static_cast<size_t>(input.bytes()));
  const auto out = open_model_folder(request, *model);
  ASSERT_TRUE(out.is_ok()) << out.message();
  const auto built = build_model(request, *model, **out, [] { return false; });
  ASSERT_TRUE(built.is_ok()) << built.message();
  EXPECT_GE(built->accelerated_steps, GetParam().accelerated);

  const auto compiled = CompiledModel::open(request.output);
  ASSERT_TRUE(compiled.is_ok()) << compiled.message();
  auto context = compiled->context();
  ASSERT_TRUE(context.is_ok()) << context.message();
  const QLinearReference reference(prepared.graph, input.as<float>());
  AlignedBuffer scores(prepared.graph[prepared.graph.outputs[0]].type.bytes());
  size_t compared = 0, of_device = 0;
  context->watch([&](size_t s, bool done) {
    const ModelStep& step = prepared.steps.steps[s];
    const graph::Value& value = prepared.steps.graph[step.writes];
    const ValuePlace& place = prepared.memory.values[step.writes];
    if (!done || ::testing::Test::HasFailure() || value.origin == graph::kNoValue ||
        !reference.has(value.origin) || value.type.dtype != DType::kUInt8 ||
        place.where != ValuePlace::Where::kArena)
      return;
    ++compared;
    of_device += step.accelerated ? 1 : 0;
    const auto* found = reinterpret_cast<const uint8_t*>(context->arena() + place.offset);
    const std::vector<float>& wanted = reference[value.origin];
    for (size_t i = 0; i < wanted.size(); ++i)
      ASSERT_EQ(static_cast<float>(found[place_of(value.type, block_of(step), i)]), wanted[i])
          << step.name << " [" << i << "], " << step.workload.key();
  });
  const Status ran = context->run({input.data()}, {scores.data()});
  ASSERT_TRUE(ran.is_ok()) << ran.message();
  const std::vector<float>& wanted = reference[prepared.graph.outputs[0]];
  EXPECT_EQ(std::memcmp(scores.data(), wanted.data(), wanted.size() * sizeof(float)), 0);
  EXPECT_GE(of_device, GetParam().accelerated);
  // Something is computed: scores differ.
  EXPECT_GT(std::set<float>(wanted.begin(), wanted.end()).size(), 20u);
  std::printf("%s: %zu values equal, %zu of them the device's\n", GetParam().name, compared, of_device);
}

INSTANTIATE_TEST_SUITE_P(Networks, NpuNetwork,
                         ::testing::Values(NetworkCase{"resnet50_int8", 70},
                                           NetworkCase{"mobilenetv2_int8", 60},
                                           NetworkCase{"transformer_int8", 24}),
                         [](const auto& info) { return std::string(info.param.name); });

// Compiles a network and runs it: bytes of its result.
struct Scores {
  size_t accelerated_steps = 0;
  std::vector<char> bytes;
};
Scores scores_of(const std::string& network) {
  const TemporaryFolder folder;
  const auto bytes = testing::quantized_network(network, {.image = 40, .batch = 1, .narrower = 4, .seed = 9});
  EXPECT_TRUE(bytes.is_ok()) << bytes.message();
  CompileRequest request{.model = folder.file("net.onnx"), .output = folder.file("net")};
  std::ofstream(request.model, std::ios::binary) << *bytes;
  request.target = *resolve_target("cpu");
  request.accelerator = *parse_target("npu");
  request.db = folder.file("none.db");
  request.tune = false;
  auto model = prepare_model(request, [] { return false; });
  EXPECT_TRUE(model.is_ok()) << model.message();
  if (!model) return {};
  const int64_t size = model->graph[model->graph.outputs[0]].type.bytes();
  AlignedBuffer input(model->graph[model->graph.inputs[0]].type.bytes());
  for (int64_t i = 0; i < input.bytes() / 4; ++i)
    input.as<float>()[i] = std::sin(static_cast<float>(i * i % 4001));
  const auto out = open_model_folder(request, *model);
  const auto built = build_model(request, *model, **out, [] { return false; });
  EXPECT_TRUE(built.is_ok()) << built.message();
  const auto compiled = CompiledModel::open(request.output);
  EXPECT_TRUE(compiled.is_ok()) << compiled.message();
  if (!built || !compiled) return {};
  AlignedBuffer scores(size);
  const Status ran = compiled->context()->run({input.data()}, {scores.data()});
  EXPECT_TRUE(ran.is_ok()) << ran.message();
  const auto* const from = reinterpret_cast<const char*>(scores.data());
  return {built->accelerated_steps, {from, from + size}};
}

// A network of float32 operators between DequantizeLinear and QuantizeLinear is the one on bytes. The check
// of build_model() holds it against these operators themselves.
TEST(NpuNetworkForms, BothFormsGiveTheSame) {
  for (const char* name : {"transformer", "mobilenetv2", "resnet50"}) {
    const Scores on_bytes = scores_of(str(name, "_int8")), between = scores_of(str(name, "_qdq"));
    EXPECT_EQ(on_bytes.accelerated_steps, between.accelerated_steps) << name;
    EXPECT_GT(between.accelerated_steps, 20U) << name;
    EXPECT_EQ(on_bytes.bytes, between.bytes) << name;
    EXPECT_GT(std::set<char>(between.bytes.begin(), between.bytes.end()).size(), 10U) << name;
  }
}

// Cycles of a run are the same again, and every copy counts once.
TEST(NpuNetworkCosts, AreOfEachStep) {
  const TemporaryFolder folder;
  const auto bytes =
      testing::quantized_network("mobilenetv2_int8", {.image = 32, .batch = 1, .narrower = 4, .seed = 5});
  CompileRequest request{.model = folder.file("net.onnx"), .output = folder.file("net")};
  std::ofstream(request.model, std::ios::binary) << *bytes;
  request.target = *resolve_target("cpu");
  request.accelerator = *parse_target("npu");
  request.db = folder.file("none.db");
  request.tune = false;
  auto model = prepare_model(request, [] { return false; });
  ASSERT_TRUE(model.is_ok()) << model.message();
  const auto out = open_model_folder(request, *model);
  ASSERT_TRUE(out.is_ok()) << out.message();
  const auto built = build_model(request, *model, **out, [] { return false; });
  ASSERT_TRUE(built.is_ok()) << built.message();
  auto run = ModelRun::open(request.output, {});
  ASSERT_TRUE(run.is_ok()) << run.message();
  const auto first = step_costs(*run), again = step_costs(*run);
  ASSERT_TRUE(first.is_ok() && again.is_ok()) << first.message();
  size_t accelerated = 0;
  for (size_t s = 0; s < first->size(); ++s) {
    const StepCosts& costs = (*first)[s];
    accelerated += costs.accelerated ? 1 : 0;
    EXPECT_EQ(costs.cycles > 100 && costs.nanojoules > 0, costs.accelerated);
    EXPECT_EQ(costs.cycles, (*again)[s].cycles);
  }
  EXPECT_EQ(accelerated, built->accelerated_steps);
  const CompiledPlan& plan = run->model().plan();
  const DeviceCopies copies = device_copies(plan);
  // The image in NHWC, and the scores.
  EXPECT_EQ(copies.to_device, 1);
  EXPECT_EQ(copies.to_device_bytes, 3 * 32 * 32);
  EXPECT_EQ(copies.to_host, 1);
  EXPECT_EQ(copies.to_host_bytes, 1000);
}

}  // namespace
}  // namespace tuner
