// matmul_nbits_cpu: when it applies, its loops, and random configs on odd shapes, interpreted and compiled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler_core/codegen/compile.h"
#include "templates/registry/registry.h"
#include "templates/workload/tolerance.h"
#include "tests/templates/compiled_template_check.h"

namespace tuner {
namespace {

MatmulNBitsWorkload product(int64_t m, int64_t n, int64_t k, int64_t group = 32) {
  return {.m = m, .n = n, .k = k, .group = group};
}

TEST(MatmulNBitsCpu, DeclinesWithTheReason) {
  Target gpu;
  gpu.family = &cuda_family();
  gpu.arch = "sm_90a";
  EXPECT_EQ(matmul_nbits_cpu().supports(product(4, 4, 4), gpu).reason,
            "needs a CPU target, got " + gpu.name());
  EXPECT_TRUE(matmul_nbits_cpu().supports(product(4, 4, 4), cpu(256, 16)).yes);
}

TEST(MatmulNBitsCpu, LoopsOfOneConfig) {
  MatmulNBitsWorkload w = product(2, 20, 70);
  w.zero_points = w.bias = true;
  w.constant = {"b", "scales", "zero_points"};
  EXPECT_EQ("\n" + to_text(program_of(matmul_nbits_cpu(), w, cpu(256, 16),
                                      "prefetch_b=0 tile_m=2 tile_n=16 vectors=1")),
            R"(
kernel matmul_nbits(input a float32[2, 70], packed words.packed int32[2, 12, 16], packed scales.packed float32[2, 3, 16], packed zeros.packed uint8[2, 3, 16], input bias float32[20], output out float32[2, 20])
  allocate spread float32[2, 12, 8]
  allocate minus float32[2, 3]
  for i0 in 0..2
    for i1 in 0..12
      vectorized i2 in 0..8
        spread[i0, i1, i2] = select(i1*8 + i2 < 70, a[i0, i1*8 + i2], 0) * select(i2 < 7, 1 / float32(shift_left(1, int32(i2*4))), 1)
  for i0 in 0..2
    for i1 in 0..3
      minus[i0, i1] = 0
      reduce t in 0..4
        vectorized reduce e in 0..8
          minus[i0, i1] += select(i1*32 + t*8 + e < 70, a[i0, i1*32 + t*8 + e], 0) * -1
  for j.outer in 0..2
    for i.outer in 0..1
      allocate acc float32[2, 16] register
      unrolled i.init in 0..2
        unrolled j.outer.init in 0..2
          vectorized j.inner.init in 0..8
            if j.outer*16 + j.outer.init*8 + j.inner.init < 20
              acc[i.init, j.outer.init*8 + j.inner.init] = 0
      reduce g in 0..3
        allocate part float32[1, 2, 16] register
        unrolled g_1 in 0..1
          unrolled j.outer.outer.init in 0..2
            unrolled i.init in 0..2
              unrolled j.outer.inner.init in 0..1
                vectorized j.inner.init in 0..8
                  part[0, i.init, j.outer.outer.init*8 + j.inner.init] = 0
          reduce t in 0..4
            unrolled j.outer.outer in 0..2
              unrolled reduce e in 0..8
                unrolled i in 0..2
                  unrolled j.outer.inner in 0..1
                    vectorized j.inner in 0..8
                      part[0, i, j.outer.outer*8 + j.inner] += spread[i, g*4 + t, e] * float32(select(e < 7, bit_and(words.packed[j.outer, g*4 + t, j.outer.outer*8 + j.inner], shift_left(15, int32(e*4))), int32(shift_right(uint32(words.packed[j.outer, g*4 + t, j.outer.outer*8 + j.inner]), 28))))
        unrolled i in 0..2
          unrolled j.outer_1 in 0..2
            vectorized j.inner in 0..8
              if j.outer*16 + j.outer_1*8 + j.inner < 20
                acc[i, j.outer_1*8 + j.inner] += (part[0, i, j.outer_1*8 + j.inner] + float32(int32(zeros.packed[j.outer, g, j.outer_1*8 + j.inner])) * minus[i, g]) * scales.packed[j.outer, g, j.outer_1*8 + j.inner]
      unrolled i.inner in 0..2
        unrolled j.inner.outer in 0..2
          vectorized j.inner.inner in 0..8
            if j.outer*16 + j.inner.outer*8 + j.inner.inner < 20
              out[i.inner, j.outer*16 + j.inner.outer*8 + j.inner.inner] = acc[i.inner, j.inner.outer*8 + j.inner.inner] + bias[j.outer*16 + j.inner.outer*8 + j.inner.inner]
packing matmul_nbits_pack(constant b uint8[20, 3, 16], constant scales float32[20, 3], constant zero_points uint8[20, 2], packed words.packed int32[2, 12, 16], packed scales.packed float32[2, 3, 16], packed zeros.packed uint8[2, 3, 16])
  for p0 in 0..2
    for p1 in 0..12
      for p2 in 0..16
        words.packed[p0, p1, p2] = select(p0*16 + p2 < 20, bit_or(bit_or(bit_or(shift_left(int32(b[p0*16 + p2, p1//4, p1%4*4]), 0), shift_left(int32(b[p0*16 + p2, p1//4, p1%4*4 + 1]), 8)), shift_left(int32(b[p0*16 + p2, p1//4, p1%4*4 + 2]), 16)), shift_left(int32(b[p0*16 + p2, p1//4, p1%4*4 + 3]), 24)), 0)
  for p0 in 0..2
    for p1 in 0..3
      for p2 in 0..16
        scales.packed[p0, p1, p2] = select(p0*16 + p2 < 20, scales[p0*16 + p2, p1], 0)
  for p0 in 0..2
    for p1 in 0..3
      for p2 in 0..16
        zeros.packed[p0, p1, p2] = select(p0*16 + p2 < 20, uint8(bit_and(shift_right(int32(zero_points[p0*16 + p2, p1//2]), int32(p1%2*4)), 15)), 0)
)");
}

TEST(MatmulNBitsCpu, ScheduleReplaysFromItsText) {
  MatmulNBitsWorkload w = product(3, 60, 70);
  w.zero_points = true;
  w.constant = {"b", "zero_points"};
  const auto instance = matmul_nbits_cpu().apply(w, cpu(256, 16, 2));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const Config config = (*instance)->space().at((*instance)->space().default_index());
  const auto program = (*instance)->instantiate(config);
  const auto text = (*instance)->schedule_text(config);
  ASSERT_TRUE(program.is_ok() && text.is_ok()) << program.message() << text.message();
  const auto again = replay((*instance)->math(), *text);
  ASSERT_TRUE(again.is_ok()) << again.message();
  EXPECT_EQ(to_text(*again), to_text(*program));
}

TEST(MatmulNBitsCpu, DefaultIsValidForAnyShape) {
  for (const Target& t : {cpu(128, 16), cpu(128, 32), cpu(256, 16), cpu(512, 32)})
    for (const int64_t m : {1, 2, 3, 5, 7, 8, 127, 1024})
      for (const int64_t n : {1, 13, 16, 255, 4096})
        for (const int64_t k : {1, 31, 32, 33, 1000}) {
          const auto instance = matmul_nbits_cpu().apply(product(m, n, k), t);
          ASSERT_TRUE(instance.is_ok()) << instance.message();
          EXPECT_GE((*instance)->space().size(), 1u);
        }
}

// How often an instruction stands in the kernel for one row of 8 vectors. Its loop over words has 64 vectors
// of weights, 8 of each place in a word.
int64_t times(std::string_view instruction, const char* target) {
  const Target t = *parse_target(target);
  MatmulNBitsWorkload w = product(1, 8 * t.f32_lanes(), 256);
  w.constant = {"b", "scales"};
  const std::string config = str("prefetch_b=0 tile_m=1 vectors=4 tile_n=", 8 * t.f32_lanes());
  const Result<std::string> text = emit_asm(program_of(matmul_nbits_cpu(), w, t, config.c_str()), t);
  EXPECT_TRUE(text.is_ok()) << text.message();
  int64_t found = 0;
  for (size_t at = text->find(instruction); at != std::string::npos; at = text->find(instruction, at + 1))
    ++found;
  return found;
}

TEST(MatmulNBitsCpu, AVectorOfWeightsIsOneAndAndOneConversion) {
  for (const char* target : {"llvm -mcpu=haswell", "llvm -mcpu=skylake-avx512", "llvm -mcpu=znver5"}) {
    EXPECT_EQ(times("\tvcvtdq2ps\t", target), 64) << target;
    EXPECT_EQ(times("\tvpand", target) + times("\tvandps", target), 56) << target;
    EXPECT_EQ(times("\tvpsrld\t", target), 8) << target;
  }
  const char* const arm = "llvm -mcpu=cortex-a76 -mtriple=aarch64-linux-gnu";
  EXPECT_EQ(times("\tscvtf\t", arm), 64);
  EXPECT_EQ(times("\tand\tv", arm), 56);
  EXPECT_EQ(times("\tushr\tv", arm), 8);
}

MatmulNBitsWorkload form_of(int form, int64_t group) {
  MatmulNBitsWorkload w = product(5, 37, 83, group);
  w.zero_points = (form & 1) != 0;
  w.bias = (form & 2) != 0;
  w.activation = (form & 4) != 0 ? Activation::kRelu : Activation::kNone;
  if ((form & 8) != 0) w.constant.emplace_back("b");
  if ((form & 16) != 0) w.constant.emplace_back("scales");
  if ((form & 16) != 0 && w.zero_points) w.constant.emplace_back("zero_points");
  return w;
}

TEST(MatmulNBitsCpu, EveryOperandForm) {
  for (int form = 0; form < 32; ++form)
    expect_configs_right(matmul_nbits_cpu(), form_of(form, int64_t{16} << form % 5),
                         form % 3 == 0 ? cpu(512, 32) : cpu(256, 16, 1 + form % 2), 3,
                         static_cast<uint32_t>(form));
}

TEST(MatmulNBitsCpu, RandomConfigsOnOddShapes) {
  for (const auto& [m, n, k] :
       {std::array<int64_t, 3>{1, 1, 1}, {7, 13, 29}, {1, 40, 65}, {19, 3, 5}, {8, 50, 130}})
    for (const Target& t : {cpu(128, 32), cpu(256, 16), cpu(512, 32), cpu(512, 32, /*threads=*/2)})
      expect_configs_right(matmul_nbits_cpu(), product(m, n, k, 16), t, 8, 1);
}

TEST(MatmulNBitsCpu, CompiledConfigsOnOddShapes) {
  for (const Target& t : hosts(1)) {
    expect_code_right(matmul_nbits_cpu(), product(1, 1, 1), t, 2, 1);
    expect_code_right(matmul_nbits_cpu(), product(7, 13, 29), t, 5, 2);
    expect_code_right(matmul_nbits_cpu(), product(33, 70, 255, 128), t, 8, 3);
    expect_code_right(matmul_nbits_cpu(), product(1, 257, 1000), t, 8, 4);
    expect_code_right(matmul_nbits_cpu(), product(8, 129, 513, 16), t, 8, 5);
  }
}

TEST(MatmulNBitsCpu, CompiledForms) {
  for (const Target& t : hosts(2))
    for (int form = 0; form < 32; ++form)
      expect_code_right(matmul_nbits_cpu(), form_of(form, int64_t{16} << form % 5), t, 1,
                        static_cast<uint32_t>(form));
}

}  // namespace
}  // namespace tuner
