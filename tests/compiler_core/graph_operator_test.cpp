// Operators whose form or meaning changed in operator sets 18 to 23, older forms beside newer ones, and rules
// that ONNX's own test data (set 17) do not hold. Answers are written out by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/compiler_core/graph_answer.h"

namespace tuner::graph {
namespace {

using testing::Answer;
using testing::Dims;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using testing::floats;
using ::testing::HasSubstr;
using testing::kNone;
using testing::list;
using testing::Numbers;
using testing::of;
using testing::Operand;
using ::testing::Pointwise;
using testing::run;
using testing::word;

// By a 0 that only the run knows, as by 1; a constant one is refused.
TEST(GraphOperator, IntegersAreNotDividedByConstantZeros) {
  const auto integers = [](Numbers numbers) {
    return Operand{{DType::kInt64, {std::ssize(numbers)}}, std::move(numbers)};
  };
  for (const std::string op : {"Div", "Mod"}) {
    EXPECT_THAT(run(14, op, {integers({7, 8}), list({2, 0})}).refusal,
                HasSubstr("divides int64 by 0: element 1 of input 1 is 0, expected other integers"))
        << op;
    EXPECT_EQ(run(14, op, {integers({7, 8}), list({2, 3})}).refusal, "") << op;
  }
  EXPECT_THAT(run(14, "Div", {integers({7, 8}), integers({0, -3})}).numbers, ElementsAre(7, -2));
  EXPECT_THAT(run(14, "Mod", {integers({7, 8}), integers({0, 3})}).numbers, ElementsAre(0, 2));
  EXPECT_EQ(run(14, "Div", {floats({1}, {7}), {{DType::kFloat32, {1}}, {0}, true}}).refusal, "");
}

TEST(GraphOperator, ReductionsTakeAxesAsAttributeAndSince18AsInput) {
  const Operand x = floats({2, 3}, {1, 2, 3, 4, 5, 7});
  for (const std::string op : {"ReduceMax", "ReduceMean", "ReduceL1", "ReduceProd"}) {
    const Answer before = run(13, op, {x}, {{"axes", Dims{1}}, {"keepdims", of(0)}});
    const Answer since = run(18, op, {x, list({1})}, {{"keepdims", of(0)}});
    EXPECT_EQ(before.refusal + since.refusal, "");
    EXPECT_THAT(since.shape, ElementsAre(2));
    EXPECT_EQ(before.numbers, since.numbers) << op;
  }
  EXPECT_THAT(run(18, "ReduceProd", {x, list({1})}).numbers, ElementsAre(6, 140));
  EXPECT_THAT(run(18, "ReduceMean", {x, list({-2})}).numbers, ElementsAre(2.5, 3.5, 5));
  // No axes: all of them, or none.
  EXPECT_THAT(run(18, "ReduceMax", {x}).numbers, ElementsAre(7));
  EXPECT_THAT(run(18, "ReduceMax", {x}, {{"noop_with_empty_axes", of(1)}}).numbers,
              ElementsAre(1, 2, 3, 4, 5, 7));
  EXPECT_THAT(run(18, "ReduceMax", {x, list({2})}).refusal, HasSubstr("axis 2 of a tensor of 2 dimensions"));
}

TEST(GraphOperator, EveryReductionTakesItsAxesAsInputSince18) {
  const Operand x = floats({2, 2}, {3, 4, 1, 2});
  const std::pair<const char*, Numbers> rows[] = {
      {"ReduceMin", {3, 1}},
      {"ReduceL1", {7, 3}},
      {"ReduceL2", {5, std::sqrt(5.0)}},
      {"ReduceSumSquare", {25, 5}},
      {"ReduceLogSum", {std::log(7.0), std::log(3.0)}},
      {"ReduceLogSumExp", {4 + std::log1p(std::exp(-1.0)), 2 + std::log1p(std::exp(-1.0))}},
  };
  for (const auto& [op, expected] : rows) {
    SCOPED_TRACE(op);
    const auto near = Pointwise(DoubleNear(1e-6), expected);
    EXPECT_THAT(run(13, op, {x}, {{"axes", Dims{1}}, {"keepdims", of(0)}}).numbers, near);
    EXPECT_THAT(run(18, op, {x, list({1})}, {{"keepdims", of(0)}}).numbers, near);
    const Answer kept = run(18, op, {x, list({-1})});
    EXPECT_THAT(kept.shape, ElementsAre(2, 1));
    EXPECT_THAT(kept.numbers, near);
  }
}

TEST(GraphOperator, IntegersHaveSizesAndBatchesHaveLimits) {
  const Operand integers{{DType::kInt32, {2}}, {-3, 4}}, row = floats({1, 2}, {5, 6});
  EXPECT_THAT(run(18, "ReduceL1", {integers}).numbers, ElementsAre(7));
  EXPECT_THAT(run(13, "Abs", {integers}).numbers, ElementsAre(3, 4));
  // Of indices with one dimension none is left for a batch.
  EXPECT_THAT(run(13, "GatherND", {row, list({1})}, {{"batch_dims", of(1)}}).refusal,
              HasSubstr("do not fit"));
}

TEST(GraphOperator, ReduceMaxTakesTruthValuesSince20) {
  const Operand truths{{DType::kBool, {2, 2}}, {0, 0, 0, 1}};
  EXPECT_THAT(run(20, "ReduceMax", {truths, list({1})}).numbers, ElementsAre(0, 1));
  EXPECT_THAT(run(20, "ReduceMin", {truths, list({0})}).numbers, ElementsAre(0, 0));
}

// ONNX leaves open what this gives; data must not end a program.
TEST(GraphOperator, IntegersAreDividedByZeroAsByOne) {
  for (const DType dtype : {DType::kUInt8, DType::kInt8, DType::kInt32, DType::kInt64}) {
    SCOPED_TRACE(dtype);
    const Operand a{{dtype, {3}}, {7, 0, 9}}, b{{dtype, {3}}, {0, 0, 2}};
    EXPECT_THAT(run(17, "Div", {a, b}).numbers, ElementsAre(7, 0, 4));
    EXPECT_THAT(run(17, "Mod", {a, b}).numbers, ElementsAre(0, 0, 1));
  }
  const Operand below{{DType::kInt32, {2}}, {-7, -9}}, zero{{DType::kInt32, {2}}, {0, 2}};
  EXPECT_THAT(run(17, "Div", {below, zero}).numbers, ElementsAre(-7, -4));
}

TEST(GraphOperator, SplitTakesItsPartsThreeWays) {
  const Operand x = floats({5}, {1, 2, 3, 4, 5});
  EXPECT_THAT(run(11, "Split", {x}, {{"split", Dims{1, 4}}}, 2, 1).numbers, ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(run(13, "Split", {x, list({3, 2})}, {}, 2, 1).numbers, ElementsAre(4, 5));
  // Since 18 parts need not be equal; the last one is shorter.
  EXPECT_THAT(run(18, "Split", {x}, {{"num_outputs", of(2)}}, 2, 0).numbers, ElementsAre(1, 2, 3));
  EXPECT_THAT(run(18, "Split", {x}, {{"num_outputs", of(2)}}, 2, 1).numbers, ElementsAre(4, 5));
  EXPECT_THAT(run(13, "Split", {x, list({3, 3})}, {}, 2).refusal, HasSubstr("does not split 5 into 2 parts"));
}

TEST(GraphOperator, PadTakesAxesSince18AndWrapsSince19) {
  const Operand x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(run(18, "Pad", {x, list({1, 0}), floats({}, {9}), list({1})}).numbers,
              ElementsAre(9, 1, 2, 3, 9, 4, 5, 6));
  EXPECT_THAT(run(18, "Pad", {x, list({0, 1}), kNone, list({-1})}, {{"mode", word("edge")}}).numbers,
              ElementsAre(1, 2, 3, 3, 4, 5, 6, 6));
  EXPECT_THAT(run(19, "Pad", {x, list({0, 2, 0, 1})}, {{"mode", word("wrap")}}).numbers,
              ElementsAre(2, 3, 1, 2, 3, 1, 5, 6, 4, 5, 6, 4));
  EXPECT_THAT(run(19, "Pad", {x, list({0, 3, 0, 0})}, {{"mode", word("reflect")}}).refusal,
              HasSubstr("a border of 3 of dimension 1, which is 3"));
  // Up to 10 pads and value are attributes; negative pads cut.
  EXPECT_THAT(run(10, "Pad", {x}, {{"pads", Dims{0, -1, 0, 1}}, {"value", 8.0}}).numbers,
              ElementsAre(2, 3, 8, 5, 6, 8));
}

TEST(GraphOperator, ResizeKnowsEachSetsRules) {
  const Operand x = floats({1, 1, 1, 4}, {1, 2, 3, 4});
  const Operand scales{{DType::kFloat32, {4}}, {1, 1, 1, 2}, true};
  // Set 10 and Upsample: what lies below.
  EXPECT_THAT(run(10, "Resize", {x, scales}).numbers, ElementsAre(1, 1, 2, 2, 3, 3, 4, 4));
  EXPECT_THAT(run(9, "Upsample", {x, scales}).numbers, ElementsAre(1, 1, 2, 2, 3, 3, 4, 4));
  EXPECT_THAT(run(7, "Upsample", {x}, {{"scales", Numbers{1, 1, 1, 2}}, {"mode", word("nearest")}}).numbers,
              ElementsAre(1, 1, 2, 2, 3, 3, 4, 4));
  EXPECT_THAT(run(13, "Resize", {x, kNone, scales}, {{"mode", word("linear")}}).numbers,
              ElementsAre(1, 1.25, 1.75, 2.25, 2.75, 3.25, 3.75, 4));
  // Since 18 axes; sizes of these alone.
  EXPECT_THAT(
      run(18, "Resize", {x, kNone, kNone, list({2})}, {{"axes", Dims{3}}, {"mode", word("linear")}}).numbers,
      ElementsAre(1.5, 3.5));
  // Sizes and scales belong to the axes in the model's order.
  EXPECT_THAT(run(18, "Resize", {x, kNone, kNone, list({8, 2})}, {{"axes", Dims{3, 2}}}).shape,
              ElementsAre(1, 1, 2, 8));
  EXPECT_THAT(run(18, "Resize", {x, kNone, kNone, list({8, 2})}, {{"axes", Dims{-1, -2}}}).shape,
              ElementsAre(1, 1, 2, 8));
  EXPECT_THAT(run(18, "Resize", {x, kNone, kNone, list({8, 2})}, {{"axes", Dims{3, -1}}}).refusal,
              HasSubstr("an axis stands twice"));
  // Since 19: 4 * 0.6 = 2.4 pixels, of which 2 are there; their middle stays the middle.
  const Operand smaller{{DType::kFloat32, {4}}, {1, 1, 1, 0.6}, true};
  const Answer symmetric =
      run(19, "Resize", {x, kNone, smaller},
          {{"coordinate_transformation_mode", word("half_pixel_symmetric")}, {"mode", word("linear")}});
  EXPECT_THAT(symmetric.numbers, Pointwise(DoubleNear(1e-6), Numbers{1.666666667, 3.333333333}));
}

// 16 bits, and a scale for each block of an axis; the last block may be shorter.
TEST(GraphOperator, QuantizesToWordsAndByBlocksSince21) {
  const Operand x = floats({2, 3}, {1, 2, 3, -4, 500, 6}), scale = floats({2, 2}, {0.5, 1, 2, 0.001});
  const Attributes blocks{{"axis", of(1)}, {"block_size", of(2)}};
  const auto zeros = [](DType dtype) { return Operand{{dtype, {2, 2}}, {0, 1, 10, 0}}; };
  EXPECT_THAT(run(21, "QuantizeLinear", {x, scale, zeros(DType::kInt16)}, blocks).numbers,
              ElementsAre(2, 4, 4, 8, 260, 6000));
  EXPECT_THAT(run(21, "QuantizeLinear", {x, scale, zeros(DType::kUInt8)}, blocks).numbers,
              ElementsAre(2, 4, 4, 8, 255, 255));
  const Operand words{{DType::kUInt16, {3}}, {0, 40000, 65535}};
  const Operand one = floats({}, {0.5}), zero{{DType::kUInt16, {}}, {32768}};
  EXPECT_THAT(run(21, "DequantizeLinear", {words, one, zero}).numbers, ElementsAre(-16384, 3616, 16383.5));
  EXPECT_THAT(
      run(21, "DequantizeLinear", {{{DType::kInt8, {2, 3}}, {1, 2, 3, 4, 5, 6}}, scale}, blocks).numbers,
      Pointwise(DoubleNear(1e-6), Numbers{0.5, 1, 3, 8, 10, 0.006}));
  EXPECT_THAT(run(19, "DequantizeLinear", {words, one, zero}).refusal,
              HasSubstr("expected int8, uint8 or int32"));
  EXPECT_THAT(run(21, "QuantizeLinear", {x, one}, blocks).refusal,
              HasSubstr("expected one number for each block of 2"));
}

// A part of a line of 5 pixels, and some places beyond it.
TEST(GraphOperator, ResizeTakesARegion) {
  const Operand x = floats({1, 5}, {0, 10, 20, 30, 40});
  const auto taken = [&](Numbers region, double size, Attributes attributes) {
    attributes["coordinate_transformation_mode"] = std::string("tf_crop_and_resize");
    return run(11, "Resize", {x, {{DType::kFloat32, {4}}, std::move(region), true}, kNone, list({1, size})},
               attributes)
        .numbers;
  };
  EXPECT_THAT(taken({0, 0.25, 1, 0.75}, 3, {{"mode", word("linear")}}), ElementsAre(10, 20, 30));
  EXPECT_THAT(taken({0, 0.25, 1, 0.75}, 1, {{"mode", word("linear")}}), ElementsAre(20));
  EXPECT_THAT(taken({0, 0.125, 1, 0.375}, 2, {{"mode", word("linear")}}), ElementsAre(5, 15));
  EXPECT_THAT(taken({0, -0.5, 1, 1.5}, 5, {{"extrapolation_value", 7.0}}), ElementsAre(7, 0, 20, 40, 7));
  EXPECT_THAT(taken({0, 1, 1, 0}, 5, {}), ElementsAre(40, 30, 20, 10, 0));
  EXPECT_THAT(run(11, "Resize", {x, kNone, kNone, list({1, 2})},
                  {{"coordinate_transformation_mode", word("tf_crop_and_resize")}})
                  .refusal,
              HasSubstr("needs a region, input 1"));
}

// Made smaller, a pixel stands for more than its neighbours. The first two are ONNX's examples, the others
// what its definition gives for 40 pixels, k * k modulo 17.
TEST(GraphOperator, ResizeLooksFurtherWithAntialiasSince18) {
  Numbers pixels;
  for (int k = 1; k <= 16; ++k) pixels.push_back(k);
  const auto resized = [&](const char* mode, const Operand& x, const Numbers& by) {
    const Operand scales{{DType::kFloat32, {std::ssize(by)}}, by, true};
    return run(18, "Resize", {x, kNone, scales}, {{"antialias", of(1)}, {"mode", word(mode)}}).numbers;
  };
  const auto near = [](const Numbers& expected) { return Pointwise(DoubleNear(2e-5), expected); };
  const Operand square = floats({1, 1, 4, 4}, pixels);
  EXPECT_THAT(resized("linear", square, {1, 1, 0.6, 0.6}), near({2.875, 4.5, 9.375, 11}));
  EXPECT_THAT(resized("cubic", square, {1, 1, 0.6, 0.6}),
              near({2.51807229, 4.2858864, 9.58932874, 11.35714286}));
  Numbers line;
  for (int k = 0; k < 40; ++k) line.push_back(k * k % 17);
  EXPECT_THAT(resized("linear", floats({1, 1, 40}, line), {1, 1, 0.125}),
              near({7.046875, 8.7265625, 6.90625, 9.4375, 6.125}));
  EXPECT_THAT(resized("cubic", floats({1, 1, 40}, line), {1, 1, 0.125}),
              near({7.39209747, 9.2203064, 6.42113495, 9.94552612, 5.74082184}));
  // Nothing changes where pixels become more.
  EXPECT_EQ(resized("cubic", square, {1, 1, 2, 2}),
            run(18, "Resize", {square, kNone, {{DType::kFloat32, {4}}, {1, 1, 2, 2}, true}},
                {{"mode", word("cubic")}})
                .numbers);
}

// ONNX's examples.
TEST(GraphOperator, ResizeKeepsTheAspectRatioSince18) {
  const Operand x = floats({1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const auto with = [&](const char* policy, const Numbers& sizes) {
    return run(18, "Resize", {x, kNone, kNone, list(sizes)},
               {{"axes", Dims{2, 3}}, {"keep_aspect_ratio_policy", word(policy)}});
  };
  EXPECT_THAT(with("not_larger", {1, 3}).numbers, ElementsAre(1, 3));
  EXPECT_THAT(with("not_smaller", {1, 3}).numbers, ElementsAre(1, 2, 4, 5, 6, 8));
  EXPECT_THAT(with("not_larger", {7, 8}).shape, ElementsAre(1, 1, 4, 8));
  EXPECT_THAT(with("not_smaller", {7, 8}).shape, ElementsAre(1, 1, 7, 14));
  EXPECT_THAT(with("wide", {7, 8}).refusal, HasSubstr("keep_aspect_ratio_policy \"wide\" is not served"));
}

TEST(GraphOperator, ScatterCombinesSince16And18) {
  const Operand x = floats({4}, {1, 2, 3, 4}), updates = floats({3}, {10, 1, 20});
  const Operand at{{DType::kInt64, {3}}, {1, 3, 1}};
  EXPECT_THAT(run(13, "ScatterElements", {x, at, updates}).numbers, ElementsAre(1, 20, 3, 1));
  EXPECT_THAT(run(16, "ScatterElements", {x, at, updates}, {{"reduction", word("add")}}).numbers,
              ElementsAre(1, 32, 3, 5));
  EXPECT_THAT(run(18, "ScatterElements", {x, at, updates}, {{"reduction", word("max")}}).numbers,
              ElementsAre(1, 20, 3, 4));
  EXPECT_THAT(run(18, "ScatterElements", {x, at, updates}, {{"reduction", word("min")}}).numbers,
              ElementsAre(1, 2, 3, 1));
  const Operand places{{DType::kInt64, {2, 1}}, {-1, 0}};
  EXPECT_THAT(run(18, "ScatterND", {x, places, floats({2}, {3, 5})}, {{"reduction", word("max")}}).numbers,
              ElementsAre(5, 2, 3, 4));
}

TEST(GraphOperator, SoftmaxTakesOneAxisSince13) {
  const Operand x = floats({1, 2, 2}, {0, std::log(2.0), std::log(3.0), std::log(4.0)});
  EXPECT_THAT(run(11, "Softmax", {x}).numbers, Pointwise(DoubleNear(1e-7), Numbers{0.1, 0.2, 0.3, 0.4}));
  EXPECT_THAT(run(13, "Softmax", {x}).numbers,
              Pointwise(DoubleNear(1e-7), Numbers{1 / 3.0, 2 / 3.0, 3 / 7.0, 4 / 7.0}));
}

TEST(GraphOperator, GroupNormalizationScalesGroupsAndSince21Channels) {
  const Operand x = floats({1, 4, 1}, {1, 3, 10, 30});
  const Answer groups = run(18, "GroupNormalization", {x, floats({2}, {1, 2}), floats({2}, {0, 5})},
                            {{"num_groups", of(2)}, {"epsilon", 0.0}});
  EXPECT_THAT(groups.numbers, Pointwise(DoubleNear(1e-6), Numbers{-1, 1, 3, 7}));
  const Answer channels =
      run(21, "GroupNormalization", {x, floats({4}, {1, 2, 3, 4}), floats({4}, {0, 0, 0, 1})},
          {{"num_groups", of(2)}, {"epsilon", 0.0}});
  EXPECT_THAT(channels.numbers, Pointwise(DoubleNear(1e-6), Numbers{-1, 2, -3, 5}));
  EXPECT_THAT(
      run(21, "GroupNormalization", {x, floats({2}, {1, 2}), floats({2}, {0, 5})}, {{"num_groups", of(2)}})
          .refusal,
      HasSubstr("are not 4 numbers"));
}

TEST(GraphOperator, NewActivations) {
  const Operand x = floats({3}, {-1, 0, 2});
  const auto near = [](const Numbers& expected) { return Pointwise(DoubleNear(1e-6), expected); };
  EXPECT_THAT(run(20, "Gelu", {x}).numbers, near({-0.158655254, 0, 1.954499736}));
  EXPECT_THAT(run(20, "Gelu", {x}, {{"approximate", word("tanh")}}).numbers,
              near({-0.158808009, 0, 1.954597694}));
  EXPECT_THAT(run(18, "Mish", {x}).numbers, near({-0.303401461, 0, 1.943958871}));
  EXPECT_THAT(run(14, "HardSwish", {x}).numbers, near({-1 / 3.0, 0, 5 / 3.0}));
  EXPECT_THAT(
      run(23, "RMSNormalization", {floats({1, 2}, {3, 4}), floats({2}, {1, 2})}, {{"epsilon", 0.0}}).numbers,
      near({3 / std::sqrt(12.5), 8 / std::sqrt(12.5)}));
}

TEST(GraphOperator, QuantizationNamesItsResultSince21) {
  const Operand x = floats({4}, {-300, 0.5, 1.5, 300});
  const Answer named = run(21, "QuantizeLinear", {x, floats({}, {1})}, {{"output_dtype", word("int8")}});
  EXPECT_EQ(named.dtype, DType::kInt8);
  EXPECT_THAT(named.numbers, ElementsAre(-128, 0, 2, 127));
  EXPECT_THAT(run(10, "QuantizeLinear", {x, floats({}, {1})}).numbers, ElementsAre(0, 0, 2, 255));
  EXPECT_THAT(
      run(21, "QuantizeLinear", {x, floats({2}, {1, 10})}, {{"axis", of(0)}, {"block_size", of(2)}}).numbers,
      ElementsAre(0, 0, 0, 30));
}

TEST(GraphOperator, PoolingsDilateAndCountWhatIsThere) {
  const Operand x = floats({1, 1, 4}, {1, 2, 3, 6});
  EXPECT_THAT(run(19, "AveragePool", {x}, {{"kernel_shape", Dims{2}}, {"dilations", Dims{2}}}).numbers,
              ElementsAre(2, 4));
  EXPECT_THAT(
      run(18, "LpPool", {floats({1, 1, 2}, {3, 4})}, {{"kernel_shape", Dims{2}}, {"p", of(2)}}).numbers,
      ElementsAre(5));
  // Rounded up, the last window lies half behind the image; a window wholly in the padding is none.
  const Attributes up{{"kernel_shape", Dims{3}}, {"strides", Dims{2}}, {"ceil_mode", of(1)}};
  EXPECT_THAT(run(19, "AveragePool", {x}, up).numbers, ElementsAre(2, 4.5));
  EXPECT_THAT(run(12, "MaxPool", {x}, up).numbers, ElementsAre(3, 6));
}

TEST(GraphOperator, ShapesSlicesAndAxesInOldAndNewForms) {
  const Operand x = floats({1, 3, 1}, {1, 2, 3});
  EXPECT_THAT(run(11, "Squeeze", {x}, {{"axes", Dims{0}}}).shape, ElementsAre(3, 1));
  EXPECT_THAT(run(13, "Squeeze", {x, list({-1})}).shape, ElementsAre(1, 3));
  EXPECT_THAT(run(13, "Squeeze", {x}).shape, ElementsAre(3));
  EXPECT_THAT(run(13, "Unsqueeze", {x, list({0, -1})}).shape, ElementsAre(1, 1, 3, 1, 1));
  EXPECT_THAT(run(9, "Slice", {x}, {{"starts", Dims{1}}, {"ends", Dims{3}}, {"axes", Dims{1}}}).numbers,
              ElementsAre(2, 3));
  const Operand backwards[] = {list({-1}), list({-1000}), list({1}), list({-1})};
  EXPECT_THAT(run(13, "Slice", {x, backwards[0], backwards[1], backwards[2], backwards[3]}).numbers,
              ElementsAre(3, 2, 1));
  EXPECT_THAT(run(15, "Shape", {x}, {{"start", of(1)}}).numbers, ElementsAre(3, 1));
  EXPECT_THAT(run(10, "Clip", {x}, {{"min", 1.5}, {"max", 2.5}}).numbers, ElementsAre(1.5, 2, 2.5));
  EXPECT_THAT(run(13, "Clip", {x, kNone, floats({}, {2})}).numbers, ElementsAre(1, 2, 2));
  EXPECT_THAT(run(23, "Reshape", {x, list({0, -1})}).shape, ElementsAre(1, 3));
}

// Places beyond the data are brought to its ends: a kernel reads nothing else, whatever data hold.
TEST(GraphOperator, PlacesFoundInDataAreClamped) {
  const Operand x = floats({3}, {10, 20, 30});
  EXPECT_THAT(run(13, "Gather", {x, {{DType::kInt64, {4}}, {-1, 5, -9, 1}}}).numbers,
              ElementsAre(30, 30, 10, 20));
}

TEST(GraphOperator, CastsOfSets19To23MeanWhatTheyDid) {
  const Operand x = floats({4}, {-1.5, 0, 2.75, 3e9});
  for (const int64_t set : {13, 19, 21, 23}) {
    const Answer truths = run(set, "Cast", {x}, {{"to", word("bool")}});
    EXPECT_EQ(truths.dtype, DType::kBool);
    EXPECT_THAT(truths.numbers, ElementsAre(1, 0, 1, 1));
    const Answer whole = run(set, "Cast", {floats({3}, {-1.5, 0, 2.75})}, {{"to", word("int32")}});
    EXPECT_EQ(whole.dtype, DType::kInt32);
    EXPECT_THAT(whole.numbers, ElementsAre(-1, 0, 2));  // towards zero
    EXPECT_THAT(run(set, "Cast", {x}, {{"to", word("float8e4m3fn")}, {"saturate", of(1)}}).refusal,
                HasSubstr("a cast to \"float8e4m3fn\" is not served"));
  }
  for (const int64_t set : {15, 19, 21, 23}) {
    const Answer like = run(set, "CastLike", {floats({3}, {-1.5, 0, 2.75}), {{DType::kInt64, {1}}, {7}}});
    EXPECT_EQ(like.dtype, DType::kInt64);
    EXPECT_THAT(like.numbers, ElementsAre(-1, 0, 2));
  }
}

TEST(GraphOperator, EqualComparesAllItsTypes) {
  for (const int64_t set : {7, 11, 13, 19})
    for (const DType dtype : {DType::kInt32, DType::kInt64, DType::kFloat32, DType::kBool}) {
      const Answer equal = run(set, "Equal", {{{dtype, {2, 2}}, {0, 1, 1, 0}}, {{dtype, {2}}, {0, 1}}});
      EXPECT_EQ(equal.dtype, DType::kBool) << equal.refusal;
      EXPECT_THAT(equal.numbers, ElementsAre(1, 1, 0, 0));
    }
}

TEST(GraphOperator, DequantizationNamesItsResultSince23) {
  const Operand x{{DType::kInt8, {2, 2}}, {-100, 3, 5, 127}}, scale = floats({2}, {0.5, 2});
  const Operand zero{{DType::kInt8, {2}}, {1, -1}};
  for (const int64_t set : {13, 19, 21, 23})
    EXPECT_THAT(run(set, "DequantizeLinear", {x, scale, zero}, {{"axis", of(0)}}).numbers,
                ElementsAre(-50.5, 1, 12, 256));
  const Answer whole = run(23, "DequantizeLinear", {{{DType::kInt32, {2}}, {-7, 9}}, floats({}, {0.25})});
  EXPECT_THAT(whole.numbers, ElementsAre(-1.75, 2.25));
  const Answer half =
      run(23, "DequantizeLinear", {x, scale, zero}, {{"axis", of(0)}, {"output_dtype", word("float16")}});
  EXPECT_EQ(half.dtype, DType::kFloat16) << half.refusal;
  EXPECT_THAT(half.numbers, ElementsAre(-50.5, 1, 12, 256));
  EXPECT_THAT(
      run(23, "DequantizeLinear", {x, scale}, {{"axis", of(0)}, {"output_dtype", word("int8")}}).refusal,
      HasSubstr("a result of int8 is not served"));
  EXPECT_THAT(run(21, "DequantizeLinear", {x, floats({2, 2}, {1, 1, 1, 1})}).refusal,
              HasSubstr("input 1 is"));
}

TEST(GraphOperator, InfinitiesAndNoNumbersAreFoundInSet20) {
  const double inf = HUGE_VAL, nan = std::nan("");
  const Operand x = floats({4}, {inf, -inf, nan, 1});
  for (const int64_t set : {10, 20}) {
    EXPECT_THAT(run(set, "IsInf", {x}).numbers, ElementsAre(1, 1, 0, 0));
    EXPECT_THAT(run(set, "IsInf", {x}, {{"detect_negative", of(0)}}).numbers, ElementsAre(1, 0, 0, 0));
    EXPECT_THAT(run(set, "IsInf", {x}, {{"detect_positive", of(0)}}).numbers, ElementsAre(0, 1, 0, 0));
    EXPECT_THAT(run(set, "IsNaN", {x}).numbers, ElementsAre(0, 0, 1, 0));
    EXPECT_EQ(run(set, "IsNaN", {x}).dtype, DType::kBool);
  }
}

TEST(GraphOperator, ConstantsOfAShapeInSets9To23) {
  for (const int64_t set : {9, 20, 21, 23}) {
    const Answer zeros = run(set, "ConstantOfShape", {list({2, 3})});
    EXPECT_EQ(zeros.dtype, DType::kFloat32);
    EXPECT_THAT(zeros.shape, ElementsAre(2, 3));
    EXPECT_THAT(zeros.numbers, ElementsAre(0, 0, 0, 0, 0, 0));
    const Answer sevens =
        run(set, "ConstantOfShape", {list({2})}, {{"value", 7.0}, {"value_type", word("int64")}});
    EXPECT_EQ(sevens.dtype, DType::kInt64);
    EXPECT_THAT(sevens.numbers, ElementsAre(7, 7));
  }
}

// 2 * (1 - 1) and 2 * (5 - 1) by rows; sums of -8 and 12 in the units of the result.
TEST(GraphOperator, ProductsOf8BitsInSet21) {
  const Operand a{{DType::kUInt8, {1, 2}}, {1, 5}}, b{{DType::kInt8, {2, 2}}, {9, 9, -2, 3}};
  const Operand zero_a{{DType::kUInt8, {}}, {1}}, zero_b{{DType::kInt8, {}}, {0}},
      zero{{DType::kInt8, {}}, {-3}};
  for (const int64_t set : {10, 21}) {
    const Answer product =
        run(set, "QLinearMatMul",
            {a, floats({}, {0.5}), zero_a, b, floats({}, {2}), zero_b, floats({}, {4}), zero});
    EXPECT_EQ(product.dtype, DType::kInt8) << product.refusal;
    EXPECT_THAT(product.numbers, ElementsAre(-5, 0));
  }
}

// By rows of a and columns of b: (1 - 1, 5 - 1) and (2 - 2, 4 - 2), times (9 - 1, 9), (-2 - 1, 3).
TEST(GraphOperator, ProductsOf8BitsWithNumbersOfRowsAndColumns) {
  const Operand a{{DType::kUInt8, {2, 2}}, {1, 5, 2, 4}}, b{{DType::kInt8, {2, 2}}, {9, 9, -2, 3}};
  const Operand zero_a{{DType::kUInt8, {2}}, {1, 2}}, zero_b{{DType::kInt8, {2}}, {1, 0}},
      zero{{DType::kInt8, {}}, {-3}};
  // Sums: -12, 12; -6, 6. Times 0.5 or 1 a row, 2 or 1 a column, in fours.
  const Answer product =
      run(21, "QLinearMatMul",
          {a, floats({2}, {0.5, 1}), zero_a, b, floats({2}, {2, 1}), zero_b, floats({}, {4}), zero});
  EXPECT_THAT(product.numbers, ElementsAre(-6, -1, -6, -1)) << product.refusal << "; ties to even";
  const Answer real =
      run(21, "com.microsoft.MatMulIntegerToFloat",
          {a, b, floats({2}, {0.5, 1}), floats({2}, {2, 1}), zero_a, zero_b, floats({2}, {100, 200})});
  EXPECT_EQ(real.dtype, DType::kFloat32) << real.refusal;
  EXPECT_THAT(real.numbers, ElementsAre(88, 206, 88, 206));
}

// b by rows: (9 - 1, -2 - 1) and (3, 4) of columns; with 7 and -1 of the bias.
TEST(GraphOperator, GemmOf8Bits) {
  const Operand a{{DType::kUInt8, {1, 2}}, {1, 5}}, b{{DType::kInt8, {2, 2}}, {9, -2, 3, 4}},
      zero_a{{DType::kUInt8, {}}, {1}}, zero_b{{DType::kInt8, {2}}, {1, 0}},
      bias{{DType::kInt32, {2}}, {7, -1}}, zero{{DType::kUInt8, {}}, {30}};
  const Attributes attributes{{"transB", int64_t{1}}, {"alpha", 0.5}};
  // Sums: 4 * -3 + 7 and 4 * 4 - 1, times 0.5 * 2 * (1, 3).
  const std::vector<Operand> operands{a, floats({}, {2}), zero_a, b, floats({2}, {1, 3}), zero_b, bias};
  const Answer real = run(17, "com.microsoft.QGemm", operands, attributes);
  EXPECT_EQ(real.dtype, DType::kFloat32) << real.refusal;
  EXPECT_THAT(real.numbers, ElementsAre(-5, 45));
  std::vector<Operand> rounded = operands;
  rounded.push_back(floats({}, {2}));
  rounded.push_back(zero);
  const Answer bytes = run(17, "com.microsoft.QGemm", rounded, attributes);
  EXPECT_EQ(bytes.dtype, DType::kUInt8) << bytes.refusal;
  EXPECT_THAT(bytes.numbers, ElementsAre(28, 52)) << "-2.5 and 22.5 are ties";
}

// What each byte stands for is computed with, and rounded: in halves around 2 unless said otherwise.
TEST(GraphOperator, ElementsOf8Bits) {
  const auto byte = [](double x) { return Operand{{DType::kUInt8, {}}, {x}}; };
  const Operand x{{DType::kUInt8, {3}}, {0, 2, 6}}, half = floats({}, {0.5});  // -1, 0, 2
  const Operand y{{DType::kUInt8, {3}}, {8, 8, 1}};                            // 3, 3, -0.5
  EXPECT_THAT(
      run(17, "com.microsoft.QLinearMul", {x, half, byte(2), y, half, byte(2), half, byte(10)}).numbers,
      ElementsAre(4, 10, 8));
  EXPECT_THAT(
      run(17, "com.microsoft.QLinearLeakyRelu", {x, half, byte(2), half, byte(10)}, {{"alpha", 0.5}}).numbers,
      ElementsAre(9, 10, 14));
  // 0.2689, 0.5 and 0.8808, in hundredths.
  EXPECT_THAT(
      run(17, "com.microsoft.QLinearSigmoid", {x, half, byte(2), floats({}, {0.01}), byte(0)}).numbers,
      ElementsAre(27, 50, 88));
  const Operand chosen{{DType::kBool, {3}}, {1, 0, 1}};
  EXPECT_THAT(run(17, "com.microsoft.QLinearWhere",
                  {chosen, x, half, byte(2), y, floats({}, {1}), byte(2), half, byte(10)})
                  .numbers,
              ElementsAre(8, 22, 14));
  const Answer both =
      run(17, "com.microsoft.QLinearConcat", {half, byte(10), x, half, byte(2), y, floats({}, {2}), byte(2)},
          {{"axis", int64_t{0}}});
  EXPECT_THAT(both.shape, ElementsAre(6)) << both.refusal;
  EXPECT_THAT(both.numbers, ElementsAre(8, 10, 14, 34, 34, 6));
  // Means of -1 and 0, 0 and 2; of the last window without what lies outside.
  const Operand row{{DType::kUInt8, {1, 1, 1, 3}}, {0, 2, 6}};
  const Answer means =
      run(17, "com.microsoft.QLinearAveragePool", {row, half, byte(2), floats({}, {0.25}), byte(10)},
          {{"kernel_shape", std::vector<int64_t>{1, 2}}, {"pads", std::vector<int64_t>{0, 0, 0, 1}}});
  EXPECT_THAT(means.numbers, ElementsAre(8, 14, 18)) << means.refusal;
}

// Of ONNX Runtime's domain. (5 - 1) * 0.5 + (9 - 5) * 2 and 0 * 0.5 + (0 - 5) * 2, in fours, from 3 on.
TEST(GraphOperator, SumsAndAveragesOf8Bits) {
  const auto byte = [](double x) { return Operand{{DType::kUInt8, {}}, {x}}; };
  const Operand a{{DType::kUInt8, {2}}, {5, 1}}, b{{DType::kUInt8, {2}}, {9, 0}};
  const Answer sum =
      run(17, "com.microsoft.QLinearAdd",
          {a, floats({}, {0.5}), byte(1), b, floats({}, {2}), byte(5), floats({}, {4}), byte(3)});
  EXPECT_EQ(sum.dtype, DType::kUInt8) << sum.refusal;
  EXPECT_THAT(sum.numbers, ElementsAre(5, 1)) << "2.5 and -2.5 are ties";
  const Operand image{{DType::kUInt8, {1, 2, 1, 2}}, {10, 21, 0, 3}};
  const Answer mean = run(17, "com.microsoft.QLinearGlobalAveragePool",
                          {image, floats({}, {0.5}), byte(1), floats({}, {0.25}), byte(100)});
  EXPECT_THAT(mean.shape, ElementsAre(1, 2, 1, 1)) << mean.refusal;
  EXPECT_THAT(mean.numbers, ElementsAre(129, 101));
  // Exponentials of 0 and -ln 2: shares of 2/3 and 1/3, in thirds, from 10 on.
  const Operand pair{{DType::kUInt8, {1, 2}}, {5, 4}};
  const Answer shares =
      run(17, "com.microsoft.QLinearSoftmax",
          {pair, {{DType::kFloat32, {}}, {0.6931472}, true}, byte(0), floats({}, {1.0 / 3}), byte(10)});
  EXPECT_THAT(shares.numbers, ElementsAre(12, 11)) << shares.refusal;
  // -1 and 1 deviations, twice, and 1 more at the second.
  const Answer norm =
      run(17, "tuner.QLinearLayerNormalization",
          {{{DType::kUInt8, {1, 2}}, {1, 3}}, floats({2}, {2, 2}), floats({2}, {0, 1}), byte(100)},
          {{"epsilon", 1e-5}});
  EXPECT_THAT(norm.numbers, ElementsAre(98, 103)) << norm.refusal;
}

// Of ONNX Runtime's domain: weights of 4 bits, the first of two in the low half of a byte. a has 18 ones, so
// that two groups of 16 are read, of the second one two weights.
TEST(GraphOperator, ProductsWithWeightsOf4Bits) {
  Operand a = floats({1, 18}, Numbers(18, 1)), b{{DType::kUInt8, {1, 2, 8}}, Numbers(16, 0x88)};
  a.numbers[0] = 2;                                                                   // times 3 - 8
  b.numbers[0] = 0x93;                                                                // 3, then 9
  b.numbers[8] = 0xc0;                                                                // 0, then 12
  b.numbers[9] = 0xff;                                                                // beyond k
  const Operand scales = floats({2}, {0.5, 4}), zeros{{DType::kUInt8, {1}}, {0x18}};  // 8, then 1
  const Attributes attributes{
      {"K", int64_t{18}}, {"N", int64_t{1}}, {"bits", int64_t{4}}, {"block_size", int64_t{16}}};
  const Answer usual = run(17, "com.microsoft.MatMulNBits", {a, b, scales}, attributes);
  EXPECT_THAT(usual.shape, ElementsAre(1, 1)) << usual.refusal;
  EXPECT_THAT(usual.numbers, ElementsAre((2 * (3 - 8) + 9 - 8) * 0.5 + (0 - 8 + 12 - 8) * 4));
  const Answer moved = run(17, "com.microsoft.MatMulNBits", {a, b, scales, zeros}, attributes);
  EXPECT_THAT(moved.numbers, ElementsAre((2 * (3 - 8) + 9 - 8) * 0.5 + (0 - 1 + 12 - 1) * 4))
      << moved.refusal;
}

// Sets 19 to 23 gave these operators types more, most of which no kernel has; on float32 they mean what they
// did.
TEST(GraphOperator, SetsThatOnlyAddTypesChangeNoAnswer) {
  struct Case {
    const char* op;
    std::vector<int64_t> sets;  // the last one before, and those that changed it
    std::vector<Operand> operands;
    Attributes attributes;
    Numbers expected;
  };
  const Operand x = floats({1, 1, 2, 2}, {1, 2, 3, 4}), kernel = floats({1, 1, 2, 2}, {1, 0, 0, -1});
  const Operand flat = floats({2, 2}, {1, 2, 3, 4});
  const Case cases[] = {
      {"Conv", {11, 22}, {x, kernel}, {}, {-3}},
      {"ConvTranspose", {11, 22}, {floats({1, 1, 1, 1}, {2}), kernel}, {}, {2, 0, 0, -2}},
      {"MaxPool", {12, 22}, {x}, {{"kernel_shape", Dims{2, 2}}}, {4}},
      {"AveragePool", {11, 19, 22}, {x}, {{"kernel_shape", Dims{2, 2}}}, {2.5}},
      {"GlobalAveragePool", {1, 22}, {x}, {}, {2.5}},
      {"GlobalMaxPool", {1, 22}, {x}, {}, {4}},
      {"InstanceNormalization",
       {6, 22},
       {floats({1, 1, 2}, {1, 3}), floats({1}, {2}), floats({1}, {1})},
       {{"epsilon", 0.0}},
       {-1, 3}},
      {"LpNormalization", {1, 22}, {floats({1, 2}, {3, 4})}, {}, {0.6, 0.8}},
      {"Elu", {6, 22}, {floats({1}, {2})}, {}, {2}},
      {"Selu", {6, 22}, {floats({1}, {0})}, {}, {0}},
      {"ThresholdedRelu", {10, 22}, {flat}, {{"alpha", 2.5}}, {0, 0, 3, 4}},
      {"HardSigmoid", {6, 22}, {flat}, {{"alpha", 0.1}, {"beta", 0.25}}, {0.35, 0.45, 0.55, 0.65}},
      {"HardSwish", {14, 22}, {floats({2}, {3, -3})}, {}, {3, 0}},
      {"Softsign", {1, 22}, {floats({2}, {1, -3})}, {}, {0.5, -0.75}},
      {"Round", {11, 22}, {floats({4}, {0.5, 1.5, -2.5, 2.4})}, {}, {0, 2, -2, 2}},
      {"Sin", {7, 22}, {floats({1}, {0})}, {}, {0}},
      {"EyeLike", {9, 22}, {flat}, {{"k", of(1)}}, {0, 1, 0, 0}},
      {"Dropout", {13, 22}, {flat}, {}, {1, 2, 3, 4}},
      {"Identity", {16, 19, 21, 23}, {flat}, {}, {1, 2, 3, 4}},
      {"Flatten", {13, 21, 23}, {x}, {{"axis", of(2)}}, {1, 2, 3, 4}},
      {"Transpose", {13, 21, 23}, {flat}, {}, {1, 3, 2, 4}},
      {"Size", {13, 19, 21, 23}, {x}, {}, {4}},
      {"Shape", {15, 19, 21, 23}, {x}, {{"start", of(-2)}}, {2, 2}},
      {"Reshape", {14, 19, 21, 23}, {flat, list({4})}, {}, {1, 2, 3, 4}},
      {"Squeeze", {13, 21, 23}, {x, list({0, 1})}, {}, {1, 2, 3, 4}},
      {"Unsqueeze", {13, 21, 23}, {flat, list({0})}, {}, {1, 2, 3, 4}},
      {"Pad", {19, 21, 23}, {flat, list({0, 1, 0, 0})}, {}, {0, 1, 2, 0, 3, 4}},
      {"Resize", {18, 19}, {x, kNone, kNone, list({1, 1, 4, 2})}, {}, {1, 2, 1, 2, 3, 4, 3, 4}},
      {"QuantizeLinear",
       {19, 21, 23},
       {flat, floats({}, {0.5}), {{DType::kUInt8, {}}, {1}}},
       {},
       {3, 5, 7, 9}},
  };
  for (const Case& c : cases) {
    std::vector<int64_t> shape;
    for (const int64_t set : c.sets) {
      const Answer answer = run(set, c.op, c.operands, c.attributes);
      EXPECT_EQ(answer.refusal, "") << c.op << " of set " << set;
      EXPECT_THAT(answer.numbers, Pointwise(DoubleNear(1e-6), c.expected)) << c.op << " of set " << set;
      if (set == c.sets.front()) shape = answer.shape;
      EXPECT_EQ(answer.shape, shape) << c.op << " of set " << set;
    }
  }
}

TEST(GraphOperator, EinsumReadsEquations) {
  const Operand a = floats({2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(run(12, "Einsum", {a, a}, {{"equation", word("ij, jk -> ik")}}).numbers,
              ElementsAre(7, 10, 15, 22));
  EXPECT_THAT(run(12, "Einsum", {a}, {{"equation", word("ii")}}).numbers, ElementsAre(5));
  EXPECT_THAT(run(12, "Einsum", {a}, {{"equation", word("...j->...")}}).numbers, ElementsAre(3, 7));
  EXPECT_THAT(run(12, "Einsum", {a}, {{"equation", word("ij->k")}}).refusal,
              HasSubstr("'k' of the result is in no operand"));
  EXPECT_THAT(run(12, "Einsum", {a}, {{"equation", word("ijk->i")}}).refusal,
              HasSubstr("does not fit 2 dimensions"));
}

// What ONNX's page of each operator says of attributes that are not given. Answers follow from the formulas
// there.
struct DefaultCase {
  const char* op;
  std::vector<Operand> operands;
  Numbers expected;
  Attributes attributes = {};
  size_t results = 1, result = 0;
};
void expect_defaults(const std::vector<DefaultCase>& cases) {
  for (const DefaultCase& c : cases) {
    const int64_t set = std::string_view(c.op) == "RMSNormalization" ? 23 : 20;
    const Answer answer = run(set, c.op, c.operands, c.attributes, c.results, c.result);
    EXPECT_EQ(answer.refusal, "") << c.op;
    EXPECT_THAT(answer.numbers, Pointwise(DoubleNear(1e-5), c.expected)) << c.op << " result " << c.result;
  }
}
const Operand kOne = floats({1}, {1}), kMatrix = floats({2, 2}, {1, 2, 4, 3}),
              kImage = floats({1, 1, 2, 2}, {1, 2, 3, 4});

TEST(GraphOperator, ActivationsHaveOnnxsDefaults) {
  const double e = std::exp(1.0);
  const Operand two = floats({2}, {-2, 2});
  expect_defaults({
      {"LeakyRelu", {two}, {-0.02, 2}},
      {"Elu", {two}, {std::exp(-2.0) - 1, 2}},
      {"Celu", {two}, {std::exp(-2.0) - 1, 2}},
      {"Celu", {two}, {2 * (1 / e - 1), 2}, {{"alpha", 2.0}}},
      {"Selu",
       {two},
       {1.05070102214813232421875 * 1.67326319217681884765625 * (std::exp(-2.0) - 1),
        2 * 1.05070102214813232421875}},
      {"ThresholdedRelu", {floats({3}, {0.9, 1, 1.1})}, {0, 0, 1.1}},
      {"HardSigmoid", {floats({3}, {-2, 1, 3})}, {0.1, 0.7, 1}},
      {"Shrink", {floats({4}, {-0.6, -0.5, 0.5, 0.6})}, {-0.6, 0, 0, 0.6}},
      {"Shrink", {two}, {-1.75, 1.75}, {{"lambd", 1.0}, {"bias", 0.25}}},
      {"Swish", {kOne}, {1 / (1 + 1 / e)}},
      {"Gelu", {kOne}, {0.5 * (1 + std::erf(std::sqrt(0.5)))}},
      {"LogSoftmax",
       {kMatrix},
       {-std::log(1 + e), -std::log(1 + 1 / e), -std::log(1 + 1 / e), -std::log(1 + e)}},
      {"Hardmax", {kMatrix}, {0, 1, 1, 0}},
  });
}

TEST(GraphOperator, NormalizationsHaveOnnxsDefaults) {
  const double small = std::sqrt(1e-6 + 1e-5);
  const Operand none = floats({1}, {0}), tiny = floats({1, 1, 2}, {0, 0.002});  // mean 0.001, variance 1e-6
  const Operand hundreds = floats({1, 3, 1}, {100, 100, 100});
  expect_defaults({
      {"BatchNormalization", {floats({1, 1}, {3}), kOne, kOne, kOne, none}, {2 / std::sqrt(1e-5) + 1}},
      {"InstanceNormalization", {tiny, kOne, none}, {-0.001 / small, 0.001 / small}},
      {"GroupNormalization", {tiny, kOne, none}, {-0.001 / small, 0.001 / small}, {{"num_groups", of(1)}}},
      {"LayerNormalization", {tiny, floats({2}, {1, 2})}, {-0.001 / small, 0.002 / small}},
      {"LayerNormalization", {tiny, floats({2}, {1, 2})}, {0.001}, {}, 3, 1},
      {"LayerNormalization", {tiny, floats({2}, {1, 2})}, {1 / small}, {}, 3, 2},
      {"RMSNormalization", {floats({1, 1}, {0.001}), kOne}, {0.001 / small}},
      // Along the axes 0, 2 and 3: of each channel.
      {"MeanVarianceNormalization", {floats({1, 2, 1, 2}, {1, 3, 10, 30})}, {-1, 1, -1, 1}},
      {"LpNormalization", {floats({2, 2}, {3, 4, 6, 8})}, {0.6, 0.8, 0.6, 0.8}},
      {"LRN",
       {hundreds},
       {100 / std::pow(5 / 3.0, 0.75), 100 / std::pow(2, 0.75), 100 / std::pow(5 / 3.0, 0.75)},
       {{"size", of(3)}}},
      // Of two channels the one behind.
      {"LRN",
       {hundreds},
       {100 / std::pow(2, 0.75), 100 / std::pow(2, 0.75), 100 / std::pow(1.5, 0.75)},
       {{"size", of(2)}}},
  });
}

TEST(GraphOperator, MovesAndSearchesHaveOnnxsDefaults) {
  const Operand depth = floats({1, 4, 1, 2}, {1, 2, 3, 4, 5, 6, 7, 8}),
                flat = floats({1, 8, 1, 1}, {1, 2, 3, 4, 5, 6, 7, 8});
  expect_defaults({
      {"Flatten", {floats({2, 1, 2}, {1, 2, 3, 4})}, {1, 2, 3, 4}},
      {"Gather", {kMatrix, list({1})}, {4, 3}},
      {"GatherElements", {kMatrix, {{DType::kInt64, {1, 2}}, {1, 0}}}, {4, 2}},
      {"GatherND", {kMatrix, {{DType::kInt64, {1, 2}}, {1, -1}}}, {3}},
      {"OneHot", {list({2, -1, 7}), list({3}), floats({2}, {5, 6})}, {5, 5, 6, 5, 5, 6, 5, 5, 5}},
      {"ScatterElements", {kMatrix, {{DType::kInt64, {1, 2}}, {1, 0}}, floats({1, 2}, {8, 9})}, {1, 9, 8, 3}},
      {"Split", {kMatrix}, {4, 3}, {}, 2, 1},
      {"ArgMax", {kMatrix}, {1, 1}},
      {"ArgMin", {floats({3, 1}, {2, 1, 1})}, {1}},
      {"ArgMax", {floats({3, 1}, {1, 2, 2})}, {2}, {{"select_last_index", of(1)}}},
      {"TopK", {kMatrix, list({1})}, {2, 4}, {}, 2, 0},
      {"TopK", {kMatrix, list({1})}, {1, 0}, {}, 2, 1},
      {"TopK", {floats({3}, {7, 7, 8}), list({3})}, {2, 0, 1}, {}, 2, 1},
      {"CumSum", {floats({3}, {1, 2, 4}), {{DType::kInt64, {1}}, {0}, true}}, {1, 3, 7}},
      {"CumSum", {floats({3}, {1, 2, 4}), list({-1})}, {6, 4, 0}, {{"exclusive", of(1)}, {"reverse", of(1)}}},
      {"Gemm", {floats({1, 2}, {1, 10}), kMatrix, floats({2}, {100, 200})}, {141, 232}},
      {"Transpose", {floats({1, 2, 3}, {1, 2, 3, 4, 5, 6})}, {1, 4, 2, 5, 3, 6}},
      {"Pad", {kOne, list({1, 1})}, {0, 1, 0}},
      {"DepthToSpace", {depth}, {1, 3, 2, 4, 5, 7, 6, 8}, {{"blocksize", of(2)}}},
      {"DepthToSpace", {flat}, {1, 3, 5, 7, 2, 4, 6, 8}, {{"blocksize", of(2)}}},
      {"DepthToSpace", {flat}, {1, 2, 3, 4, 5, 6, 7, 8}, {{"blocksize", of(2)}, {"mode", word("CRD")}}},
      {"SpaceToDepth", {kImage}, {1, 2, 3, 4}, {{"blocksize", of(2)}}},
      {"Trilu", {kMatrix}, {1, 2, 0, 3}},
      {"Trilu", {kMatrix, list({1})}, {0, 2, 0, 0}},
      {"Trilu", {kMatrix, list({-1})}, {0, 0, 4, 0}, {{"upper", of(0)}}},
      {"EyeLike", {kMatrix}, {1, 0, 0, 1}},
      {"ConstantOfShape", {list({2})}, {0, 0}},
      {"Range", {list({5}), list({0}), list({-2})}, {5, 3, 1}},
  });
  EXPECT_THAT(run(20, "Flatten", {floats({2, 1, 2}, {1, 2, 3, 4})}).shape, ElementsAre(2, 2));
  EXPECT_THAT(run(20, "ArgMax", {kMatrix}).shape, ElementsAre(1, 2));
  EXPECT_THAT(run(20, "OneHot", {list({2, 1, 0, 1}), list({3}), floats({2}, {5, 6})}).shape,
              ElementsAre(4, 3));
}

TEST(GraphOperator, PoolingsQuantizationAndResizeHaveOnnxsDefaults) {
  expect_defaults({
      {"AveragePool", {kImage}, {1, 2, 3, 4}, {{"kernel_shape", Dims{1, 1}}}},
      // What lies in the padding is no element, unless it is asked to count.
      {"AveragePool", {floats({1, 1, 1}, {6})}, {6}, {{"kernel_shape", Dims{3}}, {"pads", Dims{1, 1}}}},
      {"AveragePool",
       {floats({1, 1, 1}, {6})},
       {2},
       {{"kernel_shape", Dims{3}}, {"pads", Dims{1, 1}}, {"count_include_pad", of(1)}}},
      {"MaxPool", {kImage}, {3}, {{"kernel_shape", Dims{2, 2}}}, 2, 1},
      {"MaxPool", {floats({1, 1, 2, 2}, {1, 2, 4, 3})}, {2}, {{"kernel_shape", Dims{2, 2}}}, 2, 1},
      {"MaxPool",
       {floats({1, 1, 2, 2}, {1, 2, 4, 3})},
       {1},
       {{"kernel_shape", Dims{2, 2}}, {"storage_order", of(1)}},
       2,
       1},
      {"LpPool", {floats({1, 1, 2}, {3, -4})}, {5}, {{"kernel_shape", Dims{2}}}},
      {"LpPool", {floats({1, 1, 2}, {3, -4})}, {7}, {{"kernel_shape", Dims{2}}, {"p", of(1)}}},
      {"ConvTranspose", {floats({1, 1, 2}, {1, 2}), floats({1, 1, 2}, {1, 10})}, {1, 12, 20}},
      // Scales of the second dimension.
      {"QuantizeLinear", {floats({1, 2}, {1, 1}), floats({2}, {1, 0.5})}, {1, 2}},
      {"DequantizeLinear", {{{DType::kInt8, {1, 2}}, {4, 4}}, floats({2}, {1, 0.5})}, {4, 2}},
      {"DynamicQuantizeLinear", {floats({3}, {-1, 0, 4})}, {0, 51, 255}, {}, 3, 0},
      {"DynamicQuantizeLinear", {floats({3}, {-1, 0, 4})}, {5 / 255.0}, {}, 3, 1},
      {"DynamicQuantizeLinear", {floats({3}, {-1, 0, 4})}, {51}, {}, 3, 2},
      // Half pixels, and of two neighbours the one before: 0.5 * 1.5 - 0.5 = 0.25, 1.75, 3.25.
      {"Resize", {floats({4}, {1, 2, 3, 4}), kNone, kNone, list({2})}, {1, 3}},
      {"Resize", {floats({2}, {0, 8}), kNone, kNone, list({4})}, {0, 2, 6, 8}, {{"mode", word("linear")}}},
      // Weights at a distance of 1/2 with a = -0.75: -3/32, 19/32, 19/32, -3/32.
      {"Resize", {floats({4}, {0, 0, 32, 0}), kNone, kNone, list({2})}, {-3, 19}, {{"mode", word("cubic")}}},
      {"ReverseSequence", {kMatrix, list({2, 1})}, {4, 2, 1, 3}},
      {"Mod", {{{DType::kInt32, {2}}, {-7, 7}}, {{DType::kInt32, {2}}, {3, -3}}}, {2, -2}},
      {"Mod", {floats({2}, {-7, 7}), floats({2}, {3, -3})}, {-1, 1}, {{"fmod", of(1)}}},
  });
}

}  // namespace
}  // namespace tuner::graph
