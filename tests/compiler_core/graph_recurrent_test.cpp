// LSTM, GRU and RNN: the operator rows and what passes make of them, against the definitions written as loops
// over single numbers; and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler_core/graph/operator.h"
#include "compiler_core/graph/passes.h"
#include "compiler_core/graph/reference.h"
#include "tests/compiler_core/recurrent_loops.h"
#include "tests/random_seed.h"

namespace tuner::graph {
namespace {

using testing::graph_of;
using ::testing::HasSubstr;
using testing::random_recurrent;
using testing::RecurrentCase;
using testing::RecurrentGraph;

void expect_right(const RecurrentCase& c, const std::vector<size_t>& wanted, const RecurrentGraph& made,
                  double tolerance) {
  const auto found = run_reference(made.graph, made.inputs, interpret);
  ASSERT_TRUE(found) << found.message();
  const testing::RecurrentLoops loops(c);
  for (size_t o = 0; o < wanted.size(); ++o) {
    const std::vector<double>& expected = loops.answers()[wanted[o]];
    ASSERT_EQ((*found)[o].size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR((*found)[o][i], expected[i], tolerance * (1 + std::abs(expected[i])))
          << "result " << wanted[o] << ", element " << i << "\n"
          << to_text(made.graph);
  }
}

TEST(GraphRecurrent, RandomFormsAreTheirDefinitions) {
  for (const uint32_t seed : Seeds(1, 300)) {
    const RecurrentCase c = random_recurrent(seed);
    const std::vector<size_t> wanted = testing::random_results(c, seed);
    const auto made = graph_of(c, wanted);
    ASSERT_TRUE(made) << made.message();
    ASSERT_TRUE(check(made->graph)) << check(made->graph).message();
    ASSERT_NO_FATAL_FAILURE(expect_right(c, wanted, *made, 1e-5));
  }
}

// The product of all inputs becomes a Gemm, the steps one node, however many they are.
TEST(GraphRecurrent, PassesKeepWhatTheyCompute) {
  for (const uint32_t seed : Seeds(1001, 300)) {
    const RecurrentCase c = random_recurrent(seed);
    const std::vector<size_t> wanted = testing::random_results(c, seed);
    auto made = graph_of(c, wanted);
    ASSERT_TRUE(made) << made.message();
    const Status optimized = optimize(made->graph, interpret);
    ASSERT_TRUE(optimized) << optimized.message();
    ASSERT_TRUE(check(made->graph)) << check(made->graph).message() << "\n" << to_text(made->graph);
    const auto count = [&](std::string_view op) {
      return std::ranges::count(made->graph.nodes, op, &Node::op);
    };
    ASSERT_EQ(count("Gemm"), 1);
    ASSERT_EQ(count("tuner.Recurrence"), 1);
    ASSERT_EQ(count(c.op), 0);
    ASSERT_NO_FATAL_FAILURE(expect_right(c, wanted, *made, 1e-5));
  }
}

// Long sequences cost loops, not nodes or stages.
TEST(GraphRecurrent, StepsAreALoop) {
  RecurrentCase c = random_recurrent(3);
  const auto stages_of = [&](int64_t steps) {
    RecurrentCase longer{.steps = steps, .batch = 1, .inputs = 2, .hidden = 3};
    longer.x.assign(static_cast<size_t>(2 * steps), 0.5);
    longer.w.assign(24, 0.1), longer.r.assign(36, 0.1);
    const auto made = graph_of(longer, {0});
    CHECK(made.is_ok()) << made.message();
    const Program program = program_of(made->graph, made->graph.nodes[0]).program;
    return std::ranges::count(to_text(program), '\n');
  };
  EXPECT_EQ(stages_of(2), stages_of(5000));
}

std::string refusal(const RecurrentCase& c) {
  const auto made = graph_of(c, {0});
  return made ? "" : std::string(made.message());
}

TEST(GraphRecurrent, WhatDoesNotFitIsRefusedInALine) {
  RecurrentCase good{.steps = 2, .batch = 2, .inputs = 1, .hidden = 1};
  good.x.assign(4, 1), good.w.assign(4, 1), good.r.assign(4, 1);
  ASSERT_EQ(refusal(good), "");
  RecurrentCase c = good;
  c.activations = {"Sigmoid", "Tanh"};
  EXPECT_THAT(refusal(c), HasSubstr("activations has 2 names, expected 3"));
  c.activations = {"Sigmoid", "Tanh", "Swish"};
  EXPECT_THAT(refusal(c), HasSubstr("activation \"Swish\" is none of the standard's: expected Affine, Elu"));
  c = good, c.clip = -1;
  EXPECT_THAT(refusal(c), HasSubstr("clip is -1, expected a number above 0"));
  c = good, c.lengths = {1, 3};
  EXPECT_THAT(refusal(c), HasSubstr("a sequence length is 3, expected 0 to 2"));
  c = good, c.layout = 1, c.operator_set = 13;
  EXPECT_THAT(refusal(c), HasSubstr("layout is an attribute since operator set 14"));
  c = good, c.layout = 2;
  EXPECT_THAT(refusal(c), HasSubstr("layout is 2, expected 0 or 1"));
}

// A weight of another extent, another rank, and a direction that the weights do not have.
TEST(GraphRecurrent, ShapesAreHeldAgainstEachOther) {
  const auto run = [](std::vector<int64_t> w, std::vector<int64_t> r, const std::string& direction) {
    GraphBuilder b("test", interpret);
    const auto input = [&](std::vector<int64_t> shape) {
      return b.input("x", {DType::kFloat32, std::move(shape)});
    };
    const auto made = b.add({.name = "n",
                             .op = "GRU",
                             .attributes = {{"direction", direction}},
                             .inputs = {input({5, 2, 4}), input(std::move(w)), input(std::move(r))},
                             .outputs = {}},
                            {"Y"});
    return made ? "" : std::string(made.message());
  };
  EXPECT_EQ(run({1, 9, 4}, {1, 9, 3}, "reverse"), "");
  EXPECT_THAT(run({1, 9, 5}, {1, 9, 3}, "forward"),
              HasSubstr("W (input 1) is float32[1, 9, 5], expected float32[1, 9, 4]"));
  EXPECT_THAT(run({1, 9, 4}, {1, 12, 3}, "forward"),
              HasSubstr("R (input 2) is float32[1, 12, 3], expected float32[1, 9, 3]"));
  EXPECT_THAT(run({9, 4}, {1, 9, 3}, "forward"),
              HasSubstr("input 1 is float32[9, 4], expected 3 dimensions"));
  EXPECT_THAT(run({1, 9, 4}, {1, 9, 3}, "bidirectional"),
              HasSubstr("direction is bidirectional, but the weights are of 1 direction"));
  EXPECT_THAT(run({1, 9, 4}, {1, 9, 3}, "sideways"),
              HasSubstr("expected one of forward, reverse, bidirectional"));
}

}  // namespace
}  // namespace tuner::graph
