// program_cpu: fragments of every kind, with odd shapes, and random ones. Every config computes what the math
// says, in the interpreter and as machine code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler_core/graph/fragment.h"
#include "templates/cpu/cpu_templates.h"
#include "tests/compiler_core/graph_writer.h"
#include "tests/templates/compiled_template_check.h"

namespace tuner {
namespace {

Workload program(std::string_view text) {
  const auto w = program_from_text(text);
  CHECK(w.is_ok()) << text << ": " << w.message();
  return *w;
}

// What networks have between products, one of each kind.
constexpr const char* kFragments[] = {
    "in=float32[2,3,5,7] Relu(0)",
    "in=float32[1,17,3,3],float32[1,17,1,1] Sigmoid(1) Mul(0,2)",
    "in=float32[3,19],float32[19] Add(0,1) Clip(2,float32[](-0.25),float32[](0.5))",
    "in=float32[1,5,4,6],float32[1,2,4,6],float32[1,9,4,6] Concat(0,1,2){axis=1}",
    "in=float32[2,6,5],float32[2,6,3] Relu(0) Concat(2,1){axis=2}",
    "in=float32[2,21,4] Split:1/3(0,int64[3](5;9;7)){axis=1} Neg(1)",
    "in=float32[3,4,5,6] Transpose(0){perm=[2;0;3;1]}",
    "in=float32[1,8,3,5] DepthToSpace(0){blocksize=2,mode=\"DCR\"}",
    "in=float32[1,3,5,4] Pad(0,int64[8](0;0;1;2;0;0;2;1))",
    "in=float32[1,3,5,4] Pad(0,int64[8](0;0;1;2;0;0;2;1)){mode=\"reflect\"}",
    ("in=float32[1,3,5,4] "
     "Resize(0,_,float32[4](1;1;2;2)){coordinate_transformation_mode=\"asymmetric\",mode=\"nearest\","
     "nearest_mode=\"floor\"}"),
    "in=float32[1,3,5,4] Resize(0,_,float32[4](1;1;2;1.5)){mode=\"linear\"}",
    "in=float32[7,6],int64[5] Gather(0,1){axis=0}",
    "in=float32[4,9] Slice(0,int64[2](1;8),int64[2](4;-10),int64[2](0;1),int64[2](2;-3))",
    "in=bool[3,7],float32[3,7],float32[7] Where(0,1,2)",
    "in=float32[5,6],float32[5,6] Less(0,1)",
    "in=float32[5,6] Cast(0){to=\"int64\"}",
    "in=float32[2,3,10,10] ReduceMean(0,int64[2](2;3)){keepdims=0}",
    "in=float32[2,33,3] ReduceMax(0,int64[1](1))",
    "in=float32[37] ReduceSum(0,int64[1](0))",
    "in=float32[2,5,13] Softmax(0){axis=1}",
    "in=float32[2,5,13] Softmax(0){axis=2} Mul(1,float32[](2))",
    "in=float32[1,4,6,5],float32[4,3,3,2] ConvTranspose(0,1){strides=[2;1]}",
    "in=float32[1,6,5,5],float32[4,3,3,3] Conv(0,1){dilations=[1;2],group=2,pads=[1;1;1;1]} Relu(2)",
    "in=float32[1,2,4,5,3],float32[3,2,2,2,2] Conv(0,1)",
    "in=float32[2,1,4,5],float32[3,5,7] MatMul(0,1)",
    "in=float32[2,3,7,7] MaxPool(0){dilations=[2;2],kernel_shape=[2;2]}",
    "in=float32[1,6,4,4],float32[6],float32[6] InstanceNormalization(0,1,2)",
    "in=int32[4,6],int32[6] Add(0,1)",
    "in=float32[3,11] ArgMax(0){axis=1,keepdims=0}",
    "in=float32[3,5,4] CumSum(0,int64[](1))",
    "in=none Range(int64[](2),int64[](20),int64[](3))",
};

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
