// Tensor cores: which lane holds what, against the words of the PTX manual; schedules of products by tiles of a warp, lowered, emulated
// and compiled; damage that the emulator has to see.
#include <gmock/gmock.h>

#include <functional>
#include <random>
#include <tuple>

#include "compiler_core/base/elements.h"
#include "compiler_core/codegen/emulated_run.h"
#include "compiler_core/codegen/reference.h"
#include "compiler_core/codegen_cuda/compile.h"
#include "compiler_core/codegen_cuda/cuda.h"
#include "compiler_core/codegen_cuda/sass/sass.h"
#include "compiler_core/codegen_cuda/sass/sass_text.h"
#include "compiler_core/ir/intrinsic.h"
#include "compiler_core/ir/visitor.h"
#include "compiler_core/lower/gpu.h"
#include "compiler_core/oracle/oracle.h"
#include "tests/compiler_core/warp_tile_schedules.h"
#include "tests/random_seed.h"

namespace tuner {
namespace {

using testing::half_product;
using ::testing::HasSubstr;
using testing::warp_product;
using testing::WarpTiles;

std::pair<int64_t, int64_t> at(const IntrinsicOperand& o, int64_t lane, int64_t reg) {
  std::pair<int64_t, int64_t> place;
  const std::vector<Expr> indices = o.layout(Expr(lane), Expr(reg));
  EXPECT_EQ(indices.size(), 2u);
  EXPECT_TRUE(is_const_int(simplify(indices[0]), &place.first));
  EXPECT_TRUE(is_const_int(simplify(indices[1]), &place.second));
  return place;
}

// "Matrix Fragments for mma.m16n8k16 with floating point type", with the manual's own conditions.
TEST(WarpTiles, FragmentsLieAsTheManualSays) {
  const Intrinsic& mma = *find_intrinsic("mma.bfloat16.mk.kn");
  for (int64_t lane = 0; lane < 32; ++lane) {
    const int64_t group = lane >> 2, in_group = lane % 4;
    for (int64_t i = 0; i < 8; ++i) {
      const int64_t row = (i < 2 || (i >= 4 && i < 6)) ? group : group + 8;
      const int64_t column = i < 4 ? in_group * 2 + (i & 1) : in_group * 2 + (i & 1) + 8;
      EXPECT_EQ(at(mma.operands[1], lane, i), std::pair(row, column)) << "a" << i << " of lane " << lane;
    }
    for (int64_t i = 0; i < 4; ++i) {
      const int64_t row = i < 2 ? in_group * 2 + (i & 1) : in_group * 2 + (i & 1) + 8;
      EXPECT_EQ(at(mma.operands[2], lane, i), std::pair(row, group)) << "b" << i << " of lane " << lane;
      EXPECT_EQ(at(find_intrinsic("mma.bfloat16.mk.nk")->operands[2], lane, i), std::pair(group, row));
      EXPECT_EQ(at(mma.operands[0], lane, i), std::pair(i < 2 ? group : group + 8, in_group * 2 + (i & 1)))
          << "c" << i << " of lane " << lane;
    }
  }
}

// "Matrix Fragments for mma.m16n8k32", with the manual's own conditions: .u8 and .s8.
TEST(WarpTiles, FragmentsOfBytesLieAsTheManualSays) {
  const Intrinsic& mma = *find_intrinsic("mma.uint8.int8.mk.nk");
  for (int64_t lane = 0; lane < 32; ++lane) {
    const int64_t group = lane >> 2, in_group = lane % 4;
    for (int64_t i = 0; i < 16; ++i) {
      const int64_t row = i < 4 || (i >= 8 && i < 12) ? group : group + 8;
      const int64_t column = in_group * 4 + (i & 3) + (i < 8 ? 0 : 16);
      EXPECT_EQ(at(mma.operands[1], lane, i), std::pair(row, column)) << "a" << i << " of lane " << lane;
    }
    for (int64_t i = 0; i < 8; ++i) {
      const int64_t row = in_group * 4 + (i & 3) + (i < 4 ? 0 : 16);
      EXPECT_EQ(at(mma.operands[2], lane, i), std::pair(group, row)) << "b" << i << " of lane " << lane;
    }
    for (int64_t i = 0; i < 4; ++i)
      EXPECT_EQ(at(mma.operands[0], lane, i), std::pair(i < 2 ? group : group + 8, in_group * 2 + (i & 1)));
  }
}

// "Matrix Fragments for mma.m16n8k8", .tf32, with the manual's own conditions: registers 4 to 7 of A, 2 and 3 of B are those of the
// second mma, 8 terms behind.
TEST(WarpTiles, FragmentsOfTf32LieAsTheManualSays) {
  for (const std::string name : {"mma.tf32", "mma.tf32x3"}) {
    const Intrinsic &mma = *find_intrinsic(name + ".mk.kn"), &turned = *find_intrinsic(name + ".km.nk");
    EXPECT_EQ(mma.operands[1].registers, 8);
    EXPECT_EQ(mma.operands[2].registers, 4);
    for (int64_t lane = 0; lane < 32; ++lane) {
      const int64_t group = lane >> 2, in_group = lane % 4;
      for (int64_t step = 0; step < 2; ++step) {
        for (int64_t i = 0; i < 4; ++i) {
          const int64_t row = i == 0 || i == 2 ? group : group + 8;
          const int64_t column = (i < 2 ? in_group : in_group + 4) + 8 * step;
          EXPECT_EQ(at(mma.operands[1], lane, 4 * step + i), std::pair(row, column)) << "a" << i;
          EXPECT_EQ(at(turned.operands[1], lane, 4 * step + i), std::pair(column, row)) << "a" << i;
        }
        for (int64_t i = 0; i < 2; ++i) {
          const int64_t row = (i == 0 ? in_group : in_group + 4) + 8 * step;
          EXPECT_EQ(at(mma.operands[2], lane, 2 * step + i), std::pair(row, group)) << "b" << i;
          EXPECT_EQ(at(turned.operands[2], lane, 2 * step + i), std::pair(group, row)) << "b" << i;
        }
      }
      for (int64_t i = 0; i < 4; ++i)
        EXPECT_EQ(at(mma.operands[0], lane, i), std::pair(i < 2 ? group : group + 8, in_group * 2 + (i & 1)));
    }
  }
}

// ldmatrix: thread 8 m + r brings row r of matrix m; afterwards register m of thread 4 r + c holds elements 2c and 2c + 1 of that row,
// with .trans elements r of rows 2c and 2c + 1.
TEST(WarpTiles, MatricesAreLoadedAsTheManualSays) {
  for (const char* const name :
       {"ldmatrix.bfloat16.mk", "ldmatrix.bfloat16.km", "ldmatrix.bfloat16.kn", "ldmatrix.bfloat16.nk",
        "ldmatrix.uint8.mk", "ldmatrix.int8.nk", "ldmatrix.float32.nk"}) {
    const Intrinsic& load = *find_intrinsic(name);
    const int64_t e = 4 / dtype_bytes(load.operands[0].dtype);  // elements of a register
    const bool transposed = load.cuda_helper.find(".trans") != std::string::npos;
    for (int64_t lane = 0; lane < 32; ++lane)
      for (int64_t reg = 0; reg < 4 * e; ++reg) {
        const int64_t matrix = reg / e, r = lane / 4, c = e * (lane % 4) + reg % e;
        const int64_t row = transposed ? c : r, element = transposed ? r : c;
        EXPECT_EQ(at(load.operands[0], lane, reg), at(load.operands[1], 8 * matrix + row, element))
            << name << ", register " << reg << " of lane " << lane;
      }
  }
}

// The tile of float32 takes two: four registers each.
TEST(WarpTiles, MatricesOfFloat32AreLoadedAsTheManualSays) {
  const Intrinsic& load = *find_intrinsic("ldmatrix.float32.mk");
  EXPECT_EQ(load.cuda, "load_matrices($0, $1);\nload_matrices($0 + 4, $1:4);");
  for (int64_t lane = 0; lane < 32; ++lane)
    for (int64_t reg = 0; reg < 8; ++reg)
      EXPECT_EQ(at(load.operands[0], lane, reg),
                at(load.operands[1], 8 * (reg % 4) + lane / 4, reg / 4 * 4 + lane % 4))
          << "register " << reg << " of lane " << lane;
}

std::vector<std::vector<float>> random_operands(const Program& math, uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::vector<std::vector<float>> inputs;
  for (const Buffer& b : math.args) {
    if (b->role == BufferRole::kOutput) continue;
    inputs.emplace_back();
    for (int64_t i = 0; i < b->elements(); ++i) {
      const float x = static_cast<float>(rng() % 2001) / 1000 - 1;
      inputs.back().push_back(b->dtype == DType::kBFloat16  ? rounded_to_bfloat16(x)
                              : b->dtype == DType::kFloat16 ? rounded_to_float16(x)
                                                            : x);
    }
  }
  return inputs;
}

// "": every element is right and nothing was found; else what was.
std::string verdict(const GpuProgram& gpu, const Program& math, uint64_t seed = 1) {
  const std::vector<std::vector<float>> inputs = random_operands(math, seed);
  const auto expected = reference_answer(math, inputs);
  if (!expected) return expected.message();
  const auto run = run_emulated(gpu, inputs);
  if (!run) return run.message();
  if (!run->faults.empty()) return run->faults.front();
  for (size_t i = 0; i < expected->back().size(); ++i)
    if (!(std::abs(run->outputs.back()[i] - expected->back()[i]) <= 1e-4))
      return str("out ", i, " is ", run->outputs.back()[i], ", expected ", expected->back()[i]);
  return "";
}

Result<GpuProgram> lowered(const Schedule& s) {
  ASSIGN_OR_RETURN(const Program scheduled, s.finish());
  return lower_gpu(scheduled);
}

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

int statements(const GpuProgram& gpu, StmtKind kind) {
  int found = 0;
  visit(gpu.kernels[0].body, [&](const Stmt& s) { found += s->kind == kind ? 1 : 0; });
  return found;
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
  for (uint32_t i = 0; i < wanted_rounds(40); ++i) {
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

Program float_product(const WarpTiles& o, int64_t m, int64_t n, int64_t k) {
  return testing::tile_product(DType::kFloat32, m, n, k, o.m_first, o.k_first, o.terms);
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

// A statement is two mma.sync for each term, and the loop spills no register. A warp has 64 x 16 sums, 4 x 2 tiles,
// over two steps.
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

// Kernels as lowered, with one statement changed.
GpuProgram damaged(const GpuProgram& gpu, const std::function<Stmt(const Stmt&)>& change) {
  const std::function<Stmt(const Stmt&)> rebuild = [&](const Stmt& s) -> Stmt {
    const Stmt mapped = map_children(
        s, [](const Expr& e) { return e; }, rebuild);
    return mapped == nullptr ? mapped : change(mapped);
  };
  GpuProgram result = gpu;
  for (GpuKernel& kernel : result.kernels) kernel.body = rebuild(kernel.body);
  return result;
}

TEST(WarpTiles, DamageIsSeen) {
  const Program math = half_product(DType::kBFloat16, 64, 64, 96, true);
  const auto gpu = lowered(warp_product(math, {.layout_a = "pad:8"}));
  ASSERT_TRUE(gpu) << gpu.message();
  ASSERT_EQ(verdict(*gpu, math), "");
  const int barriers = statements(*gpu, StmtKind::kBarrier);
  ASSERT_EQ(barriers, 3);
  for (int dropped = 0; dropped < barriers; ++dropped) {
    int n = 0;
    const GpuProgram bad = damaged(
        *gpu, [&](const Stmt& s) { return s->kind == StmtKind::kBarrier && n++ == dropped ? Stmt() : s; });
    EXPECT_THAT(verdict(bad, math), HasSubstr("race")) << "barrier " << dropped;
  }
  // Another intrinsic in the place of one.
  const auto renamed = [&](const char* from, const char* to) {
    return damaged(*gpu, [&](const Stmt& s) {
      if (s->kind != StmtKind::kIntrinsic || s->name != from) return s;
      auto node = std::make_shared<StmtNode>(*s);
      node->name = to;
      return Stmt(std::move(node));
    });
  };
  EXPECT_NE(verdict(renamed("ldmatrix.bfloat16.mk", "ldmatrix.bfloat16.kn"), math), "") << "wrong lanes";
  EXPECT_NE(verdict(renamed("ldmatrix.bfloat16.kn", "ldmatrix.bfloat16.nk"), math), "") << "not transposed";
  // An operand one tile aside, and one that begins one row below.
  for (const auto& [name, operand, by] :
       std::vector<std::tuple<std::string, size_t, int64_t>>{{"ldmatrix.bfloat16.mk", 1, 1},
                                                             {"mma.bfloat16.mk.kn", 2, 2},
                                                             {"mma.bfloat16.mk.kn", 0, 1},
                                                             {"mma.store", 1, 1}}) {
    const GpuProgram bad = damaged(*gpu, [&, name = name, operand = operand, by = by](const Stmt& s) {
      if (s->kind != StmtKind::kIntrinsic || s->name != name) return s;
      auto node = std::make_shared<StmtNode>(*s);
      std::vector<Expr> at = node->operands[operand]->operands;
      at.back() = at.back() + by;
      node->operands[operand] = load(node->operands[operand]->buffer, std::move(at));
      return Stmt(std::move(node));
    });
    EXPECT_NE(verdict(bad, math), "") << name << ", operand " << operand;
  }
  // Sums that do not begin at zero.
  const GpuProgram unset = damaged(*gpu, [](const Stmt& s) {
    return s->kind == StmtKind::kIntrinsic && s->name == "mma.zero" ? Stmt() : s;
  });
  EXPECT_THAT(verdict(unset, math), HasSubstr("uninitialised read"));
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

// Of float32: another load, an operand one register aside, terms left out.
TEST(WarpTiles, DamageToProductsOfFloat32IsSeen) {
  for (int form = 0; form < 4; ++form) {
    const WarpTiles o{.k_first = (form & 1) != 0, .m_first = (form & 2) != 0, .terms = 3};
    SCOPED_TRACE(str("form ", form));
    const Program math = float_product(o, 64, 64, 96);
    const auto gpu = lowered(warp_product(math, o));
    ASSERT_TRUE(gpu) << gpu.message();
    ASSERT_EQ(verdict(*gpu, math), "");
    const std::string of_a = o.m_first ? "mk" : "km", of_b = o.k_first ? "kn" : "nk";
    const std::string load_a = (o.m_first ? "ldmatrix.float32." : "mma.load.float32.") + of_a;
    const std::string load_b = (o.k_first ? "mma.load.float32." : "ldmatrix.float32.") + of_b;
    const std::string product = str("mma.tf32x3.", of_a, ".", of_b);
    for (const auto& [name, operand, by] :
         std::vector<std::tuple<std::string, size_t, int64_t>>{{load_a, 1, 4},
                                                               {load_b, 1, 4},
                                                               {load_a, 0, 8},
                                                               {load_b, 0, 4},
                                                               {product, 1, 1},
                                                               {product, 2, 1}}) {
      const GpuProgram bad = damaged(*gpu, [&, name = name, operand = operand, by = by](const Stmt& s) {
        if (s->kind != StmtKind::kIntrinsic || s->name != name) return s;
        auto node = std::make_shared<StmtNode>(*s);
        std::vector<Expr> at = node->operands[operand]->operands;
        at.back() = at.back() + by;
        node->operands[operand] = load(node->operands[operand]->buffer, std::move(at));
        return Stmt(std::move(node));
      });
      EXPECT_NE(verdict(bad, math), "") << name << ", operand " << operand;
    }
    const GpuProgram rounded = damaged(*gpu, [&](const Stmt& s) {
      if (s->kind != StmtKind::kIntrinsic || s->name != product) return s;
      auto node = std::make_shared<StmtNode>(*s);
      node->name = str("mma.tf32.", of_a, ".", of_b);
      return Stmt(std::move(node));
    });
    EXPECT_NE(verdict(rounded, math), "") << "one term in the place of three";
  }
}

// What can go wrong in a pipeline, each by itself.
TEST(WarpTiles, DamageToAPipelineIsSeen) {
  const Program math = half_product(DType::kBFloat16, 64, 64, 200, true);
  for (const int64_t stages : {2, 3, 4}) {
    SCOPED_TRACE(str(stages, " stages"));
    const auto gpu = lowered(warp_product(math, {.stages = stages, .vector = 8, .layout_a = "xor:8,4"}));
    ASSERT_TRUE(gpu) << gpu.message();
    ASSERT_EQ(verdict(*gpu, math), "");
    const auto without = [&](const char* what, int number) {
      int n = 0;
      return damaged(
          *gpu, [&, n](const Stmt& s) mutable { return is_async(*s, what) && n++ == number ? Stmt() : s; });
    };
    EXPECT_THAT(verdict(without("wait", 0), math), HasSubstr("copy under way")) << "no wait";
    const GpuProgram late =
        damaged(*gpu, [&](const Stmt& s) { return is_async(*s, "wait") ? make_async_wait(stages - 1) : s; });
    EXPECT_THAT(verdict(late, math), HasSubstr("copy under way")) << "waits for one group less";
    const int commits = static_cast<int>(stages);  // one each before the loop, one in it
    for (int i = 0; i < commits; ++i)
      EXPECT_NE(verdict(without("commit", i), math), "") << "commit " << i << " is missing";
    for (int i = 0; i < 2 * commits; ++i)
      EXPECT_NE(verdict(without("copy", i), math), "") << "copy " << i << " is missing";
    const auto without_barrier = [&](int number) {
      return damaged(*gpu, [number, n = 0](const Stmt& s) mutable {
        return s->kind == StmtKind::kBarrier && n++ == number ? Stmt() : s;
      });
    };
    EXPECT_THAT(verdict(without_barrier(0), math), HasSubstr("race")) << "no barrier behind the wait";
    // Of four stages the last step reads the third, where no sums come.
    if (stages < 4) {
      EXPECT_THAT(verdict(without_barrier(1), math), HasSubstr("which lies on"))
          << "sums come where tiles are still read";
    }
    // The sums on tiles that are needed still: at the begin of a step in place of the end of all.
    GpuProgram early = *gpu;
    for (size_t i = 0; i < early.kernels[0].shared.size(); ++i)
      if (early.kernels[0].shared[i]->name == "b.packed") early.kernels[0].shared_offsets[i] = 1024;
    EXPECT_NE(verdict(early, math), "") << "two tiles lie on each other";

    // Another stage: of the copies in the loop, of the loads.
    const auto aside = [&](const std::vector<Expr>& indices) {
      std::vector<Expr> at = indices;
      at[0] = floor_mod(at[0] + 1, stages);
      return at;
    };
    const GpuProgram copied_aside = damaged(*gpu, [&](const Stmt& s) {
      if (s->kind != StmtKind::kStore || s->buffer->name != "a.packed" || is_const_int(s->indices[0]))
        return s;
      return make_store(s->buffer, aside(s->indices), s->value);
    });
    EXPECT_NE(verdict(copied_aside, math), "") << "copied into another stage";
    const GpuProgram read_aside = damaged(*gpu, [&](const Stmt& s) {
      if (s->kind != StmtKind::kIntrinsic || s->name != "ldmatrix.bfloat16.kn") return s;
      auto node = std::make_shared<StmtNode>(*s);
      node->operands[1] = load(node->operands[1]->buffer, aside(node->operands[1]->operands));
      return Stmt(std::move(node));
    });
    EXPECT_NE(verdict(read_aside, math), "") << "another stage is read";

    // A swizzle on one side only, and zeros that are not written.
    const GpuProgram swizzled = damaged(*gpu, [&](const Stmt& s) {
      if (s->kind != StmtKind::kStore || s->buffer->name != "a.packed") return s;
      std::vector<Expr> at = s->indices;
      at.back() = floor_mod(at.back() + 8, 32);
      return make_store(s->buffer, at, s->value);
    });
    EXPECT_NE(verdict(swizzled, math), "") << "one-sided swizzle";
    const GpuProgram unpadded = damaged(*gpu, [&](const Stmt& s) {
      if (s->kind != StmtKind::kStore || s->value->kind != ExprKind::kSelect) return s;
      return make_store(s->buffer, s->indices, s->value->operands[1]);
    });
    EXPECT_THAT(verdict(unpadded, math), HasSubstr("out of bounds")) << "zero fill dropped";
  }
}

// All stages are on their way, one more than without; the fragments of the next step are there before this one's are used up.
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

TEST(WarpTiles, DamageToFragmentsLoadedAheadIsSeen) {
  const Program math = half_product(DType::kBFloat16, 64, 64, 200, true);
  for (const int64_t stages : {2, 3, 4}) {
    SCOPED_TRACE(str(stages, " stages"));
    const auto gpu =
        lowered(warp_product(math, {.stages = stages, .ahead = true, .vector = 8, .layout_a = "xor:8,4"}));
    ASSERT_TRUE(gpu) << gpu.message();
    ASSERT_EQ(verdict(*gpu, math), "");
    const auto without = [&](const char* what, int number) {
      return damaged(*gpu, [what, number, n = 0](const Stmt& s) mutable {
        return is_async(*s, what) && n++ == number ? Stmt() : s;
      });
    };
    for (const int wait : {0, 1})
      EXPECT_THAT(verdict(without("wait", wait), math), HasSubstr("copy under way")) << "wait " << wait;
    const GpuProgram late = damaged(*gpu, [&](const Stmt& s) {
      int64_t groups = 0;
      if (!is_async(*s, "wait") || !is_const_int(s->operands[0], &groups)) return s;
      return make_async_wait(groups + 1);
    });
    EXPECT_THAT(verdict(late, math), HasSubstr("copy under way")) << "waits for one group less";
    const int commits = static_cast<int>(stages) + 1;  // one each before the loop, one in it
    for (int i = 0; i < commits; ++i)
      EXPECT_NE(verdict(without("commit", i), math), "") << "commit " << i << " is missing";
    for (int i = 0; i < 2 * commits; ++i)
      EXPECT_NE(verdict(without("copy", i), math), "") << "copy " << i << " is missing";
    for (const int barrier : {0, 1})
      EXPECT_THAT(verdict(damaged(*gpu,
                                  [barrier, n = 0](const Stmt& s) mutable {
                                    return s->kind == StmtKind::kBarrier && n++ == barrier ? Stmt() : s;
                                  }),
                          math),
                  HasSubstr("race"))
          << "barrier " << barrier;
    // The other set of fragments is multiplied.
    const GpuProgram other = damaged(*gpu, [&](const Stmt& s) {
      if (s->kind != StmtKind::kIntrinsic || s->name != "mma.bfloat16.mk.kn") return s;
      auto node = std::make_shared<StmtNode>(*s);
      std::vector<Expr> at = node->operands[1]->operands;
      at[0] = 1 - at[0];
      node->operands[1] = load(node->operands[1]->buffer, std::move(at));
      return Stmt(std::move(node));
    });
    EXPECT_NE(verdict(other, math), "") << "fragments of another step";
  }
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
