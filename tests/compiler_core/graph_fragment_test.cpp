// Fragments: cut out of graphs, as text and back, as one Program.
#include "compiler_core/graph/fragment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "compiler_core/graph/reference.h"
#include "tests/compiler_core/graph_writer.h"
#include "tests/random_seed.h"

namespace tuner::graph {
namespace {

using testing::Dims;
using testing::GraphWriter;
using ::testing::HasSubstr;
using testing::Numbers;
using testing::RandomGraph;
using ::testing::StartsWith;

std::vector<size_t> all_nodes(const Graph& graph) {
  std::vector<size_t> nodes(graph.nodes.size());
  for (size_t n = 0; n < nodes.size(); ++n) nodes[n] = n;
  return nodes;
}
std::string text_of(Graph graph, size_t output = 0) {
  const auto fragment = fragment_of(graph, all_nodes(graph), graph.outputs[output]);
  return fragment ? fragment_text(fragment->graph) : "refused: " + fragment.message();
}

TEST(GraphFragment, TextSaysShapesOperatorsOperandsAndAttributes) {
  GraphWriter w;
  const ValueId x = w.input({2, 3, 4}), scale = w.input({3, 1});
  const ValueId y = w.add("LeakyRelu", {w.add("Mul", {x, scale})}, {{"alpha", static_cast<double>(0.1F)}});
  EXPECT_EQ(text_of(w.finish({w.add("Clip", {y, kNoValue, w.number(6)})})),
            "in=float32[2,3,4],float32[3,1] Mul(0,1) LeakyRelu(2){alpha=0.1f} Clip(3,_,float32[](6))");
  GraphWriter moves;
  const ValueId z = moves.input({1, 4, 2});
  EXPECT_EQ(text_of(moves.finish({moves.add("Concat",
                                            {moves.add("Transpose", {z}, {{"perm", Dims{0, 2, 1}}}),
                                             moves.constant({1, 2, 1}, {0.5, -1})},
                                            {{"axis", int64_t{-1}}})})),
            "in=float32[1,4,2] Transpose(0){perm=[0;2;1]} Concat(1,float32[1,2,1](0.5;-1)){axis=-1}");
}

// However many numbers it has: without them there would be no type.
TEST(GraphFragment, AConstantThatDecidesAShapeIsPartOfIt) {
  GraphWriter w;
  Dims shape(17, 1);
  shape[3] = 4;
  EXPECT_EQ(text_of(w.finish({w.add("Reshape", {w.input({4}), w.list(shape)})})),
            "in=float32[4] Reshape(0,int64[17](1;1;1;4;1;1;1;1;1;1;1;1;1;1;1;1;1))");
}

// Names, order of nodes, and nodes that nobody asked for, make no difference.
TEST(GraphFragment, EqualFragmentsHaveEqualText) {
  const auto made = [](bool other) {
    GraphWriter w;
    const ValueId a = w.input({4}), b = w.input({4});
    if (other) w.add("Exp", {a});
    const ValueId left = other ? kNoValue : w.add("Relu", {a});
    const ValueId right = w.add("Tanh", {b});
    const ValueId sum = w.add("Add", {other ? w.add("Relu", {a}) : left, right});
    return text_of(w.finish({sum}));
  };
  EXPECT_EQ(made(false), made(true));
  EXPECT_EQ(made(false), "in=float32[4],float32[4] Relu(0) Tanh(1) Add(2,3)");
}

TEST(GraphFragment, SeveralResultsAndOldMeaningsAreTold) {
  GraphWriter w;
  const ValueId x = w.input({2, 6});
  Graph graph = w.finish({w.add("Softmax", {x}, {{"axis", int64_t{1}}})});
  graph.nodes[0].operator_set = 11;
  EXPECT_EQ(text_of(graph), "in=float32[2,6] Softmax@12(0){axis=1}");
  const auto split = fragment_from_text("in=float32[2,6] Split:1/2(0,int64[2](2;4)){axis=1}");
  ASSERT_TRUE(split) << split.message();
  EXPECT_EQ((*split)[split->outputs[0]].type.shape, (Dims{2, 4}));
  EXPECT_EQ(fragment_text(*split), "in=float32[2,6] Split:1/2(0,int64[2](2;4)){axis=1}");
}

// A later result of an operator, where nobody asks for those before it.
TEST(GraphFragment, LaterResultsStandAlone) {
  const auto expect_alone = [](const std::string& op, const Attributes& attributes, int results,
                               bool counts) {
    SCOPED_TRACE(op);
    GraphWriter w;
    std::vector<ValueId> inputs{w.input({1, 1, 2, 4})};
    if (counts) inputs.push_back(w.list({2}));
    Graph graph = w.finish(w.add_all(op, inputs, attributes, results));
    const Numbers x{1, 5, 3, 0, 2, 4, 6, 6};
    const auto together = run_reference(graph, {x}, interpret);
    ASSERT_TRUE(together) << together.message();
    for (size_t k = 1; k < graph.outputs.size(); ++k) {
      const auto alone = fragment_of(graph, all_nodes(graph), graph.outputs[k]);
      ASSERT_TRUE(alone) << alone.message();
      std::vector<Numbers> args{x, {}};
      const Status ran = interpret(program_of(alone->graph), args);
      ASSERT_TRUE(ran) << ran.message();
      EXPECT_EQ(args[1], (*together)[k]) << "result " << k;
    }
  };
  expect_alone("MaxPool", {{"kernel_shape", Dims{2, 2}}, {"strides", Dims{2, 2}}}, 2, false);
  expect_alone("TopK", {{"axis", int64_t{3}}}, 2, true);
  expect_alone("DynamicQuantizeLinear", {}, 3, false);
}

// What decides shapes is part of it; other constants of many elements are operands.
TEST(GraphFragment, LargeConstantsAreInputs) {
  GraphWriter w;
  const ValueId x = w.input({5, 5});
  const ValueId sum = w.add("Add", {x, w.constant({5, 5}, Numbers(25, 2))});
  Graph graph = w.finish({w.add("Reshape", {sum, w.list({25})})});
  const auto fragment = fragment_of(graph, all_nodes(graph), graph.outputs[0]);
  ASSERT_TRUE(fragment) << fragment.message();
  EXPECT_EQ(fragment_text(fragment->graph), "in=float32[5,5],float32[5,5] Add(0,1) Reshape(2,int64[1](25))");
  ASSERT_EQ(fragment->inputs.size(), 2U);
  EXPECT_TRUE(graph[fragment->inputs[1]].constant);
}

TEST(GraphFragment, MistakesInTextAreToldWithTheirPlace) {
  const auto refusal = [](std::string_view text) {
    const auto graph = fragment_from_text(text);
    EXPECT_FALSE(graph) << text;
    EXPECT_EQ(graph.status().code(), StatusCode::kInvalidArgument);
    return graph.message();
  };
  EXPECT_EQ(refusal(""), "fragment: at character 1: expected \"in=\", found the end");
  EXPECT_EQ(refusal("in=float32[4]"), "fragment: at character 14: expected an operator, found the end");
  EXPECT_THAT(refusal("in=float33[4] Relu(0)"),
              HasSubstr("expected a type such as float32[8,4], found \"float33[4] R\""));
  EXPECT_THAT(refusal("in=float32[0] Relu(0)"), HasSubstr("expected an integer from 1 to 2147483648"));
  EXPECT_THAT(refusal("in=float32[4] Relu(1)"), HasSubstr("expected an integer from 0 to 0, found \"1)\""));
  EXPECT_THAT(refusal("in=float32[4] Relux(0)"), HasSubstr("Relux"));
  EXPECT_THAT(refusal("in=float32[4] LeakyRelu(0){alpha=0.1f,alpha=0.2f}"), HasSubstr("each attribute once"));
  EXPECT_THAT(refusal("in=float32[4],float32[5] Add(0,1)"), HasSubstr("do not broadcast"));
  EXPECT_THAT(refusal("in=float32[1048576,1048576,1048576] Relu(0)"), HasSubstr("at most 2^40 bytes"));
}

// Words are any printable text: spaces, arrows and commas of an equation too.
TEST(GraphFragment, EquationsAreKeptLetterByLetter) {
  for (const std::string equation : {"ij,jk->ik", " i j , j k -> i k ", "...ij,jk->...ik", "ij,jk"}) {
    GraphWriter w;
    const ValueId x = w.input({2, 3}), y = w.input({3, 4});
    const std::string text = text_of(w.finish({w.add("Einsum", {x, y}, {{"equation", equation}})}));
    EXPECT_EQ(text, "in=float32[2,3],float32[3,4] Einsum(0,1){equation=\"" + equation + "\"}");
    const auto again = fragment_from_text(text);
    ASSERT_TRUE(again) << again.message();
    EXPECT_EQ(fragment_text(*again), text);
    EXPECT_EQ(std::get<std::string>(again->nodes[0].attributes.at("equation")), equation);
    const auto sums = run_reference(*again, {{1, 2, 3, 4, 5, 6}, Numbers(12, 1)}, interpret);
    ASSERT_TRUE(sums) << sums.message();
    EXPECT_EQ(sums->front(), (Numbers{6, 6, 6, 6, 15, 15, 15, 15}));
  }
}

// Each number as it is, to the last bit: those that float32 has, and those that only float64 has.
TEST(GraphFragment, ConstantsOfFloat64ReadBackExactly) {
  Numbers numbers = {0.1,       1.0 / 3, static_cast<double>(0.1F), -2, 0, -0.0, 1e300, -1e-300, 5e-324,
                     0x1p-1022, HUGE_VAL};
  std::mt19937_64 random(first_seed(5));
  while (numbers.size() < 16) numbers.push_back(std::uniform_real_distribution<double>(-1, 1)(random));
  GraphBuilder b("test", interpret);
  const ValueId x = b.input("x", {DType::kFloat64, {16}});
  const ValueId c = b.constant("c", {DType::kFloat64, {16}}, Constant::of(numbers, DType::kFloat64));
  const auto sum = b.add({.name = "n", .op = "Add", .inputs = {x, c}}, {"y"});
  ASSERT_TRUE(sum) << sum.message();
  const std::string text = text_of(b.finish(*sum));
  EXPECT_THAT(
      text,
      StartsWith(
          "in=float64[16] Add(0,float64[16](0.1;0.3333333333333333;0.10000000149011612;-2;0;-0;1e+300;"));
  const auto again = fragment_from_text(text);
  ASSERT_TRUE(again) << again.message();
  EXPECT_EQ(fragment_text(*again), text);
  const Numbers found = (*again)[again->nodes[0].inputs[1]].constant->numbers(DType::kFloat64);
  ASSERT_EQ(found.size(), numbers.size());
  for (size_t k = 0; k < numbers.size(); ++k)
    EXPECT_EQ(std::bit_cast<uint64_t>(found[k]), std::bit_cast<uint64_t>(numbers[k])) << numbers[k];
}

// The whole of every random graph, and parts of it: text reads back as the same, and the one Program computes
// what the operators do one by one.
TEST(GraphFragment, RandomFragmentsComputeWhatTheirOperatorsDo) {
  for (const uint32_t seed : Seeds(5200, 300)) {
    RandomGraph random(seed);
    Graph graph = random.finish();
    std::mt19937 cut(seed);
    const ValueId result = graph.nodes[cut() % graph.nodes.size()].outputs[0];
    std::vector<size_t> nodes;
    for (const size_t n : all_nodes(graph))
      if (graph.nodes[n].outputs[0] == result || cut() % 4 != 0) nodes.push_back(n);
    const auto fragment = fragment_of(graph, nodes, result);
    ASSERT_TRUE(fragment) << fragment.message();
    const std::string text = fragment_text(fragment->graph);
    const auto again = fragment_from_text(text);
    ASSERT_TRUE(again) << text << ": " << again.message();
    ASSERT_EQ(fragment_text(*again), text);

    std::vector<Numbers> args;
    for (size_t k = 0; k < fragment->inputs.size(); ++k) {
      const TensorType& type = graph[fragment->inputs[k]].type;
      args.emplace_back(static_cast<size_t>(type.elements()));
      for (double& x : args.back()) x = random.real();
    }
    const size_t operands = again->inputs.size();
    const auto expected = run_reference(
        *again, {args.begin(), args.begin() + static_cast<std::ptrdiff_t>(operands)}, interpret);
    ASSERT_TRUE(expected) << text << ": " << expected.message();
    args.emplace_back();
    const Program program = program_of(*again);
    ASSERT_EQ(program.args.size(), args.size());
    ASSERT_TRUE(interpret(program, args)) << text;
    ASSERT_EQ(args.back().size(), (*expected)[0].size());
    for (size_t e = 0; e < args.back().size(); ++e) {
      // A cut may take the root of what is negative.
      if (std::isnan(args.back()[e]) && std::isnan((*expected)[0][e])) continue;
      ASSERT_NEAR(args.back()[e], (*expected)[0][e], 1e-9 * std::max(1.0, std::fabs((*expected)[0][e])))
          << text;
    }
  }
}

// Damaged text is refused in one line, or is another fragment; it never ends the program.
TEST(GraphFragment, DamagedTextIsRefusedOrAnotherFragment) {
  const std::string good[] = {
      "in=float32[2,3,4],float32[3,1] Mul(0,1) LeakyRelu(2){alpha=0.1f} Clip(3,_,float32[](6))",
      "in=float32[1,4,6,6] "
      "Resize(0,_,float32[4](1;1;2;2)){coordinate_transformation_mode=\"asymmetric\",mode=\"nearest\"}",
      "in=float32[2,6] Split:1/2(0,int64[2](2;4)){axis=1} Transpose(1){perm=[1;0]} "
      "ReduceMean(2,int64[1](0)){keepdims=0}",
      "in=float32[1,3,8,8],float32[4,3,3,3] Conv(0,1){pads=[1;1;1;1],strides=[2;2]} Softmax@12(2)"};
  int accepted = 0;
  Seeds seeds(6100, 8000);
  for (const uint32_t seed : seeds) {
    std::mt19937 random(seed);
    std::string text = good[random() % std::size(good)];
    for (uint32_t edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(' ' + random() % 95);
          break;
        case 1:
          text.erase(at, 1 + random() % 3);
          break;
        case 2:
          text.insert(at, text.substr(random() % text.size(), random() % 8));
          break;
        default:
          text[at] = static_cast<char>('0' + random() % 10);
          break;
      }
      if (text.empty()) text = "x";
    }
    const auto graph = fragment_from_text(text);
    if (graph) {
      ++accepted;
      ASSERT_TRUE(check(*graph)) << text;
      const auto again = fragment_from_text(fragment_text(*graph));
      ASSERT_TRUE(again) << text << " -> " << fragment_text(*graph);
    } else {
      ASSERT_LT(graph.message().size(), 1000U) << text;
      ASSERT_EQ(graph.message().find('\n'), std::string::npos) << text;
    }
  }
  if (seeds.all()) {
    EXPECT_GT(accepted, 200);
  }
}

}  // namespace
}  // namespace tuner::graph
