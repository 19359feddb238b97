// Networks that are rounded to bytes and back become operators on bytes, and only where these mean the same.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "compiler_core/graph/passes.h"
#include "compiler_core/graph/reference.h"
#include "tests/compiler_core/graph_writer.h"
#include "tests/random_seed.h"

namespace tuner::graph {
namespace {

using testing::Dims;
using testing::GraphWriter;
using testing::Numbers;

// What is not as a quantiser writes it.
enum Change {
  kNone,
  kOtherBiasScale,    // a bias in other units than the products
  kFloatsShown,       // the result is read as floats, too
  kMovedScale,        // a move between different scales
  kFloatOperand,      // an operand that was never bytes
  kRowScales,         // weights of another axis than the channels'
  kReluAroundZero,    // what is below 0 is no least byte
  kPaddedAroundZero,  // the border of an image is no byte of 0
  kChanges
};

class Draws {
 public:
  Draws(uint32_t seed, Change change) : random_(seed), change_(change) {}

  Graph graph() {
    image_zero_ = change_ == kPaddedAroundZero ? 3 : 0;
    const ValueId image = bytes(w_.input({2, 4, 5, 5}), 0.02, image_zero_);
    std::vector<ValueId> outputs;
    for (int64_t kind = 0; kind < 5; ++kind) outputs.push_back(layer(kind, image));
    if (shown_ != kNoValue) outputs.push_back(w_.add("Exp", {shown_}));
    return w_.finish(outputs);
  }

 private:
  double number(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }
  int64_t integer(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }

  ValueId bytes(ValueId real, double scale, double zero) {
    const std::vector<ValueId> in{real, w_.number(scale), w_.constant_of(DType::kUInt8, {}, {zero})};
    return w_.add("QuantizeLinear", in);
  }
  ValueId floats(ValueId x, double scale, double zero) {
    return w_.add("DequantizeLinear", {x, w_.number(scale), w_.constant_of(DType::kUInt8, {}, {zero})});
  }
  ValueId weights(const Dims& shape, int64_t axis, Numbers& scales) {
    int64_t n = 1;
    for (const int64_t extent : shape) n *= extent;
    Numbers numbers;
    for (int64_t k = 0; k < n; ++k) numbers.push_back(static_cast<double>(integer(-127, 127)));
    if (change_ == kRowScales) axis = 1 - axis;
    const int64_t count = shape[static_cast<size_t>(axis)];
    for (int64_t k = 0; k < count; ++k) scales.push_back(static_cast<float>(number(0.001, 0.003)));
    return w_.add("DequantizeLinear",
                  {w_.constant_of(DType::kInt8, shape, numbers), w_.constant({count}, scales),
                   w_.constant_of(DType::kInt8, {count}, Numbers(static_cast<size_t>(count), 0))},
                  {{"axis", axis}});
  }
  // A layer of one kind on the image of bytes, and bytes of its result.
  ValueId layer(int64_t kind, ValueId image) {
    ValueId x = floats(image, 0.02, image_zero_);
    if (change_ == kFloatOperand) x = w_.add("Sin", {x});
    double scale = number(0.01, 0.05);
    double zero = change_ == kReluAroundZero ? 9
                  : integer(0, 1) == 0       ? 0
                                             : static_cast<double>(integer(1, 200));
    ValueId y = kNoValue;
    if (kind == 0) {
      Numbers scales, bias, bias_scales;
      const ValueId w = weights({4, 4, 3, 3}, 0, scales);
      for (int64_t c = 0; c < 4; ++c) {
        bias.push_back(static_cast<double>(integer(-2000, 2000)));
        bias_scales.push_back(static_cast<float>(0.02F * static_cast<float>(scales[static_cast<size_t>(c)])) *
                              (change_ == kOtherBiasScale ? 4 : 1));
      }
      const ValueId b = w_.add("DequantizeLinear",
                               {w_.constant_of(DType::kInt32, {4}, bias), w_.constant({4}, bias_scales)},
                               {{"axis", int64_t{0}}});
      y = w_.add("Conv", {x, w, b}, {{"pads", Dims{1, 1, 1, 1}}});
    } else if (kind == 1) {
      Numbers scales;
      y = w_.add("MatMul", {w_.add("Reshape", {x, w_.list({8, 25})}), weights({25, 6}, 1, scales)});
    } else if (kind == 2) {
      y = w_.add("Add", {x, floats(bytes(w_.input({2, 4, 5, 5}), 0.03, 100), 0.03, 100)});
    } else if (kind == 3) {
      y = w_.add("GlobalAveragePool", {x});
    } else {
      y = w_.add("MaxPool", {x},
                 {{"kernel_shape", Dims{3, 3}}, {"strides", Dims{2, 2}}, {"pads", Dims{1, 1, 1, 1}}});
      scale = change_ == kMovedScale ? 0.0234 : 0.02, zero = image_zero_;
    }
    if (change_ == kFloatsShown && shown_ == kNoValue) shown_ = y;
    if (kind < 4 && (zero == 0 || change_ == kReluAroundZero) && integer(0, 1) == 0) y = w_.add("Relu", {y});
    return bytes(y, scale, zero);
  }

  std::mt19937 random_;
  const Change change_;
  GraphWriter w_;
  double image_zero_ = 0;
  ValueId shown_ = kNoValue;
};

// Right but for bytes that lie between two, and how many operators on bytes there are.
void expect_right(uint32_t seed, Change change, std::multiset<std::string>& found) {
  const Graph before = Draws(seed, change).graph();
  Graph after = before;
  ASSERT_TRUE(optimize(after, interpret, "find-quantized"));
  ASSERT_TRUE(drop_dead(after, interpret));
  ASSERT_TRUE(check(after)) << check(after).message();
  std::mt19937 random(seed);
  std::vector<Numbers> inputs(before.inputs.size());
  for (size_t k = 0; k < inputs.size(); ++k)
    for (int64_t e = 0; e < before[before.inputs[k]].type.elements(); ++e)
      inputs[k].push_back(static_cast<double>(std::uniform_real_distribution<float>(-2, 5)(random)));
  const auto expected = run_reference(before, inputs, interpret),
             got = run_reference(after, inputs, interpret);
  ASSERT_TRUE(expected.is_ok() && got.is_ok()) << expected.message() << got.message();
  for (size_t o = 0; o < expected->size(); ++o)
    for (size_t k = 0; k < (*expected)[o].size(); ++k) {
      const double off = std::fabs((*expected)[o][k] - (*got)[o][k]);
      const bool is_byte = before[before.outputs[o]].type.dtype == DType::kUInt8;
      ASSERT_LE(off, is_byte ? 1 : 1e-9 * (1 + std::fabs((*expected)[o][k])))
          << "output " << o << ", element " << k;
    }
  for (const Node& node : after.nodes) found.insert(node.op);
}

TEST(GraphQuantized, LayersBecomeOperatorsOnBytes) {
  for (const uint32_t seed : Seeds(/*fixed=*/1, /*rounds=*/40)) {
    SCOPED_TRACE(seed);
    std::multiset<std::string> found;
    ASSERT_NO_FATAL_FAILURE(expect_right(seed, kNone, found));
    for (const char* op :
         {"QLinearConv", "com.microsoft.QLinearAdd", "com.microsoft.QLinearGlobalAveragePool", "MaxPool"})
      EXPECT_EQ(found.count(op), 1U) << op;
    EXPECT_EQ(found.count("Conv") + found.count("GlobalAveragePool") + found.count("Add"), 0U);
  }
}

TEST(GraphQuantized, WhatOnlyLooksLikeThemStaysRight) {
  for (const uint32_t seed : Seeds(/*fixed=*/500, /*rounds=*/120)) {
    const auto change = static_cast<Change>(1 + seed % (kChanges - 1));
    SCOPED_TRACE(str("seed ", seed, ", change ", int{change}));
    std::multiset<std::string> found;
    ASSERT_NO_FATAL_FAILURE(expect_right(seed, change, found));
    const bool keeps_conv = change == kFloatOperand || change == kOtherBiasScale || change == kRowScales ||
                            change == kFloatsShown;
    if (change == kReluAroundZero) continue;  // only some have a ReLU
    EXPECT_EQ(found.count("QLinearConv"), keeps_conv ? 0U : 1U);
    EXPECT_EQ(found.count("com.microsoft.QLinearAdd"), change == kFloatOperand ? 0U : 1U);
  }
}

// Signed bytes that the model shows stay what they are.
TEST(GraphQuantized, SignedBytesThatAreShownStaySigned) {
  GraphWriter w;
  const ValueId scale = w.number(0.1), zero = w.constant_of(DType::kInt8, {}, {-7});
  const ValueId x = w.add("QuantizeLinear", {w.input({3, 4}), scale, zero});
  Graph graph = w.finish({x, w.add("Exp", {w.add("DequantizeLinear", {x, scale, zero})})});
  ASSERT_TRUE(find_quantized(graph, interpret));
  ASSERT_TRUE(check(graph)) << check(graph).message();
  EXPECT_EQ(graph[graph.outputs[0]].type.dtype, DType::kInt8);
}

// What transformers have besides: activations times activations, Gemm, products whose result stays floats,
// moves; and all of it on signed bytes, which become unsigned ones.
TEST(GraphQuantized, ProductsAndMovesOfSignedAndUnsignedBytes) {
  for (const DType dtype : {DType::kUInt8, DType::kInt8}) {
    SCOPED_TRACE(dtype_name(dtype));
    std::mt19937 random(first_seed(21));
    GraphWriter w;
    const double middle = dtype == DType::kInt8 ? -5 : 120;
    const auto parts = [&](ValueId x, double scale, double zero) {
      return std::vector<ValueId>{x, w.number(scale), w.constant_of(dtype, {}, {zero})};
    };
    const auto rounded = [&](ValueId x, double scale, double zero) {
      return w.add("DequantizeLinear", parts(w.add("QuantizeLinear", parts(x, scale, zero)), scale, zero));
    };
    const auto weights = [&](const Dims& shape, int64_t axis) {
      std::uniform_int_distribution<int> numbers(-127, 127);
      Numbers drawn;
      for (int64_t k = 0; k < shape[0] * shape[1]; ++k) drawn.push_back(numbers(random));
      const int64_t count = shape[static_cast<size_t>(axis)];
      Numbers scales;
      for (int64_t k = 0; k < count; ++k) scales.push_back(0.25 / static_cast<double>(64 + k));
      return w.add("DequantizeLinear",
                   {w.constant_of(DType::kInt8, shape, drawn), w.constant({count}, scales),
                    w.constant_of(DType::kInt8, {count}, Numbers(static_cast<size_t>(count), 0))},
                   {{"axis", axis}});
    };
    constexpr double kScale = 0.03125;
    const ValueId x = rounded(w.input({4, 6}), kScale, middle),
                  y = rounded(w.input({6, 3}), 0.05, middle + 9),
                  z = rounded(w.input({4, 2}), kScale, middle);
    Numbers units;
    for (int64_t k = 0; k < 5; ++k) units.push_back(kScale * 0.25 / static_cast<double>(64 + k));
    const ValueId bias =
        w.add("DequantizeLinear",
              {w.constant_of(DType::kInt32, {5}, {900, -700, 0, 5, 60}), w.constant({5}, units)},
              {{"axis", int64_t{0}}});
    const ValueId gemm = w.add("Gemm", {x, weights({5, 6}, 0), bias}, {{"transB", int64_t{1}}});
    const std::vector<ValueId> outputs{
        rounded(gemm, 0.06, middle),
        rounded(w.add("MatMul", {x, y}), 0.2, middle),
        w.add("Exp", {w.add("MatMul", {x, weights({6, 7}, 1)})}),
        rounded(w.add("Slice", {x, w.list({1}), w.list({5}), w.list({1})}), kScale, middle),
        rounded(w.add("Concat", {x, z}, {{"axis", int64_t{1}}}), kScale, middle),
        rounded(w.add("Gather", {x, w.list({3, 0})}, {{"axis", int64_t{0}}}), kScale, middle)};
    const Graph before = w.finish(outputs);
    Graph after = before;
    ASSERT_TRUE(optimize(after, interpret, "find-quantized"));
    ASSERT_TRUE(check(after)) << check(after).message();
    std::vector<Numbers> inputs(before.inputs.size());
    for (size_t k = 0; k < inputs.size(); ++k)
      for (int64_t e = 0; e < before[before.inputs[k]].type.elements(); ++e)
        inputs[k].push_back(static_cast<double>(std::uniform_real_distribution<float>(-2, 2)(random)));
    const auto expected = run_reference(before, inputs, interpret),
               got = run_reference(after, inputs, interpret);
    ASSERT_TRUE(expected.is_ok() && got.is_ok()) << expected.message() << got.message();
    constexpr double kSteps[] = {0.06, 0.2, 0, 0, 0, 0};
    for (size_t o = 0; o < expected->size(); ++o)
      for (size_t k = 0; k < (*expected)[o].size(); ++k)
        ASSERT_NEAR((*got)[o][k], (*expected)[o][k],
                    1.001 * kSteps[o] + 1e-6 * (1 + std::fabs((*expected)[o][k])))
            << "output " << o << ", element " << k;
    std::multiset<std::string> found;
    for (const Node& node : after.nodes) {
      found.insert(node.op);
      const bool moves = node.op == "Slice" || node.op == "Concat" || node.op == "Gather";
      const DType type = after[node.outputs[0]].type.dtype;
      EXPECT_TRUE(!moves || type == DType::kUInt8) << node.op << " of " << dtype_name(type);
      EXPECT_NE(type, DType::kInt8) << node.op;
    }
    for (const char* op : {"com.microsoft.QGemm", "QLinearMatMul", "com.microsoft.MatMulIntegerToFloat"})
      EXPECT_EQ(found.count(op), 1U) << op;
    EXPECT_EQ(found.count("MatMul") + found.count("Gemm"), 0U);
  }
}

}  // namespace
}  // namespace tuner::graph
