// Tensor cores: schedules of products by tiles of a warp, lowered, emulated and compiled.
#include <gmock/gmock.h>

#include <random>
#include <string>
#include <vector>

#include "compiler_core/codegen_cuda/compile.h"
#include "compiler_core/codegen_cuda/cuda.h"
#include "compiler_core/codegen_cuda/sass/sass.h"
#include "compiler_core/codegen_cuda/sass/sass_text.h"
#include "compiler_core/lower/gpu.h"
#include "compiler_core/oracle/oracle.h"
#include "tests/compiler_core/warp_tile_runs.h"
#include "tests/random_seed.h"

namespace tuner {
namespace {

using testing::float_product;
using testing::half_product;
using ::testing::HasSubstr;
using testing::lowered;
using testing::random_operands;
using testing::statements;
using testing::verdict;
using testing::warp_product;
using testing::WarpTiles;

TEST(WarpTiles, AProductIsLoadsOfMatricesAndProductsOfTiles) {
  const Program math = half_product(DType::kBFloat16, 32, 32, 32, true);
  const Schedule s = warp_product(math, {});
  ASSERT_FALSE(s.refused()) << s.finish().message();
  const Result<GpuProgram> gpu = lowered(s);
  ASSERT_TRUE(gpu) << gpu.message() << to_text(s.program());
  EXPECT_EQ("\n" + to_text(*gpu), R"(
kernel product(a, b, out) grid (1, 1, 1) block (32, 2, 1)
  shared acc float32[32, 32] at 0
  shared a.packed bfloat16[1, 1, 32, 32] at 4096
  shared b.packed bfloat16[1, 1, 32, 32] at 6144
  block
    allocate acc.fragment float32[16] register
    unrolled i.outer.init in 0..2
      unrolled j.outer.init in 0..2
        mma.zero(acc.fragment[i.outer.init*8 + j.outer.init*4])
    for p0.p1.p2.p3.fused.outer in 0..16
      a.packed[0, 0, p0.p1.p2.p3.fused.outer*2 + ty, tx] = a[p0.p1.p2.p3.fused.outer*2 + ty, tx]
    for p0.p1.p2.p3.fused.outer in 0..16
      b.packed[0, 0, p0.p1.p2.p3.fused.outer*2 + ty, tx] = b[p0.p1.p2.p3.fused.outer*2 + ty, tx]
    barrier shared
    unrolled reduce k.inner.outer in 0..2
      allocate a.packed.fragment bfloat16[1, 1, 16] register
      allocate b.packed.fragment bfloat16[1, 1, 8] register
      unrolled i2.outer in 0..2
        ldmatrix.bfloat16.mk(a.packed.fragment[0, 0, i2.outer*8], a.packed[0, 0, i2.outer*16, k.inner.outer*16])
      ldmatrix.bfloat16.kn(b.packed.fragment[0, 0, 0], b.packed[0, 0, k.inner.outer*16, ty*16])
      unrolled i.outer in 0..2
        unrolled j.outer in 0..2
          mma.bfloat16.mk.kn(acc.fragment[i.outer*8 + j.outer*4], a.packed.fragment[0, 0, i.outer*8], b.packed.fragment[0, 0, j.outer*4])
    unrolled i.inner.outer in 0..2
      unrolled j.inner.outer in 0..2
        mma.store(acc.fragment[i.inner.outer*8 + j.inner.outer*4], acc[i.inner.outer*16, ty*16 + j.inner.outer*8])
  barrier shared
  for i.inner.j.inner.fused.outer in 0..16
    out[i.inner.j.inner.fused.outer*2 + ty, tx] = max(acc[i.inner.j.inner.fused.outer*2 + ty, tx], 0)
)");
}

TEST(WarpTiles, APipelineCopiesAheadBehindOneBarrierAStep) {
  const Program math = half_product(DType::kBFloat16, 32, 32, 128, true);
  const Schedule s = warp_product(math, {.stages = 3, .vector = 8});
  ASSERT_FALSE(s.refused()) << s.finish().message();
  const Result<GpuProgram> gpu = lowered(s);
  ASSERT_TRUE(gpu) << gpu.message() << to_text(s.program());
  const std::string text = to_text(*gpu);
  EXPECT_THAT(text, HasSubstr("shared a.packed bfloat16[3, 1, 1, 32, 32]"));
  EXPECT_THAT(text, HasSubstr("async commit\n"
                              "    reduce k.outer in 0..4\n"
                              "      async wait 1\n"
                              "      barrier shared\n"
                              "      if k.outer < 2\n"
                              "        async copy\n"));
  EXPECT_THAT(text, HasSubstr("a.packed[(k.outer + 2)%3, 0, 0, "));
  EXPECT_THAT(text, HasSubstr("a.packed[k.outer%3, 0, 0, i2.outer*16, k.inner.outer*16]"));
  EXPECT_EQ(statements(*gpu, StmtKind::kBarrier), 3)
      << "one in the loop, one before the sums come where the tiles were, one before they are read";
  EXPECT_EQ(gpu->kernels[0].shared_bytes, 2 * 3 * 32 * 32 * 2) << "the sums lie on the tiles";
  EXPECT_EQ(verdict(*gpu, math), "");
  const std::string cuda = print_cuda(*gpu, parse_target("cuda -arch=sm_80").value());
  EXPECT_THAT(cuda, HasSubstr("cp.async.cg.shared.global [%0], [%1], 16, %2;"));
  EXPECT_THAT(cuda, HasSubstr("asm volatile(\"cp.async.wait_group 1;\" ::: \"memory\");"));

  // Beyond an edge zeros are written, and nothing is read.
  const auto edge =
      lowered(warp_product(half_product(DType::kBFloat16, 40, 40, 40, true), {.stages = 2, .vector = 8}));
  ASSERT_TRUE(edge) << edge.message();
  EXPECT_THAT(print_cuda(*edge, parse_target("cuda -arch=sm_80").value()), HasSubstr(" ? 16 : 0);"));
}

TEST(WarpTiles, RandomProductsAreRight) {
  const RandomSeed seed(2611);
  std::mt19937_64 rng(seed);
  const auto pick = [&](auto... values) {
    const std::vector<std::common_type_t<decltype(values)...>> all{values...};
    return all[rng() % all.size()];
  };
  for (uint32_t i = 0; i < wanted_rounds(16); ++i) {
    WarpTiles o;
    o.warps_m = pick(1, 2), o.warps_n = pick(1, 2, 4);
    o.bm = 16 * o.warps_m * pick(1, 2), o.bn = 16 * o.warps_n * pick(1, 2), o.bk = 16 * pick(1, 2, 4);
    o.k_first = rng() % 2 == 0, o.double_buffer = rng() % 2 == 0, o.vector = pick(1, 2, 8);
    o.layout_a = pick("", "pad:8"), o.layout_b = pick("", "pad:8"), o.layout_c = pick("", "pad:2", "pad:8");
    if (o.bk >= 32 && rng() % 2 == 0) o.layout_a = "xor:8,4";
    if (rng() % 2 == 0) o.double_buffer = false, o.stages = pick(2, 3, 4);
    const DType t = pick(DType::kBFloat16, DType::kFloat16);
    const auto m = o.bm + static_cast<int64_t>(rng() % 70), n = o.bn + static_cast<int64_t>(rng() % 70),
               k = static_cast<int64_t>((o.bk > 32 ? 17 : 1) + rng() % 140);
    o.stages = std::min(o.stages, (k + o.bk - 1) / o.bk + 1);
    o.ahead = o.stages > 1 && o.bk > 16 && k > o.bk && rng() % 2 == 0;
    SCOPED_TRACE(str("number ", i, ": ", m, "x", n, "x", k, o.ahead ? ", ahead" : ""));
    const Program math = half_product(t, m, n, k, o.k_first);
    const Schedule s = warp_product(math, o);
    ASSERT_FALSE(s.refused()) << s.finish().message() << "\n" << s.trace();
    const Result<GpuProgram> gpu = lowered(s);
    ASSERT_TRUE(gpu) << gpu.message() << "\n" << s.trace();
    ASSERT_EQ(verdict(*gpu, math, rng()), "") << to_text(*gpu);
    // The Program before lowering means the same.
    if (m * n * k > 20'000) continue;
    std::vector<std::vector<double>> plain, tiled;
    for (const auto& input : random_operands(math, 3)) plain.emplace_back(input.begin(), input.end());
    plain.emplace_back();
    tiled = plain;
    ASSERT_TRUE(interpret(math, plain));
    ASSERT_TRUE(interpret(*s.finish(), tiled));
    for (size_t e = 0; e < plain.back().size(); ++e) ASSERT_NEAR(tiled.back()[e], plain.back()[e], 1e-4);
  }
}

// Every way round, by one term and by three.
TEST(WarpTiles, RandomProductsOfFloat32AreRight) {
  const RandomSeed seed(2612);
  std::mt19937_64 rng(seed);
  const auto pick = [&](auto... values) {
    const std::vector<std::common_type_t<decltype(values)...>> all{values...};
    return all[rng() % all.size()];
  };
  for (uint32_t i = 0; i < wanted_rounds(24); ++i) {
    WarpTiles o;
    o.warps_m = pick(1, 2), o.warps_n = pick(1, 2);
    o.bm = 16 * o.warps_m * pick(1, 2), o.bn = 16 * o.warps_n * pick(1, 2), o.bk = 16 * pick(1, 2);
    o.m_first = (i & 1) != 0, o.k_first = (i & 2) != 0, o.terms = (i & 4) != 0 ? 1 : 3;
    o.vector = pick(1, 4), o.stages = pick(1, 2, 3);
    o.layout_a = pick("", o.m_first ? "xor:4,4,2" : "xor:8,2,2", o.m_first ? "pad:4" : "pad:8");
    o.layout_b = pick("", o.k_first ? "xor:8,2,2" : "xor:4,4,2", "pad:8");
    const auto m = o.bm + static_cast<int64_t>(rng() % 50), n = o.bn + static_cast<int64_t>(rng() % 50),
               k = static_cast<int64_t>(1 + rng() % 100);
    o.stages = std::min(o.stages, (k + o.bk - 1) / o.bk + 1);
    SCOPED_TRACE(str("number ", i, ": ", m, "x", n, "x", k));
    const Program math = float_product(o, m, n, k);
    const Schedule s = warp_product(math, o);
    ASSERT_FALSE(s.refused()) << s.finish().message() << "\n" << s.trace();
    const Result<GpuProgram> gpu = lowered(s);
    ASSERT_TRUE(gpu) << gpu.message() << "\n" << s.trace();
    ASSERT_EQ(verdict(*gpu, math, rng()), "") << to_text(*gpu);
  }
}

// The loops of an ordinary product are not what these instructions do.
TEST(WarpTiles, AProductOfFloat32IsNotOneOfTf32) {
  const WarpTiles o{.terms = 3};
  WarpTiles plain = o, one = o;
  plain.terms = 0, one.terms = 1;
  EXPECT_FALSE(warp_product(float_product(o, 64, 64, 64), o).refused());
  EXPECT_THAT(warp_product(float_product(plain, 64, 64, 64), o).finish().message(),
              HasSubstr("mma.tf32x3.mk.kn does "));
  EXPECT_THAT(warp_product(float_product(one, 64, 64, 64), o).finish().message(),
              HasSubstr("mma.tf32x3.mk.kn does "));
}

// A statement is two mma.sync for each term, and the loop spills no register. A warp has 64 x 16 sums, 4 x 2
// tiles, over two steps.
TEST(WarpTiles, ProductsOfFloat32CompileToTensorCoreInstructions) {
  if (const Status there = nvrtc_available(); !there) GTEST_SKIP() << there.message();
  // Loads that the assembler puts before asynchronous copies, guarded by what is never true.
  constexpr int kNeverRun = 3;
  for (const char* const arch : {"sm_80", "sm_90a"})
    for (int form = 0; form < 4; ++form)
      for (const int terms : {1, 3}) {
        SCOPED_TRACE(str("form ", form, ", ", terms, " terms, ", arch));
        const bool m_first = (form & 1) != 0, k_first = (form & 2) != 0;
        const WarpTiles o{.bm = 128,
                          .bn = 64,
                          .bk = 32,
                          .warps_m = 2,
                          .warps_n = 4,
                          .k_first = k_first,
                          .m_first = m_first,
                          .terms = terms,
                          .stages = 2,
                          .vector = 4,
                          .layout_a = m_first ? "xor:4,8" : "xor:8,4",
                          .layout_b = k_first ? "xor:8,4" : "xor:4,8"};
        const auto scheduled = warp_product(float_product(o, 512, 512, 512), o).finish();
        ASSERT_TRUE(scheduled) << scheduled.message();
        const auto artifact = compile_cuda(*scheduled, parse_target(str("cuda -arch=", arch)).value(),
                                           {.max_spill_bytes = 64, .static_filter = false});
        ASSERT_TRUE(artifact) << artifact.message();
        const auto codes = sass::read_kernel_code(artifact->binary);
        ASSERT_TRUE(codes) << codes.message();
        EXPECT_TRUE(codes->front().unknown.empty());
        const sass::Mix& loop = codes->front().hot_mix();
        EXPECT_EQ(loop[sass::Op::kMma], 4 * 2 * 2 * 2 * terms);
        EXPECT_EQ(loop[sass::Op::kLdsm], 2 * ((m_first ? 4 * 2 : 0) + (k_first ? 0 : 2)));
        EXPECT_EQ(loop[sass::Op::kLds32] - kNeverRun, 2 * ((m_first ? 0 : 4 * 8) + (k_first ? 2 * 4 : 0)));
        EXPECT_EQ(loop[sass::Op::kLocalLoad] + loop[sass::Op::kLocalStore], 0)
            << "fragments stay in registers";
      }
}

// A warp of 64 x 32 sums over 32 terms: 4 x 4 tiles, two steps; its operands in 4 and 2 loads a step.
TEST(WarpTiles, CompileToTensorCoreInstructions) {
  if (const Status there = nvrtc_available(); !there) GTEST_SKIP() << there.message();
  for (const bool k_first : {true, false})
    for (const DType t : {DType::kBFloat16, DType::kFloat16})
      for (const char* const arch : {"sm_80", "sm_90a"}) {
        SCOPED_TRACE(str(dtype_name(t), k_first ? " kn on " : " nk on ", arch));
        const WarpTiles o{.bm = 128,
                          .bn = 128,
                          .bk = 32,
                          .warps_m = 2,
                          .warps_n = 4,
                          .k_first = k_first,
                          .vector = 8,
                          .layout_a = "pad:8",
                          .layout_b = "pad:8"};
        const auto scheduled = warp_product(half_product(t, 512, 512, 512, k_first), o).finish();
        ASSERT_TRUE(scheduled) << scheduled.message();
        const auto artifact = compile_cuda(*scheduled, parse_target(str("cuda -arch=", arch)).value(),
                                           {.max_spill_bytes = 0, .static_filter = false});
        ASSERT_TRUE(artifact) << artifact.message();
        const auto codes = sass::read_kernel_code(artifact->binary);
        ASSERT_TRUE(codes) << codes.message();
        ASSERT_EQ(codes->size(), 1u);
        EXPECT_TRUE(codes->front().unknown.empty());
        EXPECT_EQ(codes->front().mix[sass::Op::kMma], 4 * 4 * 2);
        EXPECT_EQ(codes->front().mix[sass::Op::kLdsm], (4 + 2) * 2);
        EXPECT_EQ(codes->front().mix[sass::Op::kLocalLoad], 0) << "fragments stay in registers";
        EXPECT_EQ(codes->front().mix[sass::Op::kLdg128], 2) << "one for each operand, eight elements at once";
        EXPECT_EQ(codes->front().mix[sass::Op::kSts128], 2);
      }
}

TEST(WarpTiles, PipelinesCompileToAsynchronousCopies) {
  if (const Status there = nvrtc_available(); !there) GTEST_SKIP() << there.message();
  for (const char* const arch : {"sm_80", "sm_90a"})
    for (const int64_t stages : {3, 4}) {
      SCOPED_TRACE(str(stages, " stages on ", arch));
      const WarpTiles o{.bm = 128,
                        .bn = 128,
                        .bk = 32,
                        .warps_m = 2,
                        .warps_n = 4,
                        .k_first = false,
                        .stages = stages,
                        .unroll_stages = stages == 4,
                        .vector = 8,
                        .layout_a = "xor:8,4",
                        .layout_b = "xor:8,4"};
      const auto scheduled = warp_product(half_product(DType::kBFloat16, 512, 512, 512, false), o).finish();
      ASSERT_TRUE(scheduled) << scheduled.message();
      const auto artifact = compile_cuda(*scheduled, parse_target(str("cuda -arch=", arch)).value(),
                                         {.max_spill_bytes = 0, .static_filter = false});
      ASSERT_TRUE(artifact) << artifact.message();
      const auto codes = sass::read_kernel_code(artifact->binary);
      ASSERT_TRUE(codes) << codes.message();
      const sass::KernelCode& code = codes->front();
      EXPECT_TRUE(code.unknown.empty());
      EXPECT_EQ(code.mix[sass::Op::kLdg128], 0) << "no copy through registers";
      const sass::Mix& loop = code.hot_mix();
      const int steps = static_cast<int>(o.unroll_stages ? stages : 1);
      EXPECT_EQ(loop[sass::Op::kMma], 32 * steps);
      EXPECT_EQ(loop[sass::Op::kLdsm], 12 * steps);
      EXPECT_EQ(loop[sass::Op::kLdgsts], 4 * steps) << "of 16 bytes: two for each operand";
      EXPECT_EQ(loop[sass::Op::kBarrier], steps);
      if (o.unroll_stages) {
        EXPECT_GE(loop.mma_share(), 0.45) << sass::to_text(code);
      }
    }
}

// Below sm_80 there is neither: said before anything is compiled.
TEST(WarpTiles, OlderArchitecturesAreRefused) {
  const Program math = half_product(DType::kBFloat16, 32, 32, 64, true);
  const auto tiles = lowered(warp_product(math, {}));
  ASSERT_TRUE(tiles) << tiles.message();
  const auto refused = [](const GpuProgram& p, const char* arch) {
    return cuda::compile_kernels(p, *parse_target(str("cuda -arch=", arch)), {}).message();
  };
  EXPECT_THAT(refused(*tiles, "sm_75"),
              ::testing::MatchesRegex("kernel product: [a-z0-9.]* need sm_80 or later, found sm_75"));
  GpuProgram copies = *tiles;
  copies.kernels[0].body = make_seq({make_async_commit(), make_async_wait(0)});
  EXPECT_EQ(refused(copies, "sm_70"), "kernel product: asynchronous copies need sm_80 or later, found sm_70");
}

// All stages are on their way, one more than without; the fragments of the next step are there before this
// one's are used up.
TEST(WarpTiles, FragmentsAreLoadedAheadOverTheBarrier) {
  const Program math = half_product(DType::kBFloat16, 32, 32, 256, true);
  const Schedule s = warp_product(math, {.bk = 64, .stages = 3, .ahead = true, .vector = 8});
  ASSERT_FALSE(s.refused()) << s.finish().message();
  const Result<GpuProgram> gpu = lowered(s);
  ASSERT_TRUE(gpu) << gpu.message() << to_text(s.program());
  const std::string text = to_text(*gpu);
  EXPECT_THAT(text, HasSubstr("allocate a.packed.fragment bfloat16[2, 1, 1, 16] register"));
  EXPECT_THAT(text, HasSubstr("      async commit\n"
                              "      async wait 2\n"
                              "      barrier shared\n"
                              "      unrolled i2.outer in 0..2\n"
                              "        ldmatrix.bfloat16.mk(a.packed.fragment[0, 0, 0, i2.outer*8], "
                              "a.packed[0, 0, 0, i2.outer*16, 0])\n"));
  EXPECT_THAT(text, HasSubstr("        async wait 1\n"
                              "        barrier shared\n"
                              "        if k.outer < 3\n"
                              "          unrolled i2.outer in 0..2\n"
                              "            ldmatrix.bfloat16.mk(a.packed.fragment[0, 0, 0, i2.outer*8], "
                              "a.packed[(k.outer + 1)%3, 0, 0, i2.outer*16, 0])\n"));
  EXPECT_THAT(text, HasSubstr("        if k.outer < 1\n"
                              "          async copy\n"))
      << "copies of iteration k + 3";
  EXPECT_EQ(statements(*gpu, StmtKind::kBarrier), 4) << "one before the loop, one in it, one before the sums "
                                                        "come where the tiles were, one before they are read";
  EXPECT_EQ(verdict(*gpu, math), "");
  const Result<Program> again = replay(math, s.trace());
  ASSERT_TRUE(again) << again.message();
  EXPECT_EQ(to_text(*again), to_text(*s.finish()));
}

TEST(WarpTiles, WhatCannotBeLoadedAheadIsRefused) {
  const Program math = half_product(DType::kBFloat16, 32, 32, 256, true);
  const auto refused = [&](const WarpTiles& o) {
    const Result<Program> p = warp_product(math, o).finish();
    return p.is_ok() ? std::string("accepted") : p.message();
  };
  EXPECT_THAT(
      refused({.bk = 32, .ahead = true}),
      HasSubstr("load_ahead({a.packed.fragment, b.packed.fragment}, k.inner.outer): k.inner.outer is not the "
                "end of a pipelined loop's iteration; pipeline() first"));
  EXPECT_THAT(refused({.bk = 48, .stages = 2, .ahead = true, .vector = 8}),
              HasSubstr("k.inner.outer has 3 steps; two sets of fragments take turns, so it must be even"));
  Schedule s = warp_product(math, {.bk = 32, .stages = 2, .vector = 8});
  s.load_ahead({s.tensor("a.packed")}, s.axis("k.inner.outer"));
  EXPECT_THAT(s.finish().message(),
              HasSubstr("only fragments are loaded ahead; cache_read(..., fragment) first"));
  Schedule one = warp_product(math, {.bk = 32, .stages = 2, .vector = 8});
  one.load_ahead({one.tensor("a.packed.fragment")}, one.axis("k.inner.outer"));
  EXPECT_THAT(one.finish().message(), HasSubstr("b.packed.fragment is computed in k.inner.outer too"));
}

// A block reaches beyond the product on two sides.
TEST(WarpTiles, ProductsSmallerThanABlockAreRight) {
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{10, 40}, {40, 10}, {10, 10}, {2, 3}}) {
    const Program math = half_product(DType::kBFloat16, m, n, 40, true);
    const auto gpu = lowered(warp_product(math, {}));
    ASSERT_TRUE(gpu) << gpu.message();
    EXPECT_EQ(verdict(*gpu, math), "") << m << "x" << n;
  }
}

TEST(WarpTiles, WhatDoesNotFitIsRefused) {
  const auto refusal = [](const WarpTiles& o, DType t = DType::kBFloat16) {
    const auto scheduled = warp_product(half_product(t, 64, 64, 64, true), o).finish();
    if (!scheduled) return scheduled.status().message();
    return lower_gpu(*scheduled).status().message();
  };
  EXPECT_EQ(refusal({}), "");
  EXPECT_THAT(refusal({.bk = 24}), HasSubstr("every tile is full"));
  EXPECT_THAT(refusal({.layout_a = "pad:4"}), HasSubstr("takes 8 elements of a.packed at a time"));
  EXPECT_THAT(refusal({.layout_c = "pad:1"}), HasSubstr("takes 2 elements of acc at a time"));
  EXPECT_EQ(refusal({.stages = 3, .vector = 8}), "");
  EXPECT_THAT(refusal({.bk = 64, .stages = 3}),
              HasSubstr("k.outer has 1 iterations; 3 stages need at least 2"));
  EXPECT_THAT(refusal({.stages = 1000}), HasSubstr("stages must be in 2..16, found 1000"));
  // One element of 16 bits at a time: no instruction copies that asynchronously.
  const auto one = warp_product(half_product(DType::kBFloat16, 64, 64, 64, true), {.stages = 2}).finish();
  ASSERT_TRUE(one) << one.message();
  EXPECT_THAT(cuda::check_printable(lower_gpu(*one).value()).message(),
              HasSubstr("copies 2 bytes at a time; expected 4, 8 or 16"));

  // A fragment that loops touch, and lanes that are not threadIdx.x.
  Schedule plain(half_product(DType::kBFloat16, 16, 8, 16, true));
  const Tensor acc = plain.tensor("acc");
  plain.set_scope(acc, MemoryScope::kFragment);
  const auto [i, j] = plain.axes<2>(plain.tensor("out"));
  plain.bind(i, LoopKind::kBlockX);
  plain.compute_at(acc, i);
  const auto scheduled = plain.finish();
  ASSERT_TRUE(scheduled) << scheduled.message();
  EXPECT_THAT(lower_gpu(*scheduled).status().message(), HasSubstr("only intrinsics read and write"));
}

}  // namespace
}  // namespace tuner
