// matmul_cpu: when it applies, its loops, and random configs on odd shapes against the oracle.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "templates/registry/registry.h"
#include "tests/templates/template_check.h"

namespace tuner {
namespace {

MatmulWorkload matmul(int64_t m, int64_t n, int64_t k) {
  MatmulWorkload w;
  w.m = m;
  w.n = n;
  w.k = k;
  return w;
}

TEST(MatmulCpu, DeclinesWithTheReason) {
  Target gpu;
  gpu.family = &cuda_family();
  gpu.arch = "sm_90a";
  EXPECT_EQ(matmul_cpu().supports(matmul(4, 4, 4), gpu).reason, "needs a CPU target, got " + gpu.name());
  EXPECT_EQ(matmul_cpu().supports(Conv2dWorkload{}, cpu(256, 16)).reason, "serves matmul, got conv2d");
  EXPECT_TRUE(matmul_cpu().supports(matmul(4, 4, 4), cpu(256, 16)).yes);
}

TEST(MatmulCpu, TilesAskForTheNextPanelOfALargeConstant) {
  MatmulWorkload w = matmul(20, 2048, 512);
  w.constant = {"b"};
  const auto instance = matmul_cpu().apply(w, cpu(256, 16));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const auto program =
      (*instance)->instantiate(*config_from_text("block_k=0 block_m=0 narrow_panels=0 next_panel=1 pack_a=0 "
                                                 "pack_b=1 prefetch_b=0 tile_m=4 tile_n=16 unroll_k=2"));
  ASSERT_TRUE(program.is_ok()) << program.message();
  EXPECT_THAT(to_text(*program), ::testing::HasSubstr("prefetch.l2(b.packed[j.outer + 1, "));
  MatmulWorkload small = w;  // a b that stays in the cache is not asked for
  small.n = 32;
  EXPECT_EQ((*matmul_cpu().apply(small, cpu(256, 16)))
                ->instantiate(
                    *config_from_text("block_k=0 block_m=0 narrow_panels=0 next_panel=1 pack_a=0 pack_b=1 "
                                      "prefetch_b=0 tile_m=4 tile_n=16 unroll_k=2"))
                .status()
                .code(),
            StatusCode::kInvalidConfig);
}

TEST(MatmulCpu, LoopsOfOneConfig) {
  MatmulWorkload w = matmul(20, 60, 9);
  w.bias = true;
  w.activation = Activation::kRelu;
  w.constant = {"b"};
  const auto instance = matmul_cpu().apply(w, cpu(256, 16));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const auto program =
      (*instance)->instantiate(*config_from_text("block_k=0 block_m=2 narrow_panels=0 next_panel=0 pack_a=0 "
                                                 "pack_b=1 prefetch_b=0 tile_m=4 tile_n=16 unroll_k=2"));
  ASSERT_TRUE(program.is_ok()) << program.message();
  ASSERT_NE(program->packing, nullptr);
  EXPECT_EQ("\n" + to_text(*program), R"(
kernel matmul(input a float32[20, 9], packed b.packed float32[4, 9, 16], input bias float32[60], output out float32[20, 60])
  for i.outer.outer in 0..3
    for j.outer in 0..4
      for i.outer.inner in 0..2
        if i.outer.outer*2 + i.outer.inner < 5
          allocate acc float32[4, 16] register
          unrolled i.init in 0..4
            unrolled j.outer.init in 0..2
              vectorized j.inner.init in 0..8
                acc[i.init, j.outer.init*8 + j.inner.init] = 0
          reduce k.outer in 0..5
            unrolled reduce k.inner in 0..2
              if k.outer*2 + k.inner < 9
                unrolled i in 0..4
                  unrolled j.outer_1 in 0..2
                    vectorized j.inner in 0..8
                      acc[i, j.outer_1*8 + j.inner] += a[i.outer.outer*8 + i.outer.inner*4 + i, k.outer*2 + k.inner] * b.packed[j.outer, k.outer*2 + k.inner, j.outer_1*8 + j.inner]
          unrolled i.inner in 0..4
            unrolled j.inner.outer in 0..2
              vectorized j.inner.inner in 0..8
                if j.outer*16 + j.inner.outer*8 + j.inner.inner < 60
                  out[i.outer.outer*8 + i.outer.inner*4 + i.inner, j.outer*16 + j.inner.outer*8 + j.inner.inner] = max(acc[i.inner, j.inner.outer*8 + j.inner.inner] + bias[j.outer*16 + j.inner.outer*8 + j.inner.inner], 0)
packing matmul_pack(constant b float32[9, 60], packed b.packed float32[4, 9, 16])
  for p0 in 0..4
    for p1 in 0..9
      for p2 in 0..16
        b.packed[p0, p1, p2] = select(p0*16 + p2 < 60, b[p1, p0*16 + p2], 0)
)");
}

TEST(MatmulCpu, RefusesAConfigOfAnotherSpace) {
  const auto instance = matmul_cpu().apply(matmul(20, 60, 9), cpu(256, 16));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const auto refused =
      (*instance)->instantiate(*config_from_text("block_k=0 block_m=0 narrow_panels=0 next_panel=0 pack_a=0 "
                                                 "pack_b=1 prefetch_b=0 tile_m=10 tile_n=16 unroll_k=1"));
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidConfig);
  EXPECT_EQ(
      refused.message(),
      "matmul_cpu: constraint tile_m * (tile_n / 8) + tile_n / 8 + 1 <= 16 does not hold for block_k=0 "
      "block_m=0 narrow_panels=0 next_panel=0 pack_a=0 pack_b=1 prefetch_b=0 tile_m=10 tile_n=16 unroll_k=1");
}

TEST(MatmulCpu, ScheduleReplaysFromItsText) {
  MatmulWorkload w = matmul(20, 60, 9);
  w.transpose_a = true;
  const auto instance = matmul_cpu().apply(w, cpu(256, 16, 2));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const Config config = (*instance)->space().at((*instance)->space().first_index());
  const auto program = (*instance)->instantiate(config);
  const auto text = (*instance)->schedule_text(config);
  ASSERT_TRUE(program.is_ok() && text.is_ok()) << program.message() << text.message();
  const auto again = replay(Workload(w).compute(), *text);
  ASSERT_TRUE(again.is_ok()) << again.message();
  EXPECT_EQ(to_text(*again), to_text(*program));
}

TEST(MatmulCpu, DefaultIsValidForAnyShape) {
  for (const Target& t : {cpu(128, 16), cpu(256, 16), cpu(512, 32)})
    for (const int64_t m : {1, 2, 3, 5, 7, 127, 1024})
      for (const int64_t n : {1, 13, 16, 255, 4096})
        for (const int64_t k : {1, 2, 3, 1000}) {
          const auto instance = matmul_cpu().apply(matmul(m, n, k), t);
          ASSERT_TRUE(instance.is_ok()) << instance.message();
          EXPECT_GE((*instance)->space().size(), 1u);
        }
}

TEST(MatmulCpu, RandomConfigsOnOddShapes) {
  for (const auto& w :
       {matmul(1, 1, 1), matmul(7, 13, 29), matmul(1, 40, 9), matmul(33, 1, 5), matmul(20, 50, 3)}) {
    expect_configs_right(matmul_cpu(), w, cpu(256, 16), 12, 1);
    expect_configs_right(matmul_cpu(), w, cpu(512, 32), 12, 2);
    expect_configs_right(matmul_cpu(), w, cpu(512, 32, /*threads=*/2), 12, 3);
  }
}

TEST(MatmulCpu, EveryOperandForm) {
  for (int form = 0; form < 128; ++form) {
    MatmulWorkload w = matmul(9, 37, 6);
    w.transpose_a = (form & 1) != 0;
    w.transpose_b = (form & 2) != 0;
    w.bias = (form & 4) != 0;
    w.activation = (form & 8) != 0 ? Activation::kRelu : Activation::kNone;
    if ((form & 16) != 0) w.constant = {"b"};
    w.batch = (form & 32) != 0 ? 3 : 1;
    w.residual = (form & 64) != 0;
    expect_configs_right(matmul_cpu(), w, cpu(256, 16, 1 + form % 2), 3, static_cast<uint64_t>(form));
  }
}

TEST(MatmulCpu, ConstantAIsPackedAhead) {
  MatmulWorkload w = matmul(9, 17, 6);
  w.constant = {"a", "b"};
  expect_configs_right(matmul_cpu(), w, cpu(256, 16), 12, 5);
}

TEST(MatmulCpu, BlocksOfKWithEveryPacking) {
  for (int form = 0; form < 32; ++form) {
    MatmulWorkload w = matmul(11, 21, 512);
    Target small_l2 = cpu(256, 16, 1 + form / 2 % 2);
    small_l2.l2_bytes = 32 << 10;
    w.transpose_a = (form & 1) != 0;
    w.transpose_b = (form & 2) != 0;
    w.bias = (form & 4) != 0;
    w.residual = (form & 8) != 0;
    if ((form & 16) != 0) w.constant = {"b"};
    w.batch = 1 + form % 2;
    expect_configs_right(matmul_cpu(), w, small_l2, 6, static_cast<uint64_t>(form));
  }
}

TEST(MatmulCpu, LargerShapeOnce) {
  expect_configs_right(matmul_cpu(), matmul(127, 255, 3), cpu(512, 32), 3, 6);
}

// Sums, one vector of each column and a broadcast: what a tile needs, of what the CPU has.
TEST(MatmulCpu, EveryTileFitsTheRegisters) {
  for (const auto& [bits, registers] : {std::pair{512, 32}, {256, 16}, {128, 16}}) {
    const auto instance = matmul_cpu().apply(matmul(96, 256, 64), cpu(bits, registers));
    ASSERT_TRUE(instance.is_ok()) << instance.message();
    std::mt19937_64 rng(5);
    int64_t most = 0;
    for (int i = 0; i < 3000; ++i) {
      const Config c = (*instance)->space().at((*instance)->space().sample(rng));
      const int64_t vectors = c.at("tile_n") / (bits / 32);
      most = std::max(most, c.at("tile_m") * vectors + vectors + 1);
    }
    EXPECT_LE(most, registers);
    EXPECT_GE(most, registers - 2) << "no register is left unused for nothing";
  }
}

}  // namespace
}  // namespace tuner
