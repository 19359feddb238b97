// matmul_dot_cpu: when it applies, its loops, and random configs on odd shapes, interpreted and compiled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "templates/registry/registry.h"
#include "templates/workload/tolerance.h"
#include "tests/templates/compiled_template_check.h"

namespace tuner {
namespace {

struct Types {
  DType dtype;
  std::optional<DType> out = {};
};

MatmulWorkload matmul(const Types& types, int64_t m, int64_t n, int64_t k) {
  MatmulWorkload w;
  w.m = m;
  w.n = n;
  w.k = k;
  w.dtype = types.dtype;
  w.narrow_out = types.out;
  return w;
}

const Types kTypes[] = {{DType::kBFloat16},
                        {DType::kInt8},
                        {DType::kBFloat16, DType::kBFloat16},
                        {DType::kInt8, DType::kUInt8},
                        {DType::kInt8, DType::kInt8}};

TEST(MatmulDotCpu, DeclinesWithTheReason) {
  Target gpu;
  gpu.family = &cuda_family();
  gpu.arch = "sm_90a";
  EXPECT_EQ(matmul_dot_cpu().supports(matmul({DType::kInt8}, 4, 4, 4), gpu).reason,
            "needs a CPU target, got " + gpu.name());
  EXPECT_EQ(matmul_dot_cpu().supports(matmul({DType::kFloat32}, 4, 4, 4), cpu(256, 16)).reason,
            "needs bfloat16 or int8, got float32");
  for (const Types& types : kTypes)
    EXPECT_TRUE(matmul_dot_cpu().supports(matmul(types, 4, 4, 4), cpu(256, 16)).yes);
}

TEST(MatmulDotCpu, LoopsOfOneConfig) {
  MatmulWorkload w = matmul({DType::kInt8}, 20, 60, 9);
  w.bias = true;
  w.activation = Activation::kRelu;
  w.constant = {"b"};
  const auto instance = matmul_dot_cpu().apply(w, cpu(256, 16));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const auto program = (*instance)->instantiate(*config_from_text(
      "block_m=2 narrow_panels=0 next_panel=0 pack_a=0 prefetch_b=0 tile_m=4 tile_n=16 unroll_k=1"));
  ASSERT_TRUE(program.is_ok()) << program.message();
  ASSERT_NE(program->packing, nullptr);
  EXPECT_EQ("\n" + to_text(*program), R"(
kernel matmul(input a uint8[20, 9], packed b.packed int8[4, 3, 16, 4], input bias int32[60], output out int32[20, 60])
  for i.outer.outer in 0..3
    for j.outer in 0..4
      for i.outer.inner in 0..2
        if i.outer.outer*2 + i.outer.inner < 5
          allocate acc int32[4, 16] register
          unrolled i.init in 0..4
            unrolled j.outer.init in 0..2
              vectorized j.inner.init in 0..8
                acc[i.init, j.outer.init*8 + j.inner.init] = 0
          reduce k.outer.outer in 0..3
            unrolled reduce k.outer.inner in 0..1
              unrolled i in 0..4
                unrolled j.outer_1 in 0..2
                  vectorized j.inner in 0..8
                    dot reduce k.inner in 0..4
                      if k.outer.outer*4 + k.inner < 9
                        acc[i, j.outer_1*8 + j.inner] += int32(a[i.outer.outer*8 + i.outer.inner*4 + i, k.outer.outer*4 + k.inner])*int32(b.packed[j.outer, k.outer.outer, j.outer_1*8 + j.inner, k.inner])
          unrolled i.inner in 0..4
            unrolled j.inner.outer in 0..2
              vectorized j.inner.inner in 0..8
                if j.outer*16 + j.inner.outer*8 + j.inner.inner < 60
                  out[i.outer.outer*8 + i.outer.inner*4 + i.inner, j.outer*16 + j.inner.outer*8 + j.inner.inner] = max(acc[i.inner, j.inner.outer*8 + j.inner.inner] + bias[j.outer*16 + j.inner.outer*8 + j.inner.inner], 0)
packing matmul_pack(constant b int8[9, 60], packed b.packed int8[4, 3, 16, 4])
  for p0 in 0..4
    for p1 in 0..3
      for p2 in 0..16
        for p3 in 0..4
          b.packed[p0, p1, p2, p3] = select(p1*4 + p3 < 9 && p0*16 + p2 < 60, b[p1*4 + p3, p0*16 + p2], 0)
)");
}

TEST(MatmulDotCpu, TilesAskForTheNextPanelOfALargeConstant) {
  const char* const asks =
      "block_m=0 narrow_panels=0 next_panel=1 pack_a=0 prefetch_b=0 tile_m=4 tile_n=16 unroll_k=2";
  MatmulWorkload w = matmul({DType::kInt8}, 20, 4096, 512);
  w.constant = {"b"};
  const auto instance = matmul_dot_cpu().apply(w, cpu(256, 16));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const ConfigSpace& space = (*instance)->space();
  EXPECT_THAT(space.at(space.first_index()).to_text(), ::testing::HasSubstr("next_panel=1"));
  const auto program = (*instance)->instantiate(*config_from_text(asks));
  ASSERT_TRUE(program.is_ok()) << program.message();
  EXPECT_THAT(to_text(*program), ::testing::HasSubstr("prefetch.l2(b.packed[j.outer + 1, "));
  MatmulWorkload small = w;  // a b that stays in the cache is not asked for
  small.n = 32;
  EXPECT_EQ(
      (*matmul_dot_cpu().apply(small, cpu(256, 16)))->instantiate(*config_from_text(asks)).status().code(),
      StatusCode::kInvalidConfig);
  w.m = 9;
  w.n = 2100;
  for (const Target& t : hosts(1)) expect_code_right(matmul_dot_cpu(), w, t, 2, 11);
}

TEST(MatmulDotCpu, ScheduleReplaysFromItsText) {
  MatmulWorkload w = matmul({DType::kBFloat16}, 20, 60, 9);
  w.transpose_a = true;
  const auto instance = matmul_dot_cpu().apply(w, cpu(256, 16, 2));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const Config config = (*instance)->space().at((*instance)->space().first_index());
  const auto program = (*instance)->instantiate(config);
  const auto text = (*instance)->schedule_text(config);
  ASSERT_TRUE(program.is_ok() && text.is_ok()) << program.message() << text.message();
  const auto again = replay(Workload(w).compute(), *text);
  ASSERT_TRUE(again.is_ok()) << again.message();
  EXPECT_EQ(to_text(*again), to_text(*program));
}

TEST(MatmulDotCpu, DefaultIsValidForAnyShape) {
  for (const Types& types : kTypes)
    for (const Target& t : {cpu(128, 16), cpu(256, 16), cpu(512, 32)})
      for (const int64_t m : {1, 2, 3, 5, 7, 127, 1024})
        for (const int64_t n : {1, 13, 16, 255, 4096})
          for (const int64_t k : {1, 2, 3, 5, 1000}) {
            const auto instance = matmul_dot_cpu().apply(matmul(types, m, n, k), t);
            ASSERT_TRUE(instance.is_ok()) << instance.message();
            EXPECT_GE((*instance)->space().size(), 1u);
          }
}

TEST(MatmulDotCpu, RandomConfigsOnOddShapes) {
  for (const Types& types : kTypes)
    for (const auto& [m, n, k] :
         {std::array<int64_t, 3>{1, 1, 1}, {7, 13, 29}, {1, 40, 9}, {33, 1, 5}, {20, 50, 3}}) {
      expect_configs_right(matmul_dot_cpu(), matmul(types, m, n, k), cpu(256, 16), 8, 1);
      expect_configs_right(matmul_dot_cpu(), matmul(types, m, n, k), cpu(512, 32), 8, 2);
      expect_configs_right(matmul_dot_cpu(), matmul(types, m, n, k), cpu(512, 32, /*threads=*/2), 8, 3);
    }
}

MatmulWorkload form_of(const Types& types, int form) {
  MatmulWorkload w = matmul(types, 9, 37, 6);
  w.transpose_a = (form & 1) != 0;
  w.transpose_b = (form & 2) != 0;
  w.bias = (form & 4) != 0;
  w.activation = (form & 8) != 0 ? Activation::kRelu : Activation::kNone;
  if ((form & 16) != 0) w.constant = {"b"};
  w.batch = (form & 32) != 0 ? 3 : 1;
  w.residual = (form & 64) != 0;
  return w;
}

TEST(MatmulDotCpu, ResultsOfEightBitsAreRequantised) {
  MatmulWorkload w = matmul({DType::kInt8, DType::kUInt8}, 20, 60, 9);
  w.bias = true;
  w.activation = Activation::kRelu;
  const auto instance = matmul_dot_cpu().apply(w, cpu(256, 16));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const auto program = (*instance)->instantiate((*instance)->space().at((*instance)->space().first_index()));
  ASSERT_TRUE(program.is_ok()) << program.message();
  EXPECT_THAT(
      to_text(*program),
      ::testing::HasSubstr(
          "= uint8(int32(round(min(at_least(max(float32(acc[i.inner, j.inner.outer*8 + j.inner.inner] + "
          "bias[j.outer*16 + j.inner.outer*8 + j.inner.inner]) * scale[j.outer*16 + j.inner.outer*8 + "
          "j.inner.inner], 0), float32(0 - int32(zero_point[0]))), float32(255 - int32(zero_point[0])"
          ")))) + int32(zero_point[0]))"));
}

TEST(MatmulDotCpu, EveryOperandForm) {
  for (const Types& types : kTypes)
    for (int form = 0; form < 128; ++form)
      expect_configs_right(matmul_dot_cpu(), form_of(types, form), cpu(256, 16, 1 + form % 2), 2,
                           static_cast<uint64_t>(form));
}

TEST(MatmulDotCpu, ConstantAIsPackedAhead) {
  for (const Types& types : kTypes) {
    MatmulWorkload w = matmul(types, 9, 17, 6);
    w.constant = {"a", "b"};
    expect_configs_right(matmul_dot_cpu(), w, cpu(256, 16), 12, 5);
  }
}

// Numbers below the normal range are as small as 0 beside the others, also where the instruction takes them
// for 0; an infinity reaches the sums of its own row and no other. (It meets no such number here: 0 times it
// is none.)
TEST(MatmulDotCpu, DenormalsAndInfinities) {
  const MatmulWorkload w = matmul({DType::kBFloat16}, 9, 37, 21);
  const Program math = Workload(w).compute();
  auto expected = testing::random_args(math, 1);
  for (size_t i = 0; i < expected[0].size(); i += 4) expected[0][i] = i % 8 == 0 ? 0x1p-130 : -0x1p-133;
  for (size_t i = 1; i < 20 * 37; i += 5) expected[1][i] = 0x1p-127;
  constexpr int64_t kRow = 3;
  expected[0][kRow * 21 + 20] = INFINITY;
  ASSERT_TRUE(interpret(math, expected).is_ok());
  const double allowed = tolerance_of(w).absolute;
  for (const Target& t : hosts(1)) {
    const auto instance = matmul_dot_cpu().apply(w, t);
    ASSERT_TRUE(instance.is_ok()) << instance.message();
    const RandomSeed seed(5);
    std::mt19937_64 rng(seed);
    for (int i = 0; i < 6; ++i) {
      const auto program =
          (*instance)->instantiate((*instance)->space().at((*instance)->space().sample(rng)));
      ASSERT_TRUE(program.is_ok()) << program.message();
      auto found = expected;
      found.back().clear();
      ASSERT_TRUE(testing::run_compiled(*program, found, t, 1).is_ok());
      for (size_t e = 0; e < expected.back().size(); ++e)
        if (static_cast<int64_t>(e) / w.n == kRow)
          ASSERT_EQ(found.back()[e], expected.back()[e]) << "out[" << e << "] on " << t.name();
        else
          ASSERT_NEAR(found.back()[e], expected.back()[e], allowed) << "out[" << e << "] on " << t.name();
    }
  }
}

TEST(MatmulDotCpu, CompiledConfigsOnOddShapes) {
  for (const Types& types : kTypes)
    for (const Target& t : hosts(1)) {
      expect_code_right(matmul_dot_cpu(), matmul(types, 1, 1, 1), t, 2, 1);
      expect_code_right(matmul_dot_cpu(), matmul(types, 7, 13, 29), t, 5, 2);
      expect_code_right(matmul_dot_cpu(), matmul(types, 65, 70, 255), t, 5, 3);
      expect_code_right(matmul_dot_cpu(), matmul(types, 33, 1, 5), t, 3, 4);
    }
}

TEST(MatmulDotCpu, CompiledForms) {
  for (const Types& types : kTypes)
    for (const Target& t : hosts(2))
      for (int form = 3; form < 128; form += 11)
        expect_code_right(matmul_dot_cpu(), form_of(types, form), t, 1, static_cast<uint32_t>(form));
}

}  // namespace
}  // namespace tuner
