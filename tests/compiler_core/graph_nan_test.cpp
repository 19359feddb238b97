// A NaN passes through every operator that is made of minima, maxima or choices. What is expected of each is
// written out, as IEEE 754 and numpy have it.
#include <gtest/gtest.h>

#include <cmath>

#include "compiler_core/graph/reference.h"
#include "tests/compiler_core/graph_writer.h"

namespace tuner::graph {
namespace {

using testing::Dims;
using testing::GraphWriter;
using testing::Numbers;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// What one operator makes of one input; constants behind it.
struct Use1 {
  std::string op;
  Attributes attributes = {};
  std::vector<double> constants = {};  // inputs behind the first, a number each
};

std::vector<Numbers> answers(GraphWriter& g, const std::vector<ValueId>& outputs,
                             const std::vector<Numbers>& inputs) {
  const auto found = run_reference(g.finish(outputs), inputs, interpret);
  EXPECT_TRUE(found.is_ok()) << found.message();
  return found.is_ok() ? *found : std::vector<Numbers>(outputs.size());
}

Numbers of(const Use1& use, const Dims& shape, const Numbers& x) {
  GraphWriter g;
  std::vector<ValueId> inputs{g.input(shape)};
  for (const double c : use.constants) inputs.push_back(g.number(c));
  return answers(g, {g.add(use.op, inputs, use.attributes)}, {x})[0];
}

void expect_same(const Numbers& found, const Numbers& expected, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (size_t k = 0; k < found.size(); ++k)
    EXPECT_TRUE(std::isnan(expected[k]) ? std::isnan(found[k]) : std::fabs(found[k] - expected[k]) < 1e-6)
        << what << "[" << k << "] is " << found[k] << ", expected " << expected[k];
}

const std::vector<Use1> kElementwise = {{"Relu"},
                                        {"Clip", {}, {-1, 1}},
                                        {"Clip", {{"min", -1.0}, {"max", 1.0}}},
                                        {"Sign"},
                                        {"HardSigmoid"},
                                        {"HardSwish"},
                                        {"LeakyRelu"},
                                        {"PRelu", {}, {0.25}},
                                        {"ThresholdedRelu"},
                                        {"Elu"},
                                        {"Selu"},
                                        {"Celu"},
                                        {"Shrink"},
                                        {"Softplus"},
                                        {"Softsign"},
                                        {"Mish"},
                                        {"Gelu"},
                                        {"Swish"},
                                        {"Sigmoid"},
                                        {"Tanh"},
                                        {"Abs"},
                                        {"Max", {}, {1}},
                                        {"Min", {}, {1}}};

TEST(GraphNan, PassesThroughEveryElementwiseOperatorAndNowhereElse) {
  for (const Use1& use : kElementwise) {
    const Numbers y = of(use, {3}, {2, kNan, -2});
    ASSERT_EQ(y.size(), 3U) << use.op;
    EXPECT_FALSE(std::isnan(y[0])) << use.op;
    EXPECT_TRUE(std::isnan(y[1])) << use.op << " gives " << y[1];
    EXPECT_FALSE(std::isnan(y[2])) << use.op;
  }
}

TEST(GraphNan, EitherOperandOfAMaximumMayBeOne) {
  for (const std::string op : {"Max", "Min"}) {
    GraphWriter g;
    const ValueId a = g.input({4}), b = g.input({4});
    const double one = op == "Max" ? 2 : 1;
    expect_same(answers(g, {g.add(op, {a, b})}, {{kNan, 1, kNan, 1}, {1, kNan, kNan, 2}})[0],
                {kNan, kNan, kNan, one}, op);
  }
}

// First, in the middle and last: the running extreme keeps it, and takes it.
TEST(GraphNan, AReductionKeepsItWhereverItStands) {
  for (const std::string op : {"ReduceMax", "ReduceMin", "ReduceLogSumExp", "ReduceL1", "ReduceSumSquare"})
    for (size_t place = 0; place < 4; ++place) {
      Numbers x = {4, 1, 3, 2};
      x[place] = kNan;
      expect_same(of({op}, {4}, x), {kNan}, str(op, " at ", place));
    }
  expect_same(of({"GlobalMaxPool"}, {1, 2, 1, 3}, {1, kNan, 2, 3, 1, 2}), {kNan, 3}, "GlobalMaxPool");
  expect_same(of({"MaxPool", {{"kernel_shape", Dims{2}}}}, {1, 1, 5}, {5, kNan, 1, 2, 0}), {kNan, kNan, 2, 2},
              "MaxPool");
  expect_same(of({"Softmax"}, {1, 3}, {1, kNan, 2}), {kNan, kNan, kNan}, "Softmax");
  expect_same(of({"LogSoftmax"}, {1, 3}, {1, kNan, 2}), {kNan, kNan, kNan}, "LogSoftmax");
}

// As numpy: the first NaN is the extreme.
TEST(GraphNan, PlacesOfExtremesAreTheFirstNan) {
  for (const std::string op : {"ArgMax", "ArgMin"}) {
    expect_same(of({op}, {4}, {3, kNan, 4, kNan}), {1}, op);
    expect_same(of({op, {{"select_last_index", int64_t{1}}}}, {4}, {3, kNan, 4, kNan}), {3}, op);
  }
  expect_same(of({"Hardmax"}, {1, 4}, {3, kNan, 4, kNan}), {0, 1, 0, 0}, "Hardmax");
  GraphWriter g;
  const auto pooled = g.add_all("MaxPool", {g.input({1, 1, 4})}, {{"kernel_shape", Dims{2}}}, 2);
  expect_same(answers(g, pooled, {{5, kNan, 1, 2}})[1], {1, 1, 3}, "MaxPool's places");
}

// A NaN is larger than all numbers, so that places are those of the input and no two are the same.
TEST(GraphNan, TopKPutsItBeforeTheLargest) {
  for (const bool largest : {true, false}) {
    GraphWriter g;
    const auto top = g.add_all("TopK", {g.input({5}), g.list({4})}, {{"largest", int64_t{largest}}}, 2);
    const auto found = answers(g, top, {{1, kNan, 3, kNan, 2}});
    expect_same(found[0], largest ? Numbers{kNan, kNan, 3, 2} : Numbers{1, 2, 3, kNan}, "TopK");
    expect_same(found[1], largest ? Numbers{1, 3, 2, 4} : Numbers{0, 4, 2, 1}, "TopK's places");
  }
}

// The least number of the type, as ONNX Runtime has it.
TEST(GraphNan, QuantisesToTheLeastNumber) {
  for (const auto& [dtype, least] : {std::pair{DType::kInt8, -128.0}, {DType::kUInt8, 0.0}}) {
    GraphBuilder b("test", interpret);
    const ValueId x = b.input("x", {DType::kFloat32, {3}});
    const ValueId scale = b.constant("s", {DType::kFloat32, {}}, Constant::of(Numbers{0.5}, DType::kFloat32));
    const ValueId zero = b.constant("z", {dtype, {}}, Constant::of(Numbers{3}, dtype));
    const auto y = b.add({.name = "q", .op = "QuantizeLinear", .inputs = {x, scale, zero}}, {"y"});
    ASSERT_TRUE(y.is_ok()) << y.message();
    const auto found = run_reference(b.finish(*y), {{1, kNan, -1}}, interpret);
    ASSERT_TRUE(found.is_ok()) << found.message();
    expect_same((*found)[0], {5, least, 1}, "QuantizeLinear");
  }
}

}  // namespace
}  // namespace tuner::graph
