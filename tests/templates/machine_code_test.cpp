// What NVRTC makes of the templates for GPUs, read from the machine code: nothing unknown in it, its hot loop
// holds the multiply-adds, and no estimated time is below what the code must take.
#include <gtest/gtest.h>

#include <iostream>
#include <optional>
#include <random>

#include "compiler_core/backend.h"
#include "compiler_core/codegen_cuda/compile.h"
#include "compiler_core/codegen_cuda/device_rates.h"
#include "compiler_core/codegen_cuda/issue_floor.h"
#include "compiler_core/codegen_cuda/machine_code_text.h"
#include "compiler_core/codegen_cuda/sass/sass_text.h"
#include "compiler_core/codegen_cuda/time_estimate.h"
#include "templates/registry/registry.h"
#include "tests/random_seed.h"
#include "tuner/cost_model/cost_model.h"

namespace tuner::testing {
namespace {

std::vector<Workload> workloads() {
  Conv2dWorkload conv;
  conv.batch = 1, conv.in_channels = 64, conv.in_height = conv.in_width = 56, conv.out_channels = 64;
  conv.kernel_height = conv.kernel_width = 3;
  conv.padding = {1, 1, 1, 1};
  Conv2dWorkload depthwise = conv;
  depthwise.groups = 64;
  return {
      MatmulWorkload{.m = 1024, .n = 1000, .k = 1024},
      MatmulWorkload{.m = 1024, .n = 1000, .k = 1024, .dtype = DType::kBFloat16},
      MatmulWorkload{.m = 1024,
                     .n = 1024,
                     .k = 1024,
                     .bias = true,
                     .dtype = DType::kFloat16,
                     .narrow_out = DType::kFloat16},
      MatmulWorkload{.batch = 2, .m = 1024, .n = 1024, .k = 1024, .transpose_b = true, .dtype = DType::kInt8},
      conv,
      depthwise,
      SoftmaxWorkload{.rows = 4096, .columns = 1000},
      LayerNormWorkload{.rows = 4096, .columns = 768},
      ReduceWorkload{.rows = 4096, .columns = 4096},
      TransposeWorkload{.rows = 4096, .columns = 4000},
      ElementwiseWorkload{.rows = 4096, .columns = 1000}};
}

// Of all multiply-adds at the rate of all lanes or tensor cores, without the work that pads a tile.
double least_ns_of_products(const AnyTemplate& t, const Workload& workload, const Target& target) {
  const cuda::DeviceRates& rates = cuda::device_rates(target);
  const bool by_warpgroups = t.name() == "matmul_wgmma_cuda";
  const bool is_float = workload.dtype() == DType::kFloat32, is_byte = workload.dtype() == DType::kInt8;
  const double a_clock =
      is_float  ? static_cast<double>(rates.fp32_lanes)
      : is_byte ? 4 * 16 * 8 * 32 / rates.least_mma.bytes
                : 4 * 16 * 8 * 16 / (by_warpgroups ? rates.least_mma.grouped : rates.least_mma.halves);
  return static_cast<double>(workload.flops()) / 2 /
         (static_cast<double>(rates.multiprocessors) * a_clock * rates.clock_ghz);
}

// True if its multiply-adds are those of ordinary cores.
bool is_product(const AnyTemplate& t) {
  return t.algorithm() == "direct" && (t.name().starts_with("matmul") || t.name().starts_with("conv2d"));
}

void check_default(const AnyTemplate& t, const Workload& workload, const Target& target) {
  const auto instance = t.apply(workload, target);
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const ConfigSpace& space = (*instance)->space();
  const Result<Program> program = (*instance)->instantiate(space.at(space.default_index()));
  ASSERT_TRUE(program.is_ok()) << program.message();
  const Result<GpuProgram> lowered = lower_gpu(*program);
  ASSERT_TRUE(lowered.is_ok()) << lowered.message();
  const Result<Artifact> artifact = cuda::compile_kernels(*lowered, target, {});
  ASSERT_TRUE(artifact.is_ok()) << artifact.message();
  const auto codes = sass::read_kernel_code(artifact->binary);
  ASSERT_TRUE(codes.is_ok()) << codes.message();
  for (const sass::KernelCode& code : *codes) {
    EXPECT_EQ(code.mix[sass::Op::kUnknown], 0) << code.name;
    EXPECT_EQ(code.mix[sass::Op::kLocalLoad] + code.mix[sass::Op::kLocalStore], 0) << code.name;
  }
  const Result<sass::IssueFloor> floor = sass::issue_floor(*artifact, *lowered, target);
  ASSERT_TRUE(floor.is_ok()) << floor.message();
  const TimeEstimate estimate = estimate_time(*lowered, target);
  EXPECT_GE(estimate.ns - estimate.launch_ns, floor->ns);
  EXPECT_GE(floor->ns, is_product(t) ? 0.99 * least_ns_of_products(t, workload, target) : 0);
}

class MachineCode : public ::testing::TestWithParam<const char*> {};

TEST_P(MachineCode, DefaultsAreKnownCodeAndTakeAtLeastTheirFloor) {
  if (const Status there = nvrtc_available(); !there.is_ok()) GTEST_SKIP() << there.message();
  const Target target = *parse_target(std::string("cuda -arch=") + GetParam());
  for (const Workload& workload : workloads()) {
    const auto served = templates_for(workload, target);
    ASSERT_TRUE(served.is_ok()) << served.message();
    for (const AnyTemplate* t : *served) {
      SCOPED_TRACE(std::string(t->name()) + " " + workload.key());
      check_default(*t, workload, target);
    }
  }
}

TEST_P(MachineCode, IsPrintedWithItsCounts) {
  if (const Status there = nvrtc_available(); !there.is_ok()) GTEST_SKIP() << there.message();
  const Target target = *parse_target(std::string("cuda -arch=") + GetParam());
  const Workload workload = MatmulWorkload{.m = 1024, .n = 1024, .k = 1024};
  const auto instance = templates_for(workload, target)->front()->apply(workload, target);
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const ConfigSpace& space = (*instance)->space();
  const Result<std::string> text =
      cuda_sass(*(*instance)->instantiate(space.at(space.default_index())), target);
  ASSERT_TRUE(text.is_ok()) << text.message();
  for (const char* part : {"  registers    ", "  issue floor  ", "  copy         ", "  hot loop     ",
                           " % FFMA, ", "LDS.128", "BAR", "BRA"})
    EXPECT_NE(text->find(part), std::string::npos) << part << "\n" << *text;
}

// What a pack ranks compiled candidates by: the floor with the launch; nothing of a binary that is no cubin.
TEST_P(MachineCode, TheBackEndTellsTheLeastTimeOfACubin) {
  if (const Status there = nvrtc_available(); !there.is_ok()) GTEST_SKIP() << there.message();
  const Target target = *parse_target(std::string("cuda -arch=") + GetParam());
  const Workload workload = MatmulWorkload{.m = 1024, .n = 1024, .k = 1024};
  const auto instance = templates_for(workload, target)->front()->apply(workload, target);
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const ConfigSpace& space = (*instance)->space();
  const Result<Program> program = (*instance)->instantiate(space.at(space.default_index()));
  ASSERT_TRUE(program.is_ok()) << program.message();
  Result<Artifact> artifact = compile_cuda(*program, target);
  ASSERT_TRUE(artifact.is_ok()) << artifact.message();
  const auto floor = sass::issue_floor(*artifact, *lower_gpu(*program), target);
  ASSERT_TRUE(floor.is_ok()) << floor.message();
  const Backend& backend = backend_of(target);
  EXPECT_DOUBLE_EQ(backend.least_ns(*program, target, *artifact), floor->ns + kLaunchNs);
  artifact->manifest.kind = binary_kind::kSharedObject;
  EXPECT_EQ(backend.least_ns(*program, target, *artifact), 0);
}

// Of bytes: what the loop is there for is dot products, and most of it is.
TEST(MachineCodeOfBytes, HotLoopsAreDotProducts) {
  if (const Status there = nvrtc_available(); !there.is_ok()) GTEST_SKIP() << there.message();
  MatmulWorkload w{.m = 1024, .n = 1024, .k = 4096, .dtype = DType::kInt8};
  for (const char* arch : {"sm_75", "sm_80"})
    for (const bool along_k : {true, false}) {
      SCOPED_TRACE(str(arch, along_k ? ", along k" : ", across k"));
      w.transpose_b = along_k, w.transpose_a = !along_k;
      const Target target = *parse_target(str("cuda -arch=", arch));
      const auto instance = matmul_dp4a_cuda().apply(w, target);
      ASSERT_TRUE(instance.is_ok()) << instance.message();
      const ConfigSpace& space = (*instance)->space();
      const Result<Program> program = (*instance)->instantiate(space.at(space.default_index()));
      ASSERT_TRUE(program.is_ok()) << program.message();
      const Result<GpuProgram> lowered = lower_gpu(*program);
      ASSERT_TRUE(lowered.is_ok()) << lowered.message();
      const Result<Artifact> artifact = cuda::compile_kernels(*lowered, target, {});
      ASSERT_TRUE(artifact.is_ok()) << artifact.message();
      const auto codes = sass::read_kernel_code(artifact->binary);
      ASSERT_TRUE(codes.is_ok()) << codes.message();
      const sass::KernelCode& code = codes->front();
      EXPECT_EQ(code.mix[sass::Op::kUnknown], 0);
      EXPECT_EQ(code.mix[sass::Op::kLocalLoad] + code.mix[sass::Op::kLocalStore], 0);
      EXPECT_EQ(code.hot_mix()[sass::Op::kDot], 1024)
          << sass::to_text(code);  // 8 x 8 sums, 8 words of k, two stages
      std::cout << arch << (along_k ? ", along k: " : ", across k: ") << 100 * code.hot_mix().dot_share()
                << " % of the loop are dot products\n";
      EXPECT_GE(code.hot_mix().dot_share(), along_k ? 0.85 : 0.75) << sass::to_text(code);
      const Result<sass::IssueFloor> floor = sass::issue_floor(*artifact, *lowered, target);
      ASSERT_TRUE(floor.is_ok()) << floor.message();
      const TimeEstimate estimate = estimate_time(*lowered, target);
      EXPECT_GE(estimate.ns - estimate.launch_ns, floor->ns);
      // Not less than the issue of all dot products.
      const cuda::DeviceRates& rates = cuda::device_rates(target);
      const double dot_products = static_cast<double>(w.m) * w.n * w.k / 4;
      EXPECT_GE(floor->ns, dot_products / (rates.multiprocessors * 128.0 * rates.clock_ghz));
    }
}

struct Judged {
  TimeEstimate estimate;
  sass::IssueFloor floor;
};
// Nothing when the filter or the compiler refuses the config.
std::optional<Judged> judged(const TemplateInstance& instance, const Config& config, const Target& target) {
  const Result<Program> program = instance.instantiate(config);
  const Result<GpuProgram> lowered = program ? lower_gpu(*program) : Result<GpuProgram>(program.status());
  if (!lowered) return std::nullopt;
  const Result<Artifact> artifact = cuda::compile_kernels(*lowered, target, {});
  if (!artifact) return std::nullopt;
  const Result<sass::IssueFloor> floor = sass::issue_floor(*artifact, *lowered, target);
  EXPECT_TRUE(floor.is_ok()) << floor.message() << "\n" << config.to_text();
  if (!floor) return std::nullopt;
  return Judged{estimate_time(*lowered, target), *floor};
}

// Random configs of one shape: no estimate is below what the code must take, and what the estimate says of
// issue orders them nearly as the code does. Measured: 0.85 and above (sass/README.md), of 60 configs.
void check_random(const AnyTemplate& t, const Workload& workload, const Target& target, uint32_t seed) {
  SCOPED_TRACE(str(t.name(), " ", target.name(), " ", workload.key()));
  const auto instance = t.apply(workload, target);
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  constexpr size_t kWanted = 14;
  std::mt19937_64 random(seed);
  std::vector<float> estimates, floors;
  for (size_t drawn = 0; drawn < 8 * kWanted && estimates.size() < kWanted; ++drawn) {
    const Config config = (*instance)->space().at((*instance)->space().sample(random));
    const std::optional<Judged> found = judged(**instance, config, target);
    if (!found.has_value()) continue;
    EXPECT_GE(found->estimate.ns - found->estimate.launch_ns, found->floor.ns) << config.to_text();
    estimates.push_back(static_cast<float>(found->estimate.issue_ns));
    floors.push_back(static_cast<float>(found->floor.issue_ns));
  }
  ASSERT_EQ(estimates.size(), kWanted);
  const double rank = rank_correlation(estimates, floors);
  std::cout << target.name() << ", " << t.name() << ": rank correlation of issue " << rank << "\n";
  EXPECT_GE(rank, 0.7);
}

TEST_P(MachineCode, EstimatesOfRandomConfigsAreInTheOrderOfTheirFloors) {
  if (const Status there = nvrtc_available(); !there.is_ok()) GTEST_SKIP() << there.message();
  const Target target = *parse_target(std::string("cuda -arch=") + GetParam());
  Conv2dWorkload conv{.batch = 1, .in_channels = 128, .in_height = 28, .in_width = 28, .out_channels = 128};
  conv.kernel_height = conv.kernel_width = 3, conv.padding = {1, 1, 1, 1};
  const RandomSeed seed(21);
  check_random(matmul_cuda(), MatmulWorkload{.m = 1024, .n = 1000, .k = 512}, target, seed);
  check_random(conv2d_nchw_cuda(), conv, target, seed);
}

INSTANTIATE_TEST_SUITE_P(Arch, MachineCode, ::testing::Values("sm_80", "sm_90a"));

}  // namespace
}  // namespace tuner::testing
