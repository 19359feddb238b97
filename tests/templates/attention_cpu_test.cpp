// attention_cpu: when it applies, its loops, and random configs on odd shapes against the oracle and as
// machine code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "templates/registry/registry.h"
#include "tests/templates/attention_workloads.h"
#include "tests/templates/compiled_template_check.h"

namespace tuner {
namespace {

TEST(AttentionCpu, DeclinesWithTheReason) {
  const Target gpu = parse_target("cuda -arch=sm_80").value();
  EXPECT_EQ(attention_cpu().supports(AttentionWorkload{}, gpu).reason,
            "needs a CPU target, got cuda -arch=sm_80");
  AttentionWorkload half;
  half.dtype = DType::kFloat16;
  EXPECT_EQ(attention_cpu().supports(half, cpu(256, 16)).reason, "needs float32, got float16");
}

TEST(AttentionCpu, LoopsOfOneConfig) {
  AttentionWorkload w{.heads = 4, .kv_heads = 2, .queries = 6, .keys = 20, .size = 3, .v_size = 8};
  w.mask = "1x1x1";
  w.q_layout = w.out_layout = "BSHD";
  const Program program =
      program_of(attention_cpu(), w, cpu(256, 16, 2),
                 "block=2 copies=0 pack_values=0 rows=1 tile_e=8 tile_i=3 tile_s=16 unroll=1 vectors=1");
  EXPECT_EQ("\n" + to_text(program), R"(
kernel attention(input q float32[1, 6, 4, 3], input k float32[1, 2, 20, 3], input v float32[1, 2, 20, 8], input mask float32[1, 1, 1, 20], output out float32[1, 6, 2, 2, 8])
  parallel b.g.fused in 0..2
    allocate keys.packed float32[1, 1, 2, 3, 16]
    for p0 in 0..1
      for p1 in 0..1
        for p2 in 0..2
          for p3.outer in 0..1
            vector_rows p3.inner in 0..8
              if p3.inner < 3
                vectorized p4 in 0..16
                  keys.packed[0, 0, p2, p3.inner, p4] = select(p2*16 + p4 < 20, k[0, b.g.fused, p2*16 + p4, p3.inner], 0)
    for r in 0..2
      for i.outer.outer in 0..1
        allocate row_scale float32[1, 1, 1, 6]
        allocate row_sum float32[1, 1, 1, 6]
        allocate exps float32[1, 1, 1, 6, 20]
        allocate scores float32[1, 1, 1, 6, 20]
        for b in 0..1
          for g in 0..1
            for r_1 in 0..1
              for s.outer in 0..2
                for i.outer in 0..2
                  allocate products float32[1, 1, 1, 3, 16] register
                  for b_1 in 0..1
                    for g_1 in 0..1
                      for r_2 in 0..1
                        unrolled i.init in 0..3
                          unrolled s.outer.init in 0..2
                            vectorized s.inner.init in 0..8
                              products[0, 0, 0, i.init, s.outer.init*8 + s.inner.init] = 0
                        reduce d.outer in 0..3
                          unrolled reduce d.inner in 0..1
                            unrolled i in 0..3
                              unrolled s.outer_1 in 0..2
                                vectorized s.inner in 0..8
                                  products[0, 0, 0, i, s.outer_1*8 + s.inner] += q[0, i.outer*3 + i, b.g.fused*2 + r, d.outer] * keys.packed[0, 0, s.outer, d.outer, s.outer_1*8 + s.inner]
                  unrolled i.inner in 0..3
                    unrolled s.inner.outer in 0..2
                      vectorized s.inner.inner in 0..8
                        if s.outer*16 + s.inner.outer*8 + s.inner.inner < 20
                          scores[0, 0, 0, i.outer*3 + i.inner, s.outer*16 + s.inner.outer*8 + s.inner.inner] = products[0, 0, 0, i.inner, s.inner.outer*8 + s.inner.inner] * 1 + mask[0, 0, 0, s.outer*16 + s.inner.outer*8 + s.inner.inner]
        for b in 0..1
          for g in 0..1
            for r_1 in 0..1
              for i.outer in 0..6
                allocate row_max float32[1, 1, 1, 1] register
                for b_1 in 0..1
                  for g_1 in 0..1
                    for r_2 in 0..1
                      for i in 0..1
                        allocate row_max.partial float32[8, 1, 1, 1, 1] register
                        row_max[0, 0, 0, 0] = -inf
                        for i.init in 0..1
                          for r.init in 0..1
                            for g.init in 0..1
                              for b.init in 0..1
                                vectorized s.inner.init in 0..8
                                  row_max.partial[s.inner.init, 0, 0, 0, 0] = -inf
                        reduce s.outer in 0..3
                          for i_1 in 0..1
                            for r_3 in 0..1
                              for g_2 in 0..1
                                for b_2 in 0..1
                                  vectorized s.inner in 0..8
                                    if s.outer*8 + s.inner < 20
                                      row_max.partial[s.inner, 0, 0, 0, 0] max= scores[0, 0, 0, i.outer, s.outer*8 + s.inner]
                        vectorized reduce s.inner in 0..8
                          row_max[0, 0, 0, 0] max= row_max.partial[s.inner, 0, 0, 0, 0]
                for i.inner in 0..1
                  for s.outer in 0..3
                    vectorized s.inner in 0..8
                      if s.outer*8 + s.inner < 20
                        exps[0, 0, 0, i.outer, s.outer*8 + s.inner] = exp(scores[0, 0, 0, i.outer, s.outer*8 + s.inner] - row_max[0, 0, 0, 0])
        for b in 0..1
          for g in 0..1
            for r_1 in 0..1
              for i in 0..6
                allocate row_sum.partial float32[8, 1, 1, 1, 1] register
                row_sum[0, 0, 0, i] = 0
                for i.init in 0..1
                  for r.init in 0..1
                    for g.init in 0..1
                      for b.init in 0..1
                        vectorized s.inner.init in 0..8
                          row_sum.partial[s.inner.init, 0, 0, 0, 0] = 0
                reduce s.outer in 0..3
                  for i_1 in 0..1
                    for r_2 in 0..1
                      for g_1 in 0..1
                        for b_1 in 0..1
                          vectorized s.inner in 0..8
                            if s.outer*8 + s.inner < 20
                              row_sum.partial[s.inner, 0, 0, 0, 0] += exps[0, 0, 0, i, s.outer*8 + s.inner]
                vectorized reduce s.inner in 0..8
                  row_sum[0, 0, 0, i] += row_sum.partial[s.inner, 0, 0, 0, 0]
        for b in 0..1
          for g in 0..1
            for r_1 in 0..1
              for i in 0..6
                row_scale[0, 0, 0, i] = 1 / row_sum[0, 0, 0, i]
        for e.outer in 0..1
          for i.outer.inner in 0..2
            allocate sums float32[1, 1, 1, 3, 8] register
            for b in 0..1
              for g in 0..1
                for r_1 in 0..1
                  unrolled i.init in 0..3
                    unrolled e.outer.init in 0..1
                      vectorized e.inner.init in 0..8
                        sums[0, 0, 0, i.init, e.inner.init] = 0
                  reduce s.outer in 0..20
                    unrolled reduce s.inner in 0..1
                      unrolled i in 0..3
                        unrolled e.outer_1 in 0..1
                          vectorized e.inner in 0..8
                            sums[0, 0, 0, i, e.inner] += exps[0, 0, 0, i.outer.inner*3 + i, s.outer] * v[0, b.g.fused, s.outer, e.inner]
            unrolled i.inner in 0..3
              unrolled e.inner.outer in 0..1
                vectorized e.inner.inner in 0..8
                  out[0, i.outer.inner*3 + i.inner, b.g.fused, r, e.inner.inner] = sums[0, 0, 0, i.inner, e.inner.inner] * row_scale[0, 0, 0, i.outer.inner*3 + i.inner]
)");
}

// 200 configs of 40 workloads; all of them in the long suite, a sixth else.
TEST(AttentionCpu, RandomConfigsOnOddShapes) {
  const RandomSeed seed(1);
  testing::AttentionDraws draws(seed);
  for (uint32_t k = 0; k < 40; ++k) {
    const AttentionWorkload w = draws.workload();
    const Target target = k % 3 == 0 ? cpu(512, 32) : k % 3 == 1 ? cpu(256, 16, 2) : cpu(128, 16);
    ASSERT_NO_FATAL_FAILURE(expect_configs_right(attention_cpu(), w, target, 5, k));
  }
}

TEST(AttentionCpu, RandomConfigsAsMachineCode) {
  const RandomSeed seed(2);
  testing::AttentionDraws draws(seed);
  for (uint32_t k = 0; k < 12; ++k) {
    const AttentionWorkload w = draws.workload(40, 24);
    for (const Target& target : hosts(1 + static_cast<int>(k % 2)))
      ASSERT_NO_FATAL_FAILURE(expect_code_right(attention_cpu(), w, target, 4, k));
  }
}

TEST(AttentionCpu, DefaultIsValidForAnyShape) {
  for (const Target& t : {cpu(128, 16), cpu(256, 16), cpu(512, 32)})
    for (const int64_t queries : {1, 3, 49, 128, 197, 4096})
      for (const int64_t keys : {1, 7, 49, 197, 4096})
        for (const int64_t size : {1, 3, 64, 80}) {
          const AttentionWorkload w{.queries = queries, .keys = keys, .size = size, .v_size = size};
          const auto instance = attention_cpu().apply(w, t);
          ASSERT_TRUE(instance.is_ok()) << Workload(w).key() << ": " << instance.message();
        }
}

// Scores and exps of a block, for any config but of single tiles.
TEST(AttentionCpu, BlocksStayInL2) {
  const AttentionWorkload w{
      .heads = 2, .kv_heads = 2, .queries = 512, .keys = 1024, .size = 64, .v_size = 64};
  Target target = cpu(256, 16);
  target.l2_bytes = 256 << 10;
  const auto instance = attention_cpu().apply(w, target);
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  std::mt19937_64 random(5);
  for (int k = 0; k < 2000; ++k) {
    const Config c = (*instance)->space().at((*instance)->space().sample(random));
    if (c.at("block") > 1) {
      ASSERT_LE(c.at("block") * c.at("tile_i") * w.keys * 8, target.l2_bytes);
    }
  }
}

}  // namespace
}  // namespace tuner
