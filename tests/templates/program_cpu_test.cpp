// program_cpu: fragments of every kind, with odd shapes, and random ones. Every config computes what the math
// says, in the interpreter and as machine code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler_core/graph/fragment.h"
#include "templates/cpu/cpu_templates.h"
#include "tests/compiler_core/graph_writer.h"
#include "tests/templates/compiled_template_check.h"
#include "tests/templates/program_fragments.h"

namespace tuner {
namespace {

Workload program(std::string_view text) {
  const auto w = program_from_text(text);
  CHECK(w.is_ok()) << text << ": " << w.message();
  return *w;
}

using testing::kFragments;

TEST(ProgramCpu, EveryKindOfFragmentIsRight) {
  for (const char* text : kFragments) {
    SCOPED_TRACE(text);
    const Workload w = program(text);
    for (const Target& target : {cpu(512, 32), cpu(256, 16, 2)})
      ASSERT_NO_FATAL_FAILURE(expect_configs_right(program_cpu(), w, target, 6, 7100));
    for (const Target& target : hosts(/*threads=*/2))
      ASSERT_NO_FATAL_FAILURE(expect_code_right(program_cpu(), w, target, 6, 7100));
  }
}

// What is read along another axis than it is written comes in tiles of both, transposed in registers.
TEST(ProgramCpu, TransposesByTiles) {
  for (const char* text :
       {"in=uint8[1,49,70] Transpose(0){perm=[0;2;1]}", "in=float32[3,33,18] Transpose(0){perm=[0;2;1]}",
        "in=float32[5,4,20,6] Transpose(0){perm=[0;3;1;2]} Relu(1)"}) {
    SCOPED_TRACE(text);
    const Workload w = program(text);
    const auto instance = program_cpu().apply(w, cpu(512, 32));
    ASSERT_TRUE(instance.is_ok()) << instance.message();
    const auto scheduled =
        (*instance)->instantiate(config_from_text("fuse_axes=1 inline_all=0 rows=1 vectors=2").value());
    ASSERT_TRUE(scheduled.is_ok()) << scheduled.message();
    EXPECT_THAT(to_text(*scheduled), ::testing::HasSubstr("vector_rows "));
    ASSERT_NO_FATAL_FAILURE(expect_configs_right(program_cpu(), w, cpu(512, 32), 8, 7150));
    for (const Target& target : hosts(/*threads=*/2))
      ASSERT_NO_FATAL_FAILURE(expect_code_right(program_cpu(), w, target, 8, 7150));
  }
}

// Parts of random graphs: chains, diamonds, sums of what was moved, several stages at root.
TEST(ProgramCpu, RandomFragmentsAreRight) {
  for (const uint32_t seed : Seeds(7200, 60)) {
    graph::testing::RandomGraph random(seed);
    graph::Graph graph = random.finish();
    std::vector<size_t> nodes(graph.nodes.size());
    for (size_t n = 0; n < nodes.size(); ++n) nodes[n] = n;
    const auto fragment = graph::fragment_of(graph, nodes, graph.nodes.back().outputs[0]);
    ASSERT_TRUE(fragment) << fragment.message();
    const auto w = program_workload(fragment->graph);
    ASSERT_TRUE(w) << w.message();
    SCOPED_TRACE(w->key());
    ASSERT_NO_FATAL_FAILURE(expect_configs_right(program_cpu(), *w, cpu(512, 32), 3, seed));
    ASSERT_NO_FATAL_FAILURE(expect_code_right(program_cpu(), *w, host_target(1), 3, seed));
  }
}

// What only moves elements is exact; a bound is found for what computes.
TEST(ProgramCpu, TolerancesFollowFromTheMath) {
  const auto of = [](std::string_view text) { return tolerance_of(program(text)); };
  EXPECT_EQ(of("in=float32[4,5] Transpose(0){perm=[1;0]}").absolute, 0);
  EXPECT_EQ(of("in=float32[4,5] Relu(0) Neg(1)").relative, 0);
  const Tolerance sum = of("in=float32[4,5],float32[4,5] Add(0,1)");
  EXPECT_EQ(sum.absolute, 0);
  EXPECT_GT(sum.relative, 0x1p-24);
  EXPECT_LT(sum.relative, 1e-6);
  EXPECT_LT(of("in=float32[4,5] Sigmoid(0)").absolute, 1e-5);
  EXPECT_GT(of("in=float32[4,5] Sigmoid(0)").absolute, 1e-7);
  // A sum of many terms errs by more than one of few.
  EXPECT_GT(of("in=float32[4,4096] ReduceSum(0,int64[1](1))").absolute,
            of("in=float32[4,16] ReduceSum(0,int64[1](1))").absolute);
  // x / (y - z) may be anything: no bound holds, nearness is asked for.
  EXPECT_EQ(of("in=float32[4],float32[4],float32[4] Sub(0,1) Div(2,3) Add(4,0)").relative, 1e-3);
}

TEST(ProgramCpu, KeysReadBack) {
  for (const char* text : kFragments) {
    const Workload w = program(text);
    const auto again = workload_from_key(w.key());
    ASSERT_TRUE(again) << again.message();
    EXPECT_EQ(again->key(), w.key());
    EXPECT_EQ(w.key(), str("v1 program ", text));
  }
  EXPECT_THAT(workload_from_key("v1 program in=float32[4] Relux(0)").message(),
              ::testing::HasSubstr("workload key \"v1 program in=float32[4] Relux(0)\": "));
}

}  // namespace
}  // namespace tuner
