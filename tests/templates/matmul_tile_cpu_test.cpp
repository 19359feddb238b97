// matmul_tile_cpu: when it applies, its loops, and random configs on odd shapes: interpreted, and compiled
// for AMX (on the hardware or emulated) and for targets without it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <span>

#include "templates/registry/registry.h"
#include "templates/workload/tolerance.h"
#include "tests/all_samples.h"
#include "tests/compiler_core/amx_target.h"
#include "tests/compiler_core/kernel_testing.h"
#include "tests/random_seed.h"
#include "tests/templates/template_check.h"

namespace tuner {
namespace {

using testing::amx_fp16_target;
using testing::amx_target;

MatmulWorkload matmul(DType dtype, int64_t m, int64_t n, int64_t k) {
  MatmulWorkload w;
  w.m = m;
  w.n = n;
  w.k = k;
  w.dtype = dtype;
  return w;
}

constexpr DType kTypes[] = {DType::kBFloat16, DType::kInt8, DType::kFloat16};

std::string reason(const MatmulWorkload& w, const Target& t) {
  return matmul_tile_cpu().supports(w, t).reason;
}

TEST(MatmulTileCpu, DeclinesWithTheReason) {
  const Target t = amx_target();
  EXPECT_EQ(reason(matmul(DType::kFloat32, 4, 4, 4), t), "needs bfloat16, float16 or int8, got float32");
  EXPECT_EQ(reason(matmul(DType::kInt8, 4, 4, 8), cpu(512, 32)),
            "needs tiles of int8 (AMX; i8mm or bf16 of AArch64), which llvm -mcpu=skylake-avx512 -threads=1 "
            "has not");
  EXPECT_EQ(reason(matmul(DType::kInt8, 4, 1, 8), t), "needs n >= 2, got 1");
  EXPECT_EQ(reason(matmul(DType::kInt8, 4, 4, 4), t), "needs k > 4, got 4");
  EXPECT_EQ(reason(matmul(DType::kBFloat16, 4, 4, 3), t), "");
  EXPECT_EQ(reason(matmul(DType::kBFloat16, 4, 4, 3), *parse_target("llvm -mcpu=sapphirerapids")), "");
  EXPECT_NE(
      reason(matmul(DType::kBFloat16, 4, 4, 3), *parse_target("llvm -mcpu=sapphirerapids -mattr=-amx-tile")),
      "");
}

// A block of 4 x 4 vectors: operands are packed so that its tiles lie side by side.
TEST(MatmulTileCpu, BlocksOfVectorsAreOneStream) {
  const Target n2 = *parse_target("llvm -mcpu=neoverse-n2 -mtriple=aarch64-linux-gnu");
  MatmulWorkload w = matmul(DType::kInt8, 64, 64, 64);
  w.constant = {"b"};
  const std::string loops = to_text(program_of(matmul_tile_cpu(), w, n2));
  EXPECT_THAT(loops, ::testing::HasSubstr("packed b.packed int8[8, 8, 8, 8]"));
  EXPECT_THAT(loops, ::testing::HasSubstr("allocate a.packed uint8[8, 8, 8, 8]"));
  EXPECT_THAT(loops,
              ::testing::HasSubstr("mmla.uint8.int8.2(acc[i.outer*2, j.outer_1*2], a.packed.fragment[0, 0, "
                                   "i.outer*2, 0], b.packed.fragment[0, 0, j.outer_1*2, 0])"));
  EXPECT_EQ(reason(matmul(DType::kInt8, 1, 64, 64), n2), "needs m >= 2, got 1");
  EXPECT_EQ(templates_for(w, n2)->front()->name(), "matmul_tile_cpu");
}

// Whoever has tiles tries them first.
TEST(MatmulTileCpu, IsTheFirstChoiceWhereItServes) {
  const auto first = templates_for(matmul(DType::kInt8, 64, 64, 64), amx_target());
  ASSERT_TRUE(first.is_ok()) << first.message();
  EXPECT_EQ(first->front()->name(), "matmul_tile_cpu");
}

TEST(MatmulTileCpu, LoopsOfOneConfig) {
  MatmulWorkload w = matmul(DType::kBFloat16, 64, 60, 128);
  w.bias = true;
  w.activation = Activation::kRelu;
  w.constant = {"b"};
  Target wide = amx_target();  // of this host, which may have vectors of any length
  wide.vector_bits = 512;
  EXPECT_EQ("\n" + to_text(program_of(matmul_tile_cpu(), w, wide,
                                      "across=2 block_k=0 block_m=0 down=2 next_panel=0 pack_a=0 rows=16")),
            R"(
kernel matmul(input a bfloat16[64, 128], packed b.packed bfloat16[4, 64, 16, 2], input bias float32[60], output out float32[64, 60])
  for i.outer.outer in 0..1
    for j.outer in 0..2
      for i.outer.inner in 0..2
        allocate acc float32[32, 32]
        allocate acc.fragment float32[32, 32] fragment
        unrolled i.outer.init in 0..2
          unrolled j.outer.init in 0..2
            amx.zero.float32.16(acc.fragment[i.outer.init*16, j.outer.init*16])
        reduce k.outer in 0..4
          allocate a.fragment bfloat16[32, 32] fragment
          allocate b.packed.fragment bfloat16[2, 16, 16, 2] fragment
          unrolled i0.outer in 0..2
            amx.load.bfloat16.16(a.fragment[i0.outer*16, 0], a[i.outer.inner*32 + i0.outer*16, k.outer*32])
          unrolled i0 in 0..2
            amx.groups.bfloat16(b.packed.fragment[i0, 0, 0, 0], b.packed[j.outer*2 + i0, k.outer*16, 0, 0])
          unrolled i.outer in 0..2
            unrolled j.outer_1 in 0..2
              amx.bfloat16.16(acc.fragment[i.outer*16, j.outer_1*16], a.fragment[i.outer*16, 0], b.packed.fragment[j.outer_1, 0, 0, 0])
        unrolled i.outer in 0..2
          unrolled j.outer_1 in 0..2
            amx.store.float32.16(acc.fragment[i.outer*16, j.outer_1*16], acc[i.outer*16, j.outer_1*16])
        for i.inner in 0..32
          unrolled j.inner.outer in 0..2
            vectorized j.inner.inner in 0..16
              if j.outer*32 + j.inner.outer*16 + j.inner.inner < 60
                out[i.outer.inner*32 + i.inner, j.outer*32 + j.inner.outer*16 + j.inner.inner] = max(acc[i.inner, j.inner.outer*16 + j.inner.inner] + bias[j.outer*32 + j.inner.outer*16 + j.inner.inner], 0)
packing matmul_pack(constant b bfloat16[128, 60], packed b.packed bfloat16[4, 64, 16, 2])
  for p0 in 0..4
    for p1 in 0..64
      for p2 in 0..16
        for p3 in 0..2
          b.packed[p0, p1, p2, p3] = select(p0*16 + p2 < 60, b[p1*2 + p3, p0*16 + p2], 0)
)");
}

// A panel of two tiles is 32 lines a step; each of eight blocks of rows asks for four of the next one's.
TEST(MatmulTileCpu, BlocksOfRowsAskForTheNextPanelOfALargeOperand) {
  MatmulWorkload w = matmul(DType::kBFloat16, 256, 4096, 2048);
  w.constant = {"b"};
  const auto loops = [&](const char* config) {
    return to_text(program_of(matmul_tile_cpu(), w, amx_target(), config));
  };
  EXPECT_THAT(loops("across=2 block_k=0 block_m=0 down=2 next_panel=1 pack_a=0 rows=16"),
              ::testing::HasSubstr("reduce k.outer in 0..64\n"
                                   "          unrolled i.outer.inner.ahead in 0..4\n"
                                   "            prefetch.l2(b.packed["));
  EXPECT_THAT(loops("across=2 block_k=512 block_m=0 down=2 next_panel=1 pack_a=0 rows=16"),
              ::testing::HasSubstr("prefetch.l2(b.packed[j.outer*2 + "));
}

// Whole tiles of plain sums need no memory in between.
TEST(MatmulTileCpu, PlainSumsAreStoredWhereTheyBelong) {
  const MatmulWorkload w = matmul(DType::kInt8, 64, 64, 128);
  const std::string loops = to_text(program_of(matmul_tile_cpu(), w, amx_target()));
  EXPECT_EQ(loops.find("allocate acc int32[32, 32]\n"), std::string::npos) << loops;
  EXPECT_NE(loops.find("amx.store.int32.16(acc["), std::string::npos) << loops;
  EXPECT_NE(loops.find("], out["), std::string::npos) << loops;
}

// Two tiles of a, two of b, four products a step; no configuration among them.
TEST(MatmulTileCpu, TheInnerLoopIsLoadsAndProducts) {
  for (const DType dtype : kTypes) {
    MatmulWorkload w = matmul(dtype, 1024, 1024, 1024);
    w.constant = {"b"};
    const Result<std::string> text =
        emit_asm(program_of(matmul_tile_cpu(), w, amx_fp16_target()), amx_fp16_target());
    ASSERT_TRUE(text.is_ok()) << text.message();
    const std::string product = dtype == DType::kInt8      ? "tdpbusd"
                                : dtype == DType::kFloat16 ? "tdpfp16ps"
                                                           : "tdpbf16ps";
    const size_t first = text->find("tileloadd"), last = text->rfind(product);
    ASSERT_NE(last, std::string::npos) << *text;
    const std::string loop = text->substr(first, last + product.size() - first);
    const auto count = [&](const std::string& word) {
      int n = 0;
      for (size_t at = loop.find(word); at != std::string::npos; at = loop.find(word, at + 1)) ++n;
      return n;
    };
    EXPECT_EQ(count("tileloadd"), 4) << loop;
    EXPECT_EQ(count(product), 4) << loop;
    EXPECT_EQ(count("tilecfg"), 0) << loop;
  }
}

TEST(MatmulTileCpu, ScheduleReplaysFromItsText) {
  MatmulWorkload w = matmul(DType::kBFloat16, 20, 60, 9);
  w.transpose_a = true;
  const auto instance = matmul_tile_cpu().apply(w, amx_target(2));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const Config config = (*instance)->space().at((*instance)->space().first_index());
  const auto program = (*instance)->instantiate(config);
  const auto text = (*instance)->schedule_text(config);
  ASSERT_TRUE(program.is_ok() && text.is_ok()) << program.message() << text.message();
  const auto again = replay(Workload(w).compute(), *text);
  ASSERT_TRUE(again.is_ok()) << again.message();
  EXPECT_EQ(to_text(*again), to_text(*program));
}

// On AMX and on vectors of AArch64.
TEST(MatmulTileCpu, DefaultIsValidForAnyShape) {
  const Target n2 = *parse_target("llvm -mcpu=neoverse-n2 -mtriple=aarch64-linux-gnu");
  for (const DType dtype : {DType::kBFloat16, DType::kInt8})
    for (const int64_t m : {2, 3, 5, 6, 7, 8, 17, 127, 1024})
      for (const int64_t n : {2, 3, 13, 16, 255, 4096})
        for (const int64_t k : {9, 31, 64, 1000, 4096}) {
          const auto instance = matmul_tile_cpu().apply(matmul(dtype, m, n, k), n2);
          ASSERT_TRUE(instance.is_ok()) << instance.message();
          const ConfigSpace& space = (*instance)->space();
          const auto program = (*instance)->instantiate(space.at(space.first_index()));
          ASSERT_TRUE(program.is_ok()) << m << " " << n << " " << k << ": " << program.message();
        }
  for (const DType dtype : kTypes)
    for (const int64_t m : {1, 2, 3, 17, 127, 1024})
      for (const int64_t n : {2, 13, 16, 255, 4096})
        for (const int64_t k : {5, 31, 64, 1000}) {
          const auto instance = matmul_tile_cpu().apply(matmul(dtype, m, n, k), amx_fp16_target());
          ASSERT_TRUE(instance.is_ok()) << instance.message();
          const ConfigSpace& space = (*instance)->space();
          const auto program = (*instance)->instantiate(space.at(space.first_index()));
          ASSERT_TRUE(program.is_ok()) << m << " " << n << " " << k << ": " << program.message();
        }
}

// A product of any size and form.
MatmulWorkload drawn(std::mt19937_64& random, DType dtype) {
  const auto between = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  MatmulWorkload w = matmul(dtype, between(1, 70), between(2, 70), between(5, 140));
  if (between(0, 3) == 0) w.m = 16 * between(1, 4), w.n = 16 * between(1, 4);
  w.batch = between(0, 3) == 0 ? 2 : 1;
  w.transpose_a = between(0, 2) == 0;
  w.transpose_b = between(0, 2) == 0;
  w.bias = between(0, 1) == 1;
  w.residual = between(0, 3) == 0;
  if (between(0, 1) == 1) w.activation = Activation::kRelu;
  if (between(0, 1) == 1) w.constant = {"b"};
  if (between(0, 4) == 0) w.constant = {"a", "b"};
  const std::span<const DType> outs = out_dtypes(dtype);
  const DType out = outs[random() % outs.size()];
  if (out != outs.front()) w.narrow_out = out;
  return w;
}

// 200 configs of each type, of which the fast suite takes a sixth, with all types of results: machine code
// with tiles, machine code without, and the plain reference.
TEST(MatmulTileCpu, RandomConfigsCompiledEqualTheOracle) {
  const std::string how = testing::run_amx_kernels_here();
  if (how.empty()) GTEST_SKIP() << "AMX is of x86 CPUs";
  RecordProperty("amx", how);
  const bool has_float16 = how == "emulated" || runs_here(amx_fp16_target()).is_ok();
  if (!has_float16) std::cout << "this CPU has tiles, but not of float16: those run without them\n";
  for (const uint32_t seed : Seeds(/*fixed=*/1, all_samples_wanted() ? 600 : 100)) {
    std::mt19937_64 random(seed);
    const DType dtype = kTypes[seed % 3];
    const MatmulWorkload w = drawn(random, dtype);
    const int threads = 1 + static_cast<int>(random() % 3);
    const auto instance = matmul_tile_cpu().apply(w, amx_fp16_target(threads));
    ASSERT_TRUE(instance.is_ok()) << instance.message();
    const ConfigSpace& space = (*instance)->space();
    const Config config = space.at(space.sample(random));
    SCOPED_TRACE(str(Workload(w).key(), " ", config.to_text(), ", ", threads, " threads"));
    const Result<Program> program = (*instance)->instantiate(config);
    ASSERT_TRUE(program.is_ok()) << program.message();
    const Program math = Workload(w).compute();
    auto expected = testing::random_args(math, seed);
    const auto inputs = expected;
    ASSERT_TRUE(interpret(math, expected).is_ok());
    const Tolerance tolerance = tolerance_of(w);
    std::vector<Target> targets;
    if (dtype != DType::kFloat16 || has_float16) targets.push_back(amx_fp16_target(threads));
    if (seed % 4 < 2 || targets.empty()) targets.push_back(host_target(threads));
    for (const Target& t : targets) {
      auto found = inputs;
      const Status status = testing::run_compiled(*program, found, t, threads);
      ASSERT_TRUE(status.is_ok()) << status.message();
      for (size_t i = 0; i < expected.back().size(); ++i)
        ASSERT_NEAR(found.back()[i], expected.back()[i],
                    tolerance.absolute + tolerance.relative * std::abs(expected.back()[i]))
            << t.name() << ", out[" << i << "]";
    }
  }
}

// Whole tiles of a long sum: k in blocks.
TEST(MatmulTileCpu, SumsByBlocksOfKEqualTheOracle) {
  const std::string how = testing::run_amx_kernels_here();
  if (how.empty()) GTEST_SKIP() << "AMX is of x86 CPUs";
  for (const DType dtype : {DType::kBFloat16, DType::kInt8})
    for (const int threads : {1, 2}) {
      MatmulWorkload w = matmul(dtype, 32, 32, 2048);
      w.bias = true;
      if (threads == 2) w.constant = {"b"};
      for (const char* config : {"across=2 block_k=512 block_m=0 down=2 next_panel=0 pack_a=0 rows=16",
                                 "across=1 block_k=1024 block_m=1 down=1 next_panel=0 pack_a=1 rows=16"}) {
        SCOPED_TRACE(str(Workload(w).key(), " ", config));
        const Program program = program_of(matmul_tile_cpu(), w, amx_target(threads), config);
        EXPECT_TRUE(testing::matches_oracle(program, threads, dtype == DType::kInt8 ? 0 : 2e-5, 1,
                                            amx_target(threads)));
        if (threads == 1) {
          ASSERT_NO_FATAL_FAILURE(expect_same_answer(program, oracle_arguments(Workload(w).compute(), 1)));
        }
      }
    }
}

TEST(MatmulTileCpu, RandomConfigsOnOddShapes) {
  for (const DType dtype : kTypes)
    for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 2, 5}, {7, 13, 29}, {33, 40, 70}}) {
      expect_configs_right(matmul_tile_cpu(), matmul(dtype, m, n, k), amx_fp16_target(), 4, 1);
      expect_configs_right(matmul_tile_cpu(), matmul(dtype, m, n, k), amx_fp16_target(2), 4, 2);
    }
}

}  // namespace
}  // namespace tuner
