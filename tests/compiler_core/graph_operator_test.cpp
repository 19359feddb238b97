// Operators whose form or meaning changed in operator sets 18 to 23, older forms beside newer ones, and rules that
// ONNX's own test data (set 17) do not hold. Answers are written out by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compiler_core/graph/builder.h"
#include "compiler_core/graph/operator.h"
#include "compiler_core/graph/reference.h"
#include "compiler_core/oracle/oracle.h"

namespace tuner::graph {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using Numbers = std::vector<double>;
using Dims = std::vector<int64_t>;

struct Operand {
  TensorType type;
  Numbers numbers;
  bool constant = false;
};
Operand floats(Dims shape, Numbers numbers) {
  return {{DType::kFloat32, std::move(shape)}, std::move(numbers)};
}
// A constant list of integers.
Operand list(Numbers numbers) { return {{DType::kInt64, {std::ssize(numbers)}}, std::move(numbers), true}; }
const Operand kNone{{DType::kFloat32, {0}}, {}};  // an input that is not given

struct Answer {
  std::string refusal;
  Dims shape;
  Numbers numbers;
  DType dtype = DType::kFloat32;
};
// Result `result` of the operator in this operator set.
Answer run(int64_t set, const std::string& op, const std::vector<Operand>& operands,
           Attributes attributes = {}, size_t results = 1, size_t result = 0) {
  GraphBuilder b("test", interpret);
  Node node{.name = "n", .op = op, .operator_set = set, .attributes = std::move(attributes)};
  std::vector<Numbers> inputs;
  for (const Operand& operand : operands) {
    if (operand.numbers.empty()) {
      node.inputs.push_back(kNoValue);
    } else if (operand.constant) {
      node.inputs.push_back(b.constant("c", operand.type, Constant::of(operand.numbers, operand.type.dtype)));
    } else {
      node.inputs.push_back(b.input("x", operand.type));
      inputs.push_back(operand.numbers);
    }
  }
  std::vector<std::string> names(results);
  for (size_t k = 0; k < results; ++k) names[k] = str("y", k);
  const auto made = b.add(std::move(node), names);
  if (!made) return {made.message()};
  const Graph graph = b.finish(*made);
  EXPECT_TRUE(check(graph).is_ok()) << check(graph).message();
  const auto answers = run_reference(graph, inputs, interpret);
  if (!answers) return {answers.message()};
  const TensorType& type = graph[graph.outputs[result]].type;
  return {"", type.shape, (*answers)[result], type.dtype};
}
Attribute of(int64_t value) { return value; }
Attribute word(const std::string& value) { return value; }

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

TEST(GraphOperator, ReduceMaxTakesTruthValuesSince20) {
  const Operand truths{{DType::kBool, {2, 2}}, {0, 0, 0, 1}};
  EXPECT_THAT(run(20, "ReduceMax", {truths, list({1})}).numbers, ElementsAre(0, 1));
  EXPECT_THAT(run(20, "ReduceMin", {truths, list({0})}).numbers, ElementsAre(0, 0));
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
  // Since 19: 4 * 0.6 = 2.4 pixels, of which 2 are there; their middle stays the middle.
  const Operand smaller{{DType::kFloat32, {4}}, {1, 1, 1, 0.6}, true};
  const Answer symmetric =
      run(19, "Resize", {x, kNone, smaller},
          {{"coordinate_transformation_mode", word("half_pixel_symmetric")}, {"mode", word("linear")}});
  EXPECT_THAT(symmetric.numbers, Pointwise(DoubleNear(1e-6), Numbers{1.666666667, 3.333333333}));
  EXPECT_THAT(run(18, "Resize", {x, kNone, scales}, {{"antialias", of(1)}}).refusal, HasSubstr("antialias"));
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
      run(21, "QuantizeLinear", {x, floats({2}, {1, 1})}, {{"axis", of(0)}, {"block_size", of(2)}}).refusal,
      HasSubstr("blocks of scales are not served"));
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

}  // namespace
}  // namespace tuner::graph
