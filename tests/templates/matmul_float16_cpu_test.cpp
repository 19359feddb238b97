// matmul_cpu of float16: loops, and random configs on odd shapes, interpreted and compiled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "templates/registry/registry.h"
#include "tests/templates/compiled_template_check.h"

namespace tuner {
namespace {

MatmulWorkload matmul(std::optional<DType> out, int64_t m, int64_t n, int64_t k) {
  MatmulWorkload w;
  w.m = m;
  w.n = n;
  w.k = k;
  w.dtype = DType::kFloat16;
  w.narrow_out = out;
  return w;
}
const std::optional<DType> kOuts[] = {std::nullopt, DType::kFloat16};

TEST(MatmulFloat16Cpu, AIsWidenedAheadAndBWhereItIsLoaded) {
  MatmulWorkload w = matmul({}, 20, 60, 9);
  w.constant = {"b"};
  const auto instance = matmul_cpu().apply(w, cpu(256, 16));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const auto program =
      (*instance)->instantiate(*config_from_text("block_k=0 block_m=2 narrow_panels=0 pack_a=0 "
                                                 "pack_b=1 prefetch_b=0 tile_m=4 tile_n=16 unroll_k=1"));
  ASSERT_TRUE(program.is_ok()) << program.message();
  const std::string text = to_text(*program);
  EXPECT_THAT(text, ::testing::HasSubstr("wide[i0, i1.inner] = float32(a[i0, i1.inner])"));
  EXPECT_THAT(text, ::testing::HasSubstr("] += wide[i.outer.outer*8 + i.outer.inner*4 + i, k.outer] * "
                                         "float32(b.packed[j.outer, k.outer, j.outer_1*8 + j.inner])"));
  EXPECT_THAT(
      text, ::testing::HasSubstr("packing matmul_pack(constant b float16[9, 60], packed b.packed float16["));
}

TEST(MatmulFloat16Cpu, RandomConfigsOnOddShapes) {
  for (const auto& out : kOuts)
    for (const auto& w : {matmul(out, 1, 1, 1), matmul(out, 7, 13, 29), matmul(out, 1, 40, 9),
                          matmul(out, 33, 1, 5), matmul(out, 20, 50, 3)}) {
      expect_configs_right(matmul_cpu(), w, cpu(256, 16), 8, 1);
      expect_configs_right(matmul_cpu(), w, cpu(512, 32), 8, 2);
      expect_configs_right(matmul_cpu(), w, cpu(512, 32, /*threads=*/2), 8, 3);
    }
}

MatmulWorkload form_of(int form) {
  MatmulWorkload w = matmul(kOuts[form / 128], 9, 37, 6);
  w.transpose_a = (form & 1) != 0;
  w.transpose_b = (form & 2) != 0;
  w.bias = (form & 4) != 0;
  w.activation = (form & 8) != 0 ? Activation::kRelu : Activation::kNone;
  if ((form & 8) != 0) w.constant.emplace_back("a");
  if ((form & 16) != 0) w.constant.emplace_back("b");
  w.batch = (form & 32) != 0 ? 3 : 1;
  w.residual = (form & 64) != 0;
  return w;
}

TEST(MatmulFloat16Cpu, EveryOperandForm) {
  for (int form = 0; form < 256; ++form)
    expect_configs_right(matmul_cpu(), form_of(form), cpu(256, 16, 1 + form % 2), 2,
                         static_cast<uint32_t>(form));
}

// Its copy of a is a loop, not a line for each vector.
TEST(MatmulFloat16Cpu, LongRowsCompile) {
  expect_code_right(matmul_cpu(), matmul({}, 2, 3, 100'000), host_target(1), 0, 6);
}

TEST(MatmulFloat16Cpu, CompiledConfigs) {
  for (const auto& out : kOuts)
    for (const Target& t : hosts(1)) {
      expect_code_right(matmul_cpu(), matmul(out, 1, 1, 1), t, 2, 1);
      expect_code_right(matmul_cpu(), matmul(out, 7, 13, 29), t, 5, 2);
      expect_code_right(matmul_cpu(), matmul(out, 65, 33, 255), t, 5, 3);
      expect_code_right(matmul_cpu(), matmul(out, 33, 1, 5), t, 3, 4);
    }
  for (const Target& t : hosts(2))
    for (int form = 3; form < 256; form += 11)
      expect_code_right(matmul_cpu(), form_of(form), t, 1, static_cast<uint32_t>(form));
}

// Numbers below the normal range of float16 are as exact as the others; an infinity reaches its own row.
TEST(MatmulFloat16Cpu, DenormalsAndInfinities) {
  MatmulWorkload w = matmul({}, 5, 37, 4);
  const Program math = Workload(w).compute();
  auto expected = testing::random_args(math, 1);
  for (size_t i = 0; i < expected[0].size(); ++i) expected[0][i] = 0x1p-24 * static_cast<double>(1 + i);
  expected[0][3 * 4 + 1] = INFINITY;
  ASSERT_TRUE(interpret(math, expected).is_ok());
  for (const Target& t : hosts(1)) {
    const auto instance = matmul_cpu().apply(w, t);
    ASSERT_TRUE(instance.is_ok()) << instance.message();
    const auto program =
        (*instance)->instantiate((*instance)->space().at((*instance)->space().default_index()));
    ASSERT_TRUE(program.is_ok()) << program.message();
    auto found = expected;
    found.back().clear();
    ASSERT_TRUE(testing::run_compiled(*program, found, t, 1).is_ok());
    for (size_t e = 0; e < expected.back().size(); ++e)
      if (std::isinf(expected.back()[e]))
        ASSERT_EQ(found.back()[e], expected.back()[e]) << "out[" << e << "] on " << t.name();
      else  // about 2^-20: within a few roundings of float32
        ASSERT_NEAR(found.back()[e], expected.back()[e], 0x1p-42) << "out[" << e << "] on " << t.name();
  }
}

}  // namespace
}  // namespace tuner
