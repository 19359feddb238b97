// Accelerators of 8 bits: which operators between DequantizeLinear and QuantizeLinear become operators on
// bytes, rows by join_quantized_rows(), others by find_quantized(), and that the bytes are those of float32,
// up to one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "compiler_core/graph/builder.h"
#include "compiler_core/graph/passes.h"
#include "compiler_core/graph/reference.h"
#include "compiler_core/oracle/oracle.h"

namespace tuner::graph {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using Dims = std::vector<int64_t>;
using Numbers = std::vector<double>;

class QuantizedGraph {
 public:
  QuantizedGraph() : builder_("test", interpret) {}

  ValueId input(const Dims& shape, DType dtype = DType::kUInt8) {
    inputs_.push_back({dtype, shape});
    return builder_.input(str("x", inputs_.size()), inputs_.back());
  }
  ValueId constant(DType dtype, const Dims& shape, const Numbers& numbers) {
    return builder_.constant("c", {dtype, shape}, Constant::of(numbers, dtype));
  }
  ValueId real(double number) { return constant(DType::kFloat32, {}, {number}); }
  ValueId add(const std::string& op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    const auto made = builder_.add(
        {.name = op, .op = op, .attributes = std::move(attributes), .inputs = std::move(inputs)}, {op});
    CHECK(made.is_ok()) << made.message();
    return made->front();
  }
  ValueId dequantized(ValueId bytes, double scale, double zero) {
    return add("DequantizeLinear", {bytes, real(scale), constant(builder_[bytes].type.dtype, {}, {zero})});
  }
  ValueId quantized(ValueId x, double scale, double zero, DType dtype = DType::kUInt8) {
    return add("QuantizeLinear", {x, real(scale), constant(dtype, {}, {zero})});
  }
  // Bytes drawn anew in every test, the same in every run.
  Numbers drawn(size_t count, double least, double most) {
    std::uniform_int_distribution<int> numbers(static_cast<int>(least), static_cast<int>(most));
    Numbers all(count);
    for (double& each : all) each = numbers(random_);
    return all;
  }
  // Operators after the pass. All results are held against those before it.
  std::vector<std::string> joined(std::vector<ValueId> outputs) {
    Graph graph = builder_.finish(std::move(outputs));
    std::vector<Numbers> values;
    for (const TensorType& type : inputs_)
      values.push_back(type.dtype == DType::kInt8 ? drawn(static_cast<size_t>(type.elements()), -128, 127)
                                                  : drawn(static_cast<size_t>(type.elements()), 0, 255));
    const auto before = run_reference(graph, values, interpret);
    for (const auto pass : {join_quantized_rows, find_quantized, drop_dead}) {
      const Status done = pass(graph, interpret);
      EXPECT_TRUE(done) << done.message();
    }
    EXPECT_TRUE(check(graph)) << check(graph).message() << "\n" << to_text(graph);
    const auto after = run_reference(graph, values, interpret);
    EXPECT_TRUE(before && after) << after.message();
    if (!before || !after) return {};
    size_t differ = 0, all = 0;
    for (size_t o = 0; o < after->size(); ++o)
      for (size_t i = 0; i < (*after)[o].size(); ++i, ++all) {
        EXPECT_NEAR((*after)[o][i], (*before)[o][i], 1) << "result " << o << "[" << i << "]";
        // Floats that a product of bytes gives have other last digits.
        const double off = std::fabs((*after)[o][i] - (*before)[o][i]);
        differ += off > 1e-5 * std::fabs((*before)[o][i]) ? 1 : 0;
      }
    EXPECT_LE(differ, all / 50) << "of " << all;
    std::vector<std::string> names;
    for (const Node& node : graph.nodes) names.push_back(node.op);
    return names;
  }

 private:
  GraphBuilder builder_;
  std::vector<TensorType> inputs_;
  std::mt19937 random_{11};
};

TEST(JoinQuantized, ProductsAndConvolutions) {
  QuantizedGraph g;
  const ValueId image = g.dequantized(g.input({1, 3, 6, 6}), 0.02, 0);
  const ValueId weights = g.add("DequantizeLinear",
                                {g.constant(DType::kInt8, {4, 3, 3, 3}, g.drawn(108, -127, 127)),
                                 g.constant(DType::kFloat32, {4}, {0.01, 0.02, 0.03, 0.005}),
                                 g.constant(DType::kInt8, {4}, {0, 0, 0, 0})},
                                {{"axis", int64_t{0}}});
  const ValueId bias = g.add("DequantizeLinear",
                             {g.constant(DType::kInt32, {4}, {100, -200, 3000, 0}),
                              g.constant(DType::kFloat32, {4}, {2e-4, 4e-4, 6e-4, 1e-4})},
                             {{"axis", int64_t{0}}});
  const ValueId conv = g.add("Conv", {image, weights, bias}, {{"pads", Dims{1, 1, 1, 1}}});
  const ValueId first = g.quantized(g.add("Relu", {conv}), 0.05, 0);

  const ValueId a = g.dequantized(g.input({5, 8}), 0.1, 128);
  const ValueId b = g.dequantized(g.constant(DType::kInt8, {8, 6}, g.drawn(48, -127, 127)), 0.02, 0);
  const ValueId second = g.quantized(g.add("MatMul", {a, b}), 0.3, 100);
  EXPECT_THAT(g.joined({first, second}), ElementsAre("QLinearConv", "QLinearMatMul"));
  {
    QuantizedGraph g;
    const ValueId a = g.dequantized(g.input({5, 8}), 0.1, 128), b = g.dequantized(g.input({8, 6}), 0.1, 128);
    EXPECT_THAT(g.joined({g.quantized(g.add("MatMul", {a, b}), 0.3, 100)}), Contains("QLinearMatMul"))
        << "two activations";
  }
}

TEST(JoinQuantized, SumsAveragesAndMoves) {
  QuantizedGraph g;
  const ValueId x = g.input({1, 4, 6, 6}), y = g.input({1, 4, 6, 6});
  const ValueId sum =
      g.quantized(g.add("Add", {g.dequantized(x, 0.1, 100), g.dequantized(y, 0.3, 7)}), 0.35, 90);
  const ValueId pooled = g.quantized(g.add("MaxPool", {g.dequantized(sum, 0.35, 90)},
                                           {{"kernel_shape", Dims{2, 2}}, {"strides", Dims{2, 2}}}),
                                     0.35, 90);
  const ValueId moved = g.quantized(
      g.add("Transpose", {g.dequantized(pooled, 0.35, 90)}, {{"perm", Dims{0, 2, 3, 1}}}), 0.35, 90);
  const ValueId mean = g.quantized(g.add("GlobalAveragePool", {g.dequantized(pooled, 0.35, 90)}), 0.2, 90);
  EXPECT_THAT(g.joined({moved, mean}), ElementsAre("com.microsoft.QLinearAdd", "MaxPool", "Transpose",
                                                   "com.microsoft.QLinearGlobalAveragePool"));
}

TEST(JoinQuantized, RowsOfTheLastAxis) {
  QuantizedGraph g;
  const ValueId shares =
      g.quantized(g.add("Softmax", {g.dequantized(g.input({2, 3, 10}), 0.04, 128)}), 1.0 / 256, 0);
  // What is added to the variance is as large as it: its unit matters.
  const ValueId gains = g.dequantized(g.constant(DType::kInt8, {12}, g.drawn(12, 20, 120)), 0.02, 0);
  const ValueId offsets = g.constant(DType::kFloat32, {12}, g.drawn(12, -2, 2));
  const ValueId normal = g.quantized(
      g.add("LayerNormalization", {g.dequantized(g.input({7, 12}, DType::kInt8), 0.05, -3), gains, offsets},
            {{"epsilon", 10.0}}),
      0.03, 4, DType::kInt8);
  const ValueId without =
      g.quantized(g.add("LayerNormalization", {g.dequantized(g.input({4, 12}), 0.01, 0), gains}), 0.025, 128);
  EXPECT_THAT(g.joined({shares, normal, without}),
              ElementsAre("com.microsoft.QLinearSoftmax", "tuner.QLinearLayerNormalization",
                          "tuner.QLinearLayerNormalization"));
}

// Each of these stays as it is, since operators on bytes would compute something else.
TEST(JoinQuantized, WhatHasNoOperatorOnBytesStays) {
  const auto matmul = [](QuantizedGraph& g, ValueId a, double zero_of_b = 0) {
    const ValueId b =
        g.dequantized(g.constant(DType::kInt8, {8, 6}, g.drawn(48, -127, 127)), 0.02, zero_of_b);
    return g.add("MatMul", {a, b});
  };
  {
    QuantizedGraph g;
    const ValueId product = matmul(g, g.dequantized(g.input({5, 8}), 0.1, 128));
    const ValueId also = g.add("Neg", {product});
    EXPECT_THAT(g.joined({also, g.quantized(product, 0.3, 100)}), Contains("QuantizeLinear"))
        << "its float32 result is read, too";
  }
  {
    QuantizedGraph g;
    const ValueId product = matmul(g, g.dequantized(g.input({5, 8}), 0.1, 128));
    EXPECT_THAT(g.joined({g.quantized(g.add("Relu", {product}), 0.3, 100)}), Contains("Relu"))
        << "100 is not the least byte";
  }
  const auto norm = [](QuantizedGraph& g) {
    const ValueId gains = g.constant(DType::kFloat32, {12}, g.drawn(12, 1, 3));
    return g.add("LayerNormalization", {g.dequantized(g.input({4, 12}), 0.1, 128), gains});
  };
  {
    QuantizedGraph g;
    const ValueId normal = norm(g), also = g.add("Neg", {normal});
    EXPECT_THAT(g.joined({also, g.quantized(normal, 0.1, 128)}), Contains("LayerNormalization"))
        << "its float32 result is read, too";
  }
  {
    QuantizedGraph g;
    EXPECT_THAT(g.joined({g.quantized(g.add("Relu", {norm(g)}), 0.1, 100)}), Contains("Relu"))
        << "100 is not the least byte";
  }
  {
    QuantizedGraph g;
    const ValueId x = g.dequantized(g.input({3, 4}), 0.1, 128);
    EXPECT_THAT(g.joined({g.quantized(g.add("Softmax", {x}, {{"axis", int64_t{0}}}), 1.0 / 256, 0)}),
                Contains("Softmax"))
        << "columns";
  }
  {
    QuantizedGraph g;
    const ValueId x = g.dequantized(g.input({3, 4}), 0.1, 128);
    EXPECT_THAT(g.joined({g.quantized(g.add("Transpose", {x}), 0.1, 127)}), Contains("QuantizeLinear"))
        << "other bytes";
  }
  {
    QuantizedGraph g;
    const ValueId x = g.dequantized(g.input({1, 3, 4, 4}), 0.1, 128),
                  w = g.dequantized(g.constant(DType::kInt8, {2, 3, 1, 1}, g.drawn(6, -9, 9)), 0.1, 0);
    const ValueId bias = g.add("DequantizeLinear", {g.constant(DType::kInt32, {2}, {50, -60}), g.real(0.02)});
    EXPECT_THAT(g.joined({g.quantized(g.add("Conv", {x, w, bias}), 0.3, 100)}), Contains("Conv"))
        << "a bias in other units";
  }
}

}  // namespace
}  // namespace tuner::graph
