// Graphs: made node by node, checked, printed, and run by the reference.
#include "compiler_core/graph/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compiler_core/graph/builder.h"
#include "compiler_core/graph/operator.h"
#include "compiler_core/graph/reference.h"
#include "compiler_core/oracle/oracle.h"

namespace tuner::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ValueId integers(GraphBuilder& b, const std::vector<int64_t>& values) {
  return b.constant("i", {DType::kInt64, {std::ssize(values)}}, Constant::of(values, DType::kInt64));
}
ValueId add(GraphBuilder& b, const std::string& op, std::vector<ValueId> inputs, Attributes attributes = {}) {
  const auto made =
      b.add({.name = op, .op = op, .attributes = std::move(attributes), .inputs = std::move(inputs)}, {op});
  CHECK(made.is_ok()) << made.message();
  return made->front();
}

// y = relu(x + w)
Graph small() {
  GraphBuilder b("small", interpret);
  const ValueId x = b.input("x", {DType::kFloat32, {2, 2}});
  const ValueId w =
      b.constant("w", {DType::kFloat32, {2}}, Constant::of(std::vector<double>{1, -3}, DType::kFloat32));
  const ValueId sum = add(b, "Add", {x, w});
  return b.finish({add(b, "Relu", {sum})});
}

TEST(Graph, PrintsALineEach) {
  EXPECT_EQ("\n" + to_text(small()), R"(
graph small
  input   %0 = x: float32[2, 2]
  const   %1 = w: float32[2]
  %2 = Add(%0, %1): float32[2, 2]   # Add
  %3 = Relu(%2): float32[2, 2]   # Relu
  output  Relu = %3
)");
}

TEST(Graph, TheReferenceRunsItInOrder) {
  const auto answers = run_reference(small(), {{-2, 1, 5, 4}}, interpret);
  ASSERT_TRUE(answers.is_ok()) << answers.message();
  EXPECT_THAT((*answers)[0], ElementsAre(0, 0, 6, 1));
  EXPECT_EQ(run_reference(small(), {{1, 2}}, interpret).message(), "input \"x\" has 2 elements, expected 4");
  EXPECT_EQ(run_reference(small(), {}, interpret).message(), "0 inputs, expected 1");
}

// What exporters write to flatten an image: Reshape(x, Concat(Gather(Shape(x), 0), -1)).
TEST(Graph, ShapesThatFollowFromShapesAreConstants) {
  GraphBuilder b("flatten", interpret);
  const ValueId x = b.input("x", {DType::kFloat32, {2, 3, 4}});
  const ValueId batch = add(b, "Gather", {add(b, "Shape", {x}), integers(b, {0})});
  const ValueId shape = add(b, "Concat", {batch, integers(b, {-1})}, {{"axis", int64_t{0}}});
  const Graph graph = b.finish({add(b, "Reshape", {x, shape})});
  ASSERT_EQ(graph.nodes.size(), 1U);
  EXPECT_EQ(graph.nodes[0].op, "Reshape");
  EXPECT_THAT(graph[graph.outputs[0]].type.shape, ElementsAre(2, 12));
  EXPECT_TRUE(check(graph).is_ok()) << check(graph).message();
}

TEST(Graph, RefusesWhatTheTableDoesNotServe) {
  GraphBuilder b("wrong", interpret);
  const ValueId x = b.input("x", {DType::kFloat32, {2, 3}}), y = b.input("y", {DType::kFloat32, {4}});
  const ValueId n = b.input("n", {DType::kInt64, {2}});
  const auto refusal = [&](const std::string& op, std::vector<ValueId> inputs) {
    return b.add({.name = "n1", .op = op, .inputs = std::move(inputs)}, {"out"}).message();
  };
  EXPECT_EQ(refusal("Add", {x, y}), "node n1 (Add): shapes [2, 3] and [4] do not broadcast");
  EXPECT_EQ(refusal("Add", {x}), "node n1 (Add): input 1 is missing");
  EXPECT_EQ(refusal("Sum", {x, kNoValue, x}), "node n1 (Sum): input 1 is missing");
  EXPECT_EQ(refusal("Add", {x, x, x}), "node n1 (Add): 3 inputs, expected at most 2");
  EXPECT_EQ(refusal("Bernoulli", {x}), "node n1 (Bernoulli): this operator is not served");
  EXPECT_EQ(refusal("Reshape", {x, n}),
            "node n1 (Reshape): input 1 (n) is an input of the model; expected a constant. If it is the same "
            "in every "
            "run: --constant n=FILE");
  EXPECT_THAT(refusal("Conv", {x, x}), HasSubstr("needs an image [N, C, D1, ...], got 2 dimensions"));
  EXPECT_THAT(b.add({.name = "n1", .op = "Relu", .inputs = {x}}, {"a", "b"}).message(),
              HasSubstr("2 outputs"));
}

TEST(Graph, CheckFindsWhatPassesMayBreak) {
  const auto broken = [](const std::function<void(Graph&)>& change) {
    Graph graph = small();
    change(graph);
    return check(graph).message();
  };
  EXPECT_EQ(broken([](Graph& /*g*/) {}), "");
  EXPECT_THAT(broken([](Graph& g) { std::swap(g.nodes[0], g.nodes[1]); }),
              HasSubstr("no node before it makes"));
  EXPECT_THAT(broken([](Graph& g) { g.nodes.push_back(g.nodes[0]); }), HasSubstr("is there already"));
  EXPECT_THAT(broken([](Graph& g) { g.values[3].type.shape = {4}; }),
              HasSubstr("result 0 is float32[4], expected float32[2, 2]"));
  EXPECT_THAT(broken([](Graph& g) { g.values[1].type.shape = {3}; }), HasSubstr("12 bytes; found 8"));
  EXPECT_THAT(broken([](Graph& g) { g.outputs = {9}; }), HasSubstr("output 9 is a value that nothing makes"));
  EXPECT_THAT(broken([](Graph& g) { g.inputs = {}; }), HasSubstr("no node before it makes"));
}

TEST(Graph, ConstantsKeepWhatTheirTypeHolds) {
  const std::vector<double> numbers{-300, 1.75, 1e10, 0};
  EXPECT_THAT(Constant::of(numbers, DType::kInt8).integers(DType::kInt8), ElementsAre(-128, 1, 127, 0));
  EXPECT_THAT(Constant::of(numbers, DType::kUInt8).integers(DType::kUInt8), ElementsAre(0, 1, 255, 0));
  EXPECT_THAT(Constant::of(numbers, DType::kBool).integers(DType::kBool), ElementsAre(1, 1, 1, 0));
  EXPECT_THAT(Constant::of(std::vector<double>{1e300}, DType::kInt64).integers(DType::kInt64),
              ElementsAre(INT64_MAX));
  EXPECT_THAT(Constant::of(std::vector<double>{-1e300, NAN}, DType::kInt64).integers(DType::kInt64),
              ElementsAre(INT64_MIN, 0));
  EXPECT_THAT(Constant::of(std::vector<int64_t>{INT64_MIN, -1}, DType::kInt64).integers(DType::kInt64),
              ElementsAre(INT64_MIN, -1));
  EXPECT_THAT(Constant::of(std::vector<double>{0.1}, DType::kFloat32).numbers(DType::kFloat32),
              ElementsAre(static_cast<double>(0.1F)));
}

// What does not fit wraps around, as it does in machines.
TEST(Graph, IntegersWrapAsTheirTypeHoldsThem) {
  const auto sum = [](DType dtype, double x, double y) {
    GraphBuilder b("sum", interpret);
    const ValueId first = b.input("x", {dtype, {1}}), second = b.input("y", {dtype, {1}});
    const auto answers = run_reference(b.finish({add(b, "Add", {first, second})}), {{x}, {y}}, interpret);
    EXPECT_TRUE(answers.is_ok()) << answers.message();
    return (*answers)[0][0];
  };
  EXPECT_EQ(sum(DType::kInt32, 2147483647, 1), -2147483648.0);
  EXPECT_EQ(sum(DType::kInt8, 127, 2), -127);
  EXPECT_EQ(sum(DType::kUInt8, 255, 2), 1);
  EXPECT_EQ(sum(DType::kInt64, 4294967296, 1), 4294967297);
}

TEST(Graph, ATensorHasAtMost2To40Bytes) {
  EXPECT_TRUE(check_size({DType::kFloat32, {1024, 1024, 1024, 256}}));
  EXPECT_TRUE(check_size({DType::kInt8, {int64_t{1} << 40}}));
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{1024, 1024, 1024, 257},
                                            {int64_t{1} << 39},
                                            {1 << 20, 1 << 20, 1 << 20, 1 << 20}})
    EXPECT_THAT(check_size({DType::kFloat32, shape}).message(), HasSubstr("more than 2^40 bytes"));
  EXPECT_TRUE(check_size({DType::kFloat32, {3, 0}}));
  EXPECT_THAT(check_size({DType::kFloat32, {3, -1}}).message(), HasSubstr("has a negative extent"));
}

// Each row says what it is; names are found, and no other.
TEST(Graph, TheTableIsFoundByName) {
  EXPECT_EQ(find_operator("Conv")->kind, OperatorKind::kProduct);
  EXPECT_EQ(find_operator("conv"), nullptr);
  EXPECT_GE(all_operators().size(), 100U);
}

}  // namespace
}  // namespace tuner::graph
