// Passes: what each makes of a graph, and that all of them keep what random graphs compute.
#include "compiler_core/graph/passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "compiler_core/graph/operator.h"
#include "compiler_core/graph/reference.h"
#include "compiler_core/oracle/oracle.h"
#include "tests/compiler_core/graph_writer.h"
#include "tests/random_seed.h"

namespace tuner::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using testing::Dims;
using testing::kPatterns;
using testing::Numbers;
using testing::RandomGraph;
using Writer = testing::GraphWriter;

std::vector<std::string> operators(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) names.push_back(node.op);
  return names;
}
Graph after(Graph graph, Status (*pass)(Graph&, const Evaluator&)) {
  const Status done = pass(graph, interpret);
  EXPECT_TRUE(done) << done.message();
  EXPECT_TRUE(check(graph)) << check(graph).message() << "\n" << to_text(graph);
  return graph;
}
Graph optimized(Graph graph) {
  return after(std::move(graph), [](Graph& g, const Evaluator& evaluate) { return optimize(g, evaluate); });
}

TEST(GraphPasses, WhatNothingReadsGoes) {
  Writer w;
  const ValueId x = w.input({4}), kept = w.add("Relu", {x});
  w.add("Exp", {w.add("Neg", {x})});
  const Graph graph = after(w.finish({kept}), drop_dead);
  EXPECT_THAT(operators(graph), ElementsAre("Relu"));
  EXPECT_EQ(graph.values.size(), 2U);
}

TEST(GraphPasses, EqualNodesBecomeOneAndDifferentOnesStay) {
  Writer w;
  const ValueId x = w.input({4}), y = w.input({4});
  const ValueId a = w.add("Mul", {w.add("Exp", {x}), w.number(2)}),
                b = w.add("Mul", {w.add("Exp", {x}), w.number(2)});
  const ValueId c = w.add("LeakyRelu", {y}, {{"alpha", 0.1}}), d = w.add("LeakyRelu", {y}, {{"alpha", 0.2}});
  const Graph graph = after(w.finish({a, b, c, d}), merge_common);
  EXPECT_THAT(operators(graph), ElementsAre("Exp", "Mul", "LeakyRelu", "LeakyRelu"));
  EXPECT_EQ(graph.outputs[0], graph.outputs[1]);
  EXPECT_NE(graph.output_names[0], graph.output_names[1]);
}

TEST(GraphPasses, ReshapesBecomeOneView) {
  Writer w;
  const ValueId x = w.input({2, 3, 4});
  const ValueId flat = w.add("Flatten", {w.add("Unsqueeze", {x, w.list({0})})}, {{"axis", int64_t{2}}});
  const ValueId same = w.add("Reshape", {w.add("Relu", {flat}), w.list({2, 12})});
  const ValueId still = w.add("Transpose", {w.input({1, 5, 1})}, {{"perm", Dims{1, 2, 0}}});
  const ValueId moved = w.add("Transpose", {x}, {{"perm", Dims{1, 0, 2}}});
  const Graph graph = after(w.finish({same, still, moved}), make_views);
  // The last reshape gives [2, 12] what has that shape already.
  EXPECT_THAT(operators(graph), ElementsAre("tuner.View", "tuner.View", "Relu", "tuner.View", "Transpose"));
  // Of the first chain nothing reads the view in the middle.
  EXPECT_THAT(operators(after(graph, drop_dead)),
              ElementsAre("tuner.View", "Relu", "tuner.View", "Transpose"));
}

TEST(GraphPasses, AGatherOfOneKnownPlaceBecomesASlice) {
  Writer w;
  const ValueId x = w.input({5, 3, 4});
  const ValueId last = w.add("Gather", {x, w.list({-1})}, {{"axis", int64_t{1}}});
  const ValueId two = w.add("Gather", {x, w.list({3, 0})});
  const ValueId of_data = w.add("Gather", {x, w.add("Cast", {w.input({1})}, {{"to", std::string("int64")}})});
  const Graph graph = w.finish({last, two, of_data}), sliced = after(graph, slice_places);
  EXPECT_THAT(operators(sliced), ElementsAre("Slice", "tuner.View", "Gather", "Cast", "Gather"));
  std::vector<double> numbers(60);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i);
  const auto found = run_reference(sliced, {numbers, {4}}, interpret);
  ASSERT_TRUE(found.is_ok()) << found.message();
  EXPECT_THAT((*found)[0],
              ElementsAre(8, 9, 10, 11, 20, 21, 22, 23, 32, 33, 34, 35, 44, 45, 46, 47, 56, 57, 58, 59));
  EXPECT_EQ(*found, *run_reference(graph, {numbers, {4}}, interpret));
}

TEST(GraphPasses, ConstantsAreFoldedUnlessTheyGrow) {
  Writer w;
  const ValueId weights =
      w.add("Transpose", {w.add("Mul", {w.constant({2, 2}, {1, 2, 3, 4}), w.number(10)})});
  const ValueId x = w.input({2, 2});
  const Graph graph = after(w.finish({w.add("MatMul", {x, weights})}), fold_constants);
  EXPECT_THAT(operators(graph), ElementsAre("MatMul"));
  EXPECT_THAT(graph[graph.nodes[0].inputs[1]].constant->numbers(DType::kFloat32),
              ElementsAre(10, 30, 20, 40));

  Writer large;
  const ValueId spread = large.add("Expand", {large.number(1), large.list({100, 100})});
  EXPECT_THAT(
      operators(after(large.finish({large.add("Add", {large.input({100, 100}), spread})}), fold_constants)),
      ElementsAre("Expand", "Add"));
}

TEST(GraphPasses, ScalesGoIntoTheConvolutionBeforeThem) {
  Writer w;
  const ValueId x = w.input({1, 1, 3, 3});
  const ValueId conv = w.add("Conv", {x, w.constant({2, 1, 1, 1}, {1, 10})});
  const ValueId norm = w.add("BatchNormalization",
                             {conv, w.constant({2}, {2, 3}), w.constant({2}, {1, 1}), w.constant({2}, {0, 4}),
                              w.constant({2}, {1, 9})},
                             {{"epsilon", 0.0}});
  const ValueId scaled = w.add("Mul", {w.constant({2, 1, 1}, {1, 2}), norm});
  const Graph graph = after(w.finish({w.add("Sub", {scaled, w.number(1)})}), fold_scales);
  ASSERT_THAT(operators(graph), ElementsAre("Conv"));
  EXPECT_THAT(graph[graph.nodes[0].inputs[1]].constant->numbers(DType::kFloat32), ElementsAre(2, 20));
  EXPECT_THAT(graph[graph.nodes[0].inputs[2]].constant->numbers(DType::kFloat32), ElementsAre(0, -7));
}

TEST(GraphPasses, FactorsOfGemmGoIntoItsConstants) {
  Writer w;
  const Attributes factors{{"alpha", 0.5}, {"beta", 3.0}};
  const ValueId x = w.input({1, 2}), weights = w.constant({2, 2}, {1, 2, 3, 4});
  const ValueId first = w.add("Gemm", {x, weights, w.constant({2}, {1, 10})}, factors);
  // The same weights on the left, and as they were.
  const ValueId left = w.add("Gemm", {weights, w.input({2, 3})}, {{"alpha", 2.0}});
  const ValueId plain = w.add("Gemm", {x, weights}, {{"transB", int64_t{1}}, {"alpha", 1.0}});
  const Graph graph = after(w.finish({first, left, plain}), plain_gemms);
  ASSERT_THAT(operators(graph), ElementsAre("Gemm", "Gemm", "Gemm"));
  const auto numbers = [&](size_t node, size_t input) {
    return graph[graph.nodes[node].inputs[input]].constant->numbers(DType::kFloat32);
  };
  EXPECT_THAT(numbers(0, 1), ElementsAre(0.5, 1, 1.5, 2));
  EXPECT_THAT(numbers(0, 2), ElementsAre(3, 30));
  EXPECT_THAT(numbers(1, 0), ElementsAre(2, 4, 6, 8));
  EXPECT_THAT(numbers(2, 1), ElementsAre(1, 2, 3, 4));
  for (const Node& node : graph.nodes) {
    EXPECT_FALSE(node.attributes.contains("alpha"));
    EXPECT_FALSE(node.attributes.contains("beta"));
  }
  EXPECT_TRUE(graph.nodes[2].attributes.contains("transB"));
}

TEST(GraphPasses, FactorsOfGemmWithoutConstantsBecomeProducts) {
  Writer w;
  const ValueId a = w.input({3, 2}), b = w.input({2, 4}), c = w.input({3, 4});
  const ValueId all = w.add("Gemm", {a, b, c}, {{"alpha", 0.5}, {"beta", 3.0}});
  const ValueId alone = w.add("Gemm", {a, b}, {{"alpha", 0.5}});
  const ValueId summand = w.add("Gemm", {a, b, c}, {{"beta", 3.0}});
  const Graph before = w.finish({all, alone, summand}), graph = after(before, plain_gemms);
  EXPECT_THAT(operators(graph), ElementsAre("Mul", "Gemm", "Mul", "Add", "Gemm", "Mul", "Mul", "Gemm"));
  const std::vector<Numbers> inputs{
      {1, 2, 3, 4, 5, 6}, {1, -1, 2, 0, 3, 1, -2, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};
  const auto expected = run_reference(before, inputs, interpret),
             found = run_reference(graph, inputs, interpret);
  ASSERT_TRUE(expected && found);
  EXPECT_EQ(*found, *expected);
  EXPECT_EQ((*found)[0][0], 0.5 * (1 * 1 + 2 * 3) + 3 * 1);
}

TEST(GraphPasses, ScalesStayWhereTheyAreNeeded) {
  Writer w;
  const ValueId x = w.input({1, 2, 3, 3});
  const ValueId conv = w.add("Conv", {x, w.constant({2, 2, 1, 1}, {1, 10, 1, 1})});
  const ValueId scaled = w.add("Mul", {conv, w.number(3)});
  const ValueId rows = w.add("Add", {conv, w.constant({1, 1, 3, 1}, {1, 2, 3})});  // not of a channel
  EXPECT_THAT(operators(after(w.finish({conv, scaled, rows}), fold_scales)),
              ElementsAre("Conv", "Mul", "Add"));

  Writer alone;
  const ValueId norm = alone.add("BatchNormalization",
                                 {alone.input({1, 1, 2}), alone.constant({1}, {2}), alone.constant({1}, {1}),
                                  alone.constant({1}, {4}), alone.constant({1}, {1})});
  EXPECT_THAT(operators(after(alone.finish({norm}), fold_scales)), ElementsAre("Mul", "Add"));
}

TEST(GraphPasses, CompositesAreFoundHoweverTheyAreWritten) {
  for (const std::string what : kPatterns) {
    Writer w;
    const ValueId x = w.add("Relu", {w.input({2, 3})});
    const Graph graph = optimized(w.finish({written_out(w, what, x)}));
    EXPECT_THAT(operators(graph), ElementsAre("Relu", what.substr(0, what.find(' ')))) << what << "\n"
                                                                                       << to_text(graph);
  }
}

TEST(GraphPasses, AStepThatIsReadElsewhereKeepsThePatternApart) {
  Writer w;
  const ValueId x = w.input({4}), sigmoid = w.add("Sigmoid", {x});
  EXPECT_THAT(operators(optimized(w.finish({w.add("Mul", {x, sigmoid}), sigmoid}))),
              ElementsAre("Sigmoid", "Mul"));
  Writer other;
  const ValueId y = other.input({4}), z = other.input({4});
  EXPECT_THAT(operators(optimized(other.finish({other.add("Mul", {y, other.add("Sigmoid", {z})})}))),
              ElementsAre("Sigmoid", "Mul"));
}

// Patterns with another number, or about another value, are none.
TEST(GraphPasses, WhatOnlyLooksLikeACompositeStaysAsItIs) {
  const auto found = [](const auto& write) {
    Writer w;
    const ValueId x = w.input({2, 3, 4});
    const std::vector<std::string> names = operators(optimized(w.finish({write(w, x)})));
    return std::ranges::any_of(names, [](const std::string& op) {
      return op == "Swish" || op == "HardSwish" || op == "Mish" || op == "Gelu" || op == "LayerNormalization";
    });
  };
  const auto twice = [](Writer& w, ValueId v) { return w.add("Mul", {v, w.number(2)}); };
  EXPECT_FALSE(found([&](Writer& w, ValueId x) {
    return w.add("Mul", {twice(w, x), w.add("Sigmoid", {x})});
  }));
  EXPECT_FALSE(found([&](Writer& w, ValueId x) {
    return w.add("Mul", {x, w.add("Sigmoid", {twice(w, x)})});
  }));
  EXPECT_FALSE(found([](Writer& w, ValueId x) {
    return w.add("Mul", {x, w.add("HardSigmoid", {x})});  // alpha is 0.2
  }));
  EXPECT_FALSE(found([](Writer& w, ValueId x) {
    const ValueId five = w.add("Clip", {w.add("Add", {x, w.number(3)}), w.number(0), w.number(5)});
    return w.add("Div", {w.add("Mul", {x, five}), w.number(6)});
  }));
  EXPECT_FALSE(found([](Writer& w, ValueId x) {
    const ValueId erf = w.add("Erf", {w.add("Div", {x, w.number(1.5)})});
    return w.add("Mul", {w.add("Mul", {x, w.add("Add", {erf, w.number(1)})}), w.number(0.5)});
  }));
  // Mean and variance are along the same last axes.
  const auto norm = [](Writer& w, ValueId x, Dims of_mean, Dims of_variance) {
    const ValueId d = w.add("Sub", {x, w.add("ReduceMean", {x}, {{"axes", of_mean}})});
    const ValueId v = w.add("ReduceMean", {w.add("Mul", {d, d})}, {{"axes", of_variance}});
    return w.add("Div", {d, w.add("Sqrt", {w.add("Add", {v, w.number(1e-5)})})});
  };
  EXPECT_TRUE(found([&](Writer& w, ValueId x) { return norm(w, x, {1, 2}, {1, 2}); }));
  EXPECT_FALSE(found([&](Writer& w, ValueId x) { return norm(w, x, {2}, {1, 2}); }));
  EXPECT_FALSE(found([&](Writer& w, ValueId x) { return norm(w, x, {1, 2}, {2}); }));
  EXPECT_FALSE(found([&](Writer& w, ValueId x) { return norm(w, x, {0}, {0}); }));
}

TEST(GraphPasses, ScalesGoIntoGemmsAndTransposedConvolutionsWhereTheyBelong) {
  const auto kept = [](const auto& write) {
    Writer w;
    const Graph before = w.finish({write(w)}), graph = after(before, fold_scales);
    std::vector<Numbers> inputs;
    for (const ValueId in : before.inputs)
      for (Numbers& x = inputs.emplace_back(); std::ssize(x) < before[in].type.elements();)
        x.push_back(std::sin(static_cast<double>(1 + x.size())));
    const auto expected = run_reference(before, inputs, interpret),
               found = run_reference(graph, inputs, interpret);
    EXPECT_TRUE(expected && found);
    EXPECT_THAT((*found)[0], ::testing::Pointwise(::testing::DoubleNear(1e-5), (*expected)[0]));
    return operators(graph);
  };
  for (const int64_t transposed : {0, 1})
    EXPECT_THAT(
        kept([&](Writer& w) {
          const ValueId y =
              w.add("Gemm", {w.input({3, 2}), w.constant({2, 2}, {1, 2, 3, 4}), w.constant({1}, {5})},
                    {{"transB", transposed}});
          return w.add("Add", {w.add("Mul", {y, w.constant({2}, {2, 10})}), w.constant({1, 2}, {1, -1})});
        }),
        ElementsAre("Gemm"));
  // Weights stand as [channels, results / groups, ...]: of groups the second dimension is no result's.
  for (const int64_t groups : {1, 2})
    EXPECT_THAT(
        kept([&](Writer& w) {
          const ValueId y = w.add("ConvTranspose", {w.input({1, 2, 2}), w.constant({2, 2, 1}, {1, 2, 3, 4})},
                                  {{"group", groups}});
          return w.add("Mul", {y, w.constant({2 * groups, 1}, Numbers(static_cast<size_t>(2 * groups), 3))});
        }).size(),
        static_cast<size_t>(groups));
  // A number a row is none a channel, a quotient turned over none at all.
  EXPECT_THAT(kept([](Writer& w) {
                const ValueId y = w.add("Gemm", {w.input({2, 2}), w.constant({2, 2}, {1, 2, 3, 4})});
                return w.add("Mul", {y, w.constant({2, 1}, {2, 10})});
              }),
              ElementsAre("Gemm", "Mul"));
  EXPECT_THAT(kept([](Writer& w) {
                const ValueId y = w.add("Gemm", {w.input({2, 2}), w.constant({2, 2}, {1, 2, 3, 4})});
                return w.add("Sub", {w.constant({2}, {2, 10}), y});
              }),
              ElementsAre("Gemm", "Sub"));
}

// Split makes as many parts as it has results; a Softmax of another operator set sums over other axes.
TEST(GraphPasses, NodesOfOtherFormsAreNotEqual) {
  Writer w;
  const ValueId x = w.input({6});
  const auto two = w.add_all("Split", {x}, {}, 2), three = w.add_all("Split", {x}, {}, 3);
  const Graph graph = after(w.finish({two[0], three[0], three[2]}), merge_common);
  EXPECT_THAT(operators(graph), ElementsAre("Split", "Split"));

  GraphBuilder sets("sets", interpret);
  const ValueId y = sets.input("y", {DType::kFloat32, {2, 2, 2}});
  std::vector<ValueId> results;
  for (const int64_t set : {11, 13, 13})
    results.push_back(
        sets.add({.name = "n", .op = "Softmax", .operator_set = set, .inputs = {y}}, {"s"})->front());
  EXPECT_THAT(operators(after(sets.finish(results), merge_common)), ElementsAre("Softmax", "Softmax"));

  // A result that nobody asked the first one for is computed.
  Writer parts;
  const ValueId z = parts.input({4});
  const ValueId values = parts.add_all("TopK", {z, parts.list({2})}, {}, 2)[0],
                places = parts.add_all("TopK", {z, parts.list({2})}, {}, 2)[1];
  Graph asked = parts.finish({values, places});
  for (size_t n = 0; n < 2; ++n) asked.nodes[n].outputs[1 - n] = kNoValue;
  EXPECT_THAT(operators(after(asked, merge_common)), ElementsAre("TopK", "TopK"));
}

// What one node reads twice, or the model shows, is read by others than the pass sees at a glance.
TEST(GraphPasses, ScalesStayBehindProductsThatAreShown) {
  Writer w;
  const ValueId x = w.input({1, 1, 2, 2}), conv = w.add("Conv", {x, w.constant({1, 1, 1, 1}, {3})});
  const Graph graph = after(w.finish({w.add("Mul", {conv, w.number(2)}), conv}), fold_scales);
  EXPECT_THAT(operators(graph), ElementsAre("Conv", "Mul"));
  EXPECT_THAT((*run_reference(graph, {{1, 2, 3, 4}}, interpret))[1], ElementsAre(3, 6, 9, 12));
}

TEST(GraphPasses, StopAfterTheOneThatIsNamed) {
  Writer w;
  Graph graph = w.finish({w.add("Relu", {w.input({4})})});
  EXPECT_TRUE(optimize(graph, interpret, "merge-common"));
  EXPECT_THAT(
      optimize(graph, interpret, "merge").message(),
      HasSubstr("no pass is called \"merge\"; there are split-recurrent, make-views, find-quantized"));
}

// Kernels larger and smaller than the stride, cropped, and beside each other what is left alone.
TEST(GraphPasses, TransposedConvolutionsBecomePlainOnes) {
  struct Case {
    Dims kernel, strides, pads, more;
    std::vector<std::string> becomes;
  };
  const Case cases[] = {
      {{2, 2}, {2, 2}, {0, 0, 0, 0}, {0, 0}, {"Conv", "DepthToSpace"}},
      {{3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, {"Conv", "DepthToSpace", "Slice"}},
      {{5, 4}, {3, 3}, {1, 0, 2, 1}, {0, 0}, {"Conv", "DepthToSpace", "Slice"}},
      {{3, 2}, {1, 1}, {0, 0, 0, 0}, {0, 0}, {"Conv"}},
      {{1, 1}, {2, 2}, {0, 0, 0, 0}, {0, 0}, {"Conv", "DepthToSpace", "Slice"}},
      {{2, 2}, {2, 1}, {0, 0, 0, 0}, {0, 0}, {"ConvTranspose"}},  // two strides
      {{2, 2}, {4, 4}, {0, 0, 0, 0}, {3, 3}, {"ConvTranspose"}},  // pixels that nothing reaches
  };
  for (const Case& c : cases) {
    Writer w;
    Numbers weights;
    for (int64_t k = 0; k < 2 * 3 * c.kernel[0] * c.kernel[1]; ++k)
      weights.push_back(std::sin(static_cast<double>(k)));
    const ValueId x = w.input({2, 2, 3, 4});
    const ValueId out =
        w.add("ConvTranspose",
              {x, w.constant({2, 3, c.kernel[0], c.kernel[1]}, weights), w.constant({3}, {1, 2, 3})},
              {{"strides", c.strides}, {"pads", c.pads}, {"output_padding", c.more}});
    const Graph before = w.finish({out}), graph = after(before, split_transposed);
    EXPECT_EQ(operators(graph), c.becomes);
    Numbers image;
    for (int k = 0; k < 48; ++k) image.push_back(std::cos(k));
    const auto expected = run_reference(before, {image}, interpret),
               found = run_reference(graph, {image}, interpret);
    ASSERT_TRUE(expected && found);
    EXPECT_THAT((*found)[0], ::testing::Pointwise(::testing::DoubleNear(1e-6), (*expected)[0]));
  }
}

TEST(GraphPasses, DilatedTransposedConvolutionsStay) {
  Writer w;
  const ValueId out = w.add("ConvTranspose", {w.input({1, 1, 3, 3}), w.constant({1, 1, 2, 2}, {1, 2, 3, 4})},
                            {{"strides", Dims{2, 2}}, {"dilations", Dims{2, 2}}, {"pads", Dims{0, 0, 1, 1}}});
  EXPECT_THAT(operators(after(w.finish({out}), split_transposed)), ElementsAre("ConvTranspose"));
}

// Every pass alone, and all in turn. Weights are rounded to float32 once more where scales are folded.
TEST(GraphPasses, KeepWhatRandomGraphsCompute) {
  for (const uint32_t seed : Seeds(4200, 400)) {
    RandomGraph random(seed);
    const Graph graph = random.finish();
    ASSERT_TRUE(check(graph)) << check(graph).message();
    std::vector<Numbers> inputs;
    for (const ValueId in : graph.inputs) {
      Numbers numbers(static_cast<size_t>(graph[in].type.elements()));
      for (double& x : numbers) x = random.real();
      inputs.push_back(std::move(numbers));
    }
    const auto expected = run_reference(graph, inputs, interpret);
    ASSERT_TRUE(expected.is_ok()) << expected.message();
    std::vector<Graph> changed{optimized(graph)};
    for (const Pass& pass : passes()) changed.push_back(after(graph, pass.run));
    for (const Graph& other : changed) {
      const auto found = run_reference(other, inputs, interpret);
      ASSERT_TRUE(found.is_ok()) << found.message();
      ASSERT_EQ(found->size(), expected->size());
      for (size_t k = 0; k < found->size(); ++k) {
        EXPECT_EQ(other.output_names[k], graph.output_names[k]);
        ASSERT_EQ((*found)[k].size(), (*expected)[k].size());
        double most = 1;
        for (const double x : (*expected)[k]) most = std::max(most, std::fabs(x));
        for (size_t e = 0; e < (*found)[k].size(); ++e)
          ASSERT_NEAR((*found)[k][e], (*expected)[k][e], 2e-6 * most) << to_text(graph) << to_text(other);
      }
    }
  }
}

}  // namespace
}  // namespace tuner::graph
