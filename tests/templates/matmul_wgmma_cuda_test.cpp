// matmul_wgmma_cuda: when it applies, random configs on odd shapes, emulated, against the oracle, and what
// NVRTC makes of the default.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <iostream>

#include "compiler_core/codegen_cuda/compile.h"
#include "compiler_core/codegen_cuda/nvrtc.h"
#include "compiler_core/codegen_cuda/sass/sass.h"
#include "compiler_core/ir/visitor.h"
#include "templates/registry/registry.h"
#include "tests/templates/gpu_template_check.h"
#include "tests/templates/tensor_core_model.h"

namespace tuner {
namespace {

MatmulWorkload matmul(int64_t m, int64_t n, int64_t k, DType dtype = DType::kBFloat16) {
  MatmulWorkload w;
  w.m = m, w.n = n, w.k = k;
  w.dtype = dtype;
  return w;
}

TEST(MatmulWgmmaCuda, DeclinesWithTheReason) {
  const auto reason = [](const MatmulWorkload& w, const Target& t) {
    return matmul_wgmma_cuda().supports(w, t).reason;
  };
  const Target cpu = *parse_target("llvm -mcpu=haswell");
  EXPECT_EQ(reason(matmul(4, 4, 4), cpu), "needs a CUDA target, got " + cpu.name());
  for (const char* arch : {"sm_80", "sm_90", "sm_100a"})
    EXPECT_EQ(reason(matmul(4, 4, 4), gpu(arch)), str("needs sm_90a, got ", arch));
  EXPECT_EQ(reason(matmul(4, 4, 4, DType::kInt8), gpu()), "needs bfloat16 or float16, got int8");
  EXPECT_EQ(reason(matmul(1, 4, 4), gpu()), "needs m >= 2, got 1");
  EXPECT_EQ(reason(matmul(4, 4, 5), gpu()), "needs rows of an even length, got a with an odd one");
  EXPECT_EQ(reason(matmul(4, 5, 4), gpu()), "needs rows of an even length, got b with an odd one");
  EXPECT_TRUE(matmul_wgmma_cuda().supports(Workload(matmul(5, 4, 4)), gpu()).yes);
  MatmulWorkload packed = matmul(5, 7, 9);
  packed.constant = {"a", "b"};
  EXPECT_TRUE(matmul_wgmma_cuda().supports(Workload(packed), gpu()).yes);
}

TEST(MatmulWgmmaCuda, DefaultIsValidForAnyShape) {
  for (const int64_t m : {2, 7, 127, 100000})
    for (const int64_t n : {2, 14, 254, 4096})
      for (const int64_t k : {2, 40, 65536}) {
        const auto instance = matmul_wgmma_cuda().apply(matmul(m, n, k), gpu());
        ASSERT_TRUE(instance.is_ok()) << m << " " << n << " " << k << ": " << instance.message();
        const ConfigSpace& space = (*instance)->space();
        const auto program = (*instance)->instantiate(space.at(space.default_index()));
        ASSERT_TRUE(program.is_ok()) << m << " " << n << " " << k << ": " << program.message();
        const auto lowered = lower_gpu(*program);
        ASSERT_TRUE(lowered.is_ok()) << m << " " << n << " " << k << ": " << lowered.message();
      }
}

// So many random configs; TUNER_CUDA_CONFIGS in the environment asks for others.
int configs(int otherwise) {
  const char* const wanted = std::getenv("TUNER_CUDA_CONFIGS");
  return wanted == nullptr ? otherwise : std::atoi(wanted);
}

TEST(MatmulWgmmaCuda, RandomConfigsOnOddShapes) {
  for (const auto& w : {matmul(2, 2, 2), matmul(7, 14, 30), matmul(133, 70, 48), matmul(120, 150, 140)}) {
    expect_gpu_configs_right(matmul_wgmma_cuda(), w, gpu(), configs(3), 1);
    MatmulWorkload packed = w;
    packed.dtype = DType::kFloat16;
    packed.constant = {"a", "b"};
    packed.k += 1;
    expect_gpu_configs_right(matmul_wgmma_cuda(), packed, gpu(), configs(3), 1);
  }
}

// Rows of whole 16 bytes, so that TMA may copy, and tails in all dimensions: those of 3000 in blocks of 64,
// 128 and 256.
TEST(MatmulWgmmaCuda, RandomConfigsWithTails) {
  for (const DType dtype : {DType::kBFloat16, DType::kFloat16}) {
    MatmulWorkload w = matmul(37, 60, 168, dtype);
    w.transpose_b = true;
    expect_gpu_configs_right(matmul_wgmma_cuda(), w, gpu(), configs(3), 1);
    w.transpose_b = false, w.constant = {"b"};
    expect_gpu_configs_right(matmul_wgmma_cuda(), w, gpu(), configs(3), 2);
    w = matmul(184, 184, 440, dtype);
    expect_gpu_configs_right(matmul_wgmma_cuda(), w, gpu(), configs(3), 3);
    w = matmul(184, 312, 184, dtype);
    w.transpose_a = true;
    expect_gpu_configs_right(matmul_wgmma_cuda(), w, gpu(), configs(3), 4);
  }
}

TEST(MatmulWgmmaCuda, EveryOperandForm) {
  for (int form = 0; form < 64; form += 5) {
    MatmulWorkload w = matmul(form % 4 == 0 ? 38 : 72, form % 3 == 0 ? 50 : 136, form % 2 == 0 ? 46 : 96,
                              (form & 1) != 0 ? DType::kBFloat16 : DType::kFloat16);
    w.transpose_a = (form & 2) != 0;
    w.transpose_b = (form & 4) != 0;
    w.bias = (form & 8) != 0;
    w.activation = (form & 16) != 0 ? Activation::kRelu : Activation::kNone;
    if (form % 4 == 0) w.constant = {"b"};
    if ((form & 32) != 0) w.narrow_out = w.dtype;
    w.residual = form % 5 == 0;
    w.batch = form % 3 == 0 && form % 2 == 0 ? 3 : 1;
    expect_gpu_configs_right(matmul_wgmma_cuda(), w, gpu(), 2, static_cast<uint32_t>(form));
  }
}

// As for mma.sync (matmul_mma_cuda_test), with a larger limit, which a device was asked about.
TEST(MatmulWgmmaCuda, BlocksSumUpWhatTheToleranceHasRoomFor) {
  const auto worst = [](const TensorCore& core, int64_t k) {
    return worst_sum(core, tolerance_of(matmul(2, 2, k)), k, 200, static_cast<uint64_t>(k),
                     [](std::mt19937_64& rng) { return rounded_to_bfloat16(drawn_float(rng)); });
  };
  for (const TensorCore& core : kTensorCores) EXPECT_LE(worst(core, 8192), 0.95);
  EXPECT_GT(worst(kTensorCores[1], 16384), 1) << "the limit has a reason";
  const auto kernels = [](int64_t m, int64_t n, int64_t k) {
    const auto instance = matmul_wgmma_cuda().apply(matmul(m, n, k), gpu());
    CHECK(instance.is_ok()) << instance.message();
    const ConfigSpace& space = (*instance)->space();
    const auto lowered = lower_gpu(*(*instance)->instantiate(space.at(space.default_index())));
    CHECK(lowered.is_ok()) << lowered.message();
    return lowered->kernels.size();
  };
  EXPECT_EQ(kernels(8192, 8192, 8192), 1u) << "no second pass";
  EXPECT_EQ(kernels(8192, 8192, 8200), 2u);
  EXPECT_EQ(kernels(4096, 4096, 14336), 2u);
}

// What the emulator finds in the kernel of a config whose products go on, with its waits for earlier ones
// changed.
std::string found_with(const std::function<Stmt(const Stmt&)>& change) {
  const MatmulWorkload w = matmul(60, 60, 300);
  const auto instance = matmul_wgmma_cuda().apply(w, gpu());
  CHECK(instance.is_ok()) << instance.message();
  std::map<std::string, int64_t> knobs = {{"columns", 64}, {"groups_m", 1}, {"groups_n", 1}, {"steps", 1}};
  knobs.merge(std::map<std::string, int64_t>{
      {"stages", 3}, {"overlap", 1}, {"tma", 0}, {"split_k", 1}, {"group_m", 1}, {"min_blocks", 1}});
  const auto program = (*instance)->instantiate(Config(knobs));
  CHECK(program.is_ok()) << program.message();
  Result<GpuProgram> lowered = lower_gpu(*program);
  CHECK(lowered.is_ok()) << lowered.message();
  const std::function<Stmt(const Stmt&)> rebuilt = [&](const Stmt& s) -> Stmt {
    if (s == nullptr) return s;
    if (s->kind == StmtKind::kIntrinsic && s->name.starts_with("wgmma.landed_before.")) return change(s);
    return map_children(
        s, [](const Expr& e) { return e; }, rebuilt);
  };
  lowered->kernels[0].body = rebuilt(lowered->kernels[0].body);
  const Result<EmulatedRun> run = run_emulated(*lowered, gpu_task_data(Workload(w).compute(), 1).inputs);
  CHECK(run.is_ok()) << run.message();
  return run->faults.empty() ? "nothing" : run->faults.front();
}

TEST(MatmulWgmmaCuda, ProductsAreWaitedForBeforeTheirOperandsChange) {
  using ::testing::HasSubstr;
  EXPECT_EQ(found_with([](const Stmt& s) { return s; }), "nothing");
  EXPECT_THAT(found_with([](const Stmt&) { return Stmt(); }), HasSubstr("products under way"));
  // The stage of the latest products, or of none.
  EXPECT_THAT(found_with([](const Stmt& s) {
                auto other = std::make_shared<StmtNode>(*s);
                for (Expr& operand : other->operands)
                  if (operand->buffer->scope == MemoryScope::kShared) {
                    std::vector<Expr> at = operand->operands;
                    at[0] = floor_mod(at[0] + 1, 3);
                    operand = load(operand->buffer, at);
                  }
                return Stmt(other);
              }),
              HasSubstr("products not started"));
}

// While products of a step run on, threads already copy: not to the stage that is read, so two are too few.
// TMA waits.
TEST(MatmulWgmmaCuda, ProductsThatGoOnNeedAStageMore) {
  const auto instance = matmul_wgmma_cuda().apply(matmul(1024, 1024, 2048), gpu());
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const ConfigSpace& space = (*instance)->space();
  std::mt19937_64 rng(9);
  int by_threads = 0;
  for (int i = 0; i < 3000; ++i) {
    const Config c = space.at(space.sample(rng));
    if (c.at("overlap") == 0 || c.at("tma") != 0) continue;
    ASSERT_GE(c.at("stages"), 3) << space.describe(c);
    ++by_threads;
  }
  EXPECT_GT(by_threads, 100);
}

TEST(MatmulWgmmaCuda, SchedulesReplayFromTheirText) {
  MatmulWorkload w = matmul(70, 56, 200);
  w.transpose_b = w.bias = true;
  w.constant = {"b"};
  expect_gpu_schedules_replay(matmul_wgmma_cuda(), w, gpu(), 6, 1);
}

// Of valid configs at least 95 % compile with nothing in local memory and products that stay under way; those
// that fetch hold no copies by threads, and their loops are short.
TEST(MatmulWgmmaCuda, ConfigsCompileWithoutLosses) {
  if (const Status there = nvrtc_available(); !there.is_ok()) GTEST_SKIP() << there.message();
  const RandomSeed seed(5);
  std::mt19937_64 rng(seed);
  MatmulWorkload odd = matmul(3000, 3000, 3000, DType::kFloat16), transposed = matmul(4096, 14336, 4096);
  transposed.transpose_b = true;
  int all = 0, good = 0, fetching = 0, longest = 0;
  for (const MatmulWorkload& w : {matmul(4096, 4096, 4096), transposed, odd}) {
    const auto instance = matmul_wgmma_cuda().apply(w, gpu());
    ASSERT_TRUE(instance.is_ok()) << instance.message();
    const ConfigSpace& space = (*instance)->space();
    for (int i = 0; i <= configs(4); ++i) {
      const Config config = space.at(i == 0 ? space.default_index() : space.sample(rng));
      SCOPED_TRACE(str(Workload(w).key(), " ", config.to_text()));
      const auto lowered = lower_gpu(*(*instance)->instantiate(config));
      ASSERT_TRUE(lowered.is_ok()) << lowered.message();
      const auto compiled =
          cuda::compile_source(print_cuda(*lowered, gpu()), "k.cu",
                               {"--gpu-architecture=sm_90a", "--std=c++17", "--ptxas-options=-v"});
      ++all;
      if (!compiled.is_ok()) {
        std::cout << config.to_text() << ": " << compiled.message() << "\n";
        continue;
      }
      std::string why;
      for (const CompilerReport& report : parse_compiler_log(compiled->log)) {
        if (report.spill_store_bytes + report.spill_load_bytes > 0)
          why = str(report.spill_store_bytes, " bytes spilled");
        if (!report.losses.empty()) why = report.losses[0];
      }
      const auto codes = sass::read_kernel_code(compiled->cubin);
      ASSERT_TRUE(codes.is_ok()) << codes.message();
      const bool fetches = config.values().at("tma") != 0;
      fetching += fetches ? 1 : 0;
      for (const sass::KernelCode& code : *codes)
        for (const sass::Loop& loop : code.loops) {
          if (loop.own[sass::Op::kMma] == 0 || !fetches) continue;
          EXPECT_EQ(loop.own[sass::Op::kLdgsts], 0);
          if (i == 0) {
            longest = std::max(longest, loop.own.all());
          }
        }
      if (!why.empty()) std::cout << config.to_text() << ": " << why << "\n";
      good += why.empty() ? 1 : 0;
    }
  }
  std::cout << good << " of " << all << " without losses, " << fetching
            << " of them fetch; the longest loop of a default has " << longest << " instructions\n";
  EXPECT_GE(good * 100, all * 95);
  EXPECT_GT(fetching, 3);
}

// The loop holds products of warpgroups and nothing is kept in local memory; a compiler that lets them wait
// for each other is refused.
TEST(MatmulWgmmaCuda, TheDefaultKeepsItsSumsInRegisters) {
  if (const Status there = nvrtc_available(); !there.is_ok()) GTEST_SKIP() << there.message();
  const auto instance = matmul_wgmma_cuda().apply(matmul(4096, 4096, 4096), gpu());
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const ConfigSpace& space = (*instance)->space();
  EXPECT_GE(space.size(), 500u);
  const Config first = space.at(space.default_index());
  EXPECT_EQ(first.values().at("columns"), 256);
  EXPECT_EQ(first.values().at("groups_m"), 2);
  const auto artifact = compile_cuda(*(*instance)->instantiate(first), gpu());
  ASSERT_TRUE(artifact.is_ok()) << artifact.message();
  EXPECT_EQ(artifact->manifest.launches[0].spill_bytes, 0);
  EXPECT_EQ(artifact->manifest.launches[0].blocks_per_sm, 1);
  const auto codes = sass::read_kernel_code(artifact->binary);
  ASSERT_TRUE(codes.is_ok()) << codes.message();
  int in_loops = 0;
  for (const sass::Loop& loop : codes->front().loops) in_loops += loop.own[sass::Op::kMma];
  EXPECT_EQ(in_loops, 4) << "64 terms by 16";
  // Addresses and waits take no more than that beside them; with copies by threads it had 114.
  for (const sass::Loop& loop : codes->front().loops)
    if (loop.own[sass::Op::kMma] > 0) {
      EXPECT_LE(loop.own.all(), 60);
    }
  EXPECT_EQ(codes->front().mix[sass::Op::kUnknown], 0);
}

}  // namespace
}  // namespace tuner
