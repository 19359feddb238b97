// program_cuda: fragments of every kind, with odd shapes, and random ones, in the emulator with all its
// checks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler_core/graph/fragment.h"
#include "templates/cuda/cuda_templates.h"
#include "tests/compiler_core/graph_writer.h"
#include "tests/templates/gpu_template_check.h"
#include "tests/templates/program_fragments.h"
#include "tuner/verify/verify_emulated.h"

namespace tuner {
namespace {

using testing::kFragments;

Workload fragment(std::string_view text) {
  const auto w = program_from_text(text);
  CHECK(w.is_ok()) << text << ": " << w.message();
  return *w;
}

// The default, and `samples` random configs.
void expect_fragment_right(const Workload& w, int samples, uint32_t fixed_seed) {
  const RandomSeed seed(fixed_seed);
  const auto instance = program_cuda().apply(w, gpu());
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const ConfigSpace& space = (*instance)->space();
  const auto data = make_verify_data(w, seed);
  ASSERT_TRUE(data.is_ok()) << data.message();
  std::mt19937_64 random(seed);
  for (int i = 0; i <= samples; ++i) {
    const Config config = space.at(i == 0 ? space.default_index() : space.sample(random));
    SCOPED_TRACE(space.describe(config));
    const Result<Program> program = (*instance)->instantiate(config);
    ASSERT_TRUE(program.is_ok()) << program.message();
    const Result<GpuProgram> lowered = lower_gpu(*program);
    ASSERT_TRUE(lowered.is_ok()) << lowered.message() << "\n" << to_text(*program);
    const ConfigVerdict verdict = verify_kernels(*lowered, *data, emulation_work(w));
    ASSERT_EQ(verdict.problem, "") << to_text(*lowered);
    ASSERT_EQ(verdict.not_checked, "");
  }
}

TEST(ProgramCuda, EveryKindOfFragmentIsRight) {
  for (const char* text : kFragments) {
    SCOPED_TRACE(text);
    ASSERT_NO_FATAL_FAILURE(expect_fragment_right(fragment(text), 3, 7300));
  }
}

TEST(ProgramCuda, RandomFragmentsAreRight) {
  for (const uint32_t seed : Seeds(7400, 40)) {
    graph::testing::RandomGraph random(seed);
    graph::Graph graph = random.finish();
    std::vector<size_t> nodes(graph.nodes.size());
    for (size_t n = 0; n < nodes.size(); ++n) nodes[n] = n;
    const auto part = graph::fragment_of(graph, nodes, graph.nodes.back().outputs[0]);
    ASSERT_TRUE(part) << part.message();
    const auto w = program_workload(part->graph);
    ASSERT_TRUE(w) << w.message();
    SCOPED_TRACE(w->key());
    ASSERT_NO_FATAL_FAILURE(expect_fragment_right(*w, 1, seed));
  }
}

// A long sum is shared by the threads of a warp, a short one is a thread's, and one number is one thread's.
TEST(ProgramCuda, SumsAreSharedWhereTheyAreLong) {
  const auto kernels = [](const char* text) {
    const auto instance = program_cuda().apply(fragment(text), gpu());
    const ConfigSpace& space = (*instance)->space();
    return *lower_gpu(*(*instance)->instantiate(space.at(space.default_index())));
  };
  const GpuProgram longer = kernels("in=float32[6,300] ReduceSum(0,int64[1](1)){keepdims=0}");
  ASSERT_EQ(longer.kernels.size(), 1u);
  EXPECT_EQ(longer.kernels[0].block[0], 32);
  EXPECT_THAT(to_text(longer), ::testing::HasSubstr("warp_allreduce"));
  // Shuffles add up float32 only.
  EXPECT_THAT(to_text(kernels("in=int32[6,300] ReduceSum(0,int64[1](1)){keepdims=0}")),
              ::testing::Not(::testing::HasSubstr("warp_allreduce")));
  const GpuProgram shorter = kernels("in=float32[600,30] ReduceSum(0,int64[1](1)){keepdims=0}");
  ASSERT_EQ(shorter.kernels.size(), 1u);
  EXPECT_EQ(shorter.kernels[0].grid[0], 3);
  EXPECT_THAT(to_text(shorter), ::testing::Not(::testing::HasSubstr("warp_allreduce")));
  const GpuProgram one = kernels("in=float32[37] ReduceSum(0,int64[1](0)){keepdims=0}");
  for (const GpuKernel& kernel : one.kernels) EXPECT_EQ(kernel.block[0] * kernel.grid[0], 1);
}

TEST(ProgramCuda, DeclinesCpus) {
  EXPECT_EQ(program_cuda().supports(fragment(kFragments[0]), *parse_target("llvm -mcpu=haswell")).reason,
            "needs a CUDA target, got llvm -mcpu=haswell -threads=1");
}

}  // namespace
}  // namespace tuner
