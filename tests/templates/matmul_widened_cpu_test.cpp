// matmul_cpu of float16 and bfloat16, in float32 vectors: loops, and random configs on odd shapes,
// interpreted and compiled; which template is the default.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "templates/registry/registry.h"
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
const Types kTypes[] = {{DType::kFloat16},
                        {DType::kFloat16, DType::kFloat16},
                        {DType::kBFloat16},
                        {DType::kBFloat16, DType::kBFloat16}};

TEST(MatmulWidenedCpu, AIsWidenedAheadAndBWhereItIsLoaded) {
  MatmulWorkload w = matmul({DType::kFloat16}, 20, 60, 9);
  w.constant = {"b"};
  const auto instance = matmul_cpu().apply(w, cpu(256, 16));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const auto program =
      (*instance)->instantiate(*config_from_text("block_k=0 block_m=2 narrow_panels=0 next_panel=0 pack_a=0 "
                                                 "pack_b=1 prefetch_b=0 tile_m=4 tile_n=16 unroll_k=1"));
  ASSERT_TRUE(program.is_ok()) << program.message();
  const std::string text = to_text(*program);
  EXPECT_THAT(text, ::testing::HasSubstr("wide[i0, i1.inner] = float32(a[i0, i1.inner])"));
  EXPECT_THAT(text, ::testing::HasSubstr("] += wide[i.outer.outer*8 + i.outer.inner*4 + i, k.outer] * "
                                         "float32(b.packed[j.outer, k.outer, j.outer_1*8 + j.inner])"));
  EXPECT_THAT(
      text, ::testing::HasSubstr("packing matmul_pack(constant b float16[9, 60], packed b.packed float16["));
}

TEST(MatmulWidenedCpu, RandomConfigsOnOddShapes) {
  for (const Types& types : kTypes)
    for (const auto& w : {matmul(types, 1, 1, 1), matmul(types, 7, 13, 29), matmul(types, 1, 40, 9),
                          matmul(types, 33, 1, 5), matmul(types, 20, 50, 3)}) {
      expect_configs_right(matmul_cpu(), w, cpu(256, 16), 8, 1);
      expect_configs_right(matmul_cpu(), w, cpu(512, 32), 8, 2);
      expect_configs_right(matmul_cpu(), w, cpu(512, 32, /*threads=*/2), 8, 3);
    }
}

MatmulWorkload form_of(int form) {
  MatmulWorkload w = matmul(kTypes[form / 128], 9, 37, 6);
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

TEST(MatmulWidenedCpu, EveryOperandForm) {
  for (int form = 0; form < 512; ++form)
    expect_configs_right(matmul_cpu(), form_of(form), cpu(256, 16, 1 + form % 2), 2,
                         static_cast<uint32_t>(form));
}

// bfloat16 has more than one unit: all of them are searched, and the default is the one that the CPU is built
// for.
TEST(MatmulWidenedCpu, DefaultIsTheCpusOwnUnit) {
  const auto order = [](DType dtype, const char* target) {
    std::string names;
    const auto serving = templates_for(matmul({dtype}, 64, 64, 64), *parse_target(target));
    for (const AnyTemplate* t : *serving) names += str(names.empty() ? "" : " ", t->name());
    return names;
  };
  EXPECT_EQ(order(DType::kBFloat16, "llvm -mcpu=haswell"), "matmul_cpu matmul_dot_cpu");
  EXPECT_EQ(order(DType::kBFloat16, "llvm -mcpu=neoverse-n1 -mtriple=aarch64-linux-gnu"),
            "matmul_cpu matmul_dot_cpu");
  EXPECT_EQ(order(DType::kBFloat16, "llvm -mcpu=znver5"), "matmul_dot_cpu matmul_cpu");
  EXPECT_EQ(order(DType::kBFloat16, "llvm -mcpu=sapphirerapids"),
            "matmul_tile_cpu matmul_dot_cpu matmul_cpu");
  EXPECT_EQ(order(DType::kFloat16, "llvm -mcpu=sapphirerapids"), "matmul_cpu");
  EXPECT_EQ(order(DType::kFloat16, "llvm -mcpu=graniterapids"), "matmul_tile_cpu matmul_cpu");
}

// Its copy of a is a loop, not a line for each vector.
TEST(MatmulWidenedCpu, LongRowsCompile) {
  expect_code_right(matmul_cpu(), matmul({DType::kFloat16}, 2, 3, 100'000), host_target(1), 0, 6);
}

TEST(MatmulWidenedCpu, CompiledConfigs) {
  for (const Types& types : kTypes)
    for (const Target& t : hosts(1)) {
      expect_code_right(matmul_cpu(), matmul(types, 1, 1, 1), t, 2, 1);
      expect_code_right(matmul_cpu(), matmul(types, 7, 13, 29), t, 5, 2);
      expect_code_right(matmul_cpu(), matmul(types, 65, 33, 255), t, 5, 3);
      expect_code_right(matmul_cpu(), matmul(types, 33, 1, 5), t, 3, 4);
    }
  for (const Target& t : hosts(2))
    for (int form = 3; form < 512; form += 11)
      expect_code_right(matmul_cpu(), form_of(form), t, 1, static_cast<uint32_t>(form));
}

// Numbers below the normal range of float16 are as exact as the others; an infinity reaches its own row.
TEST(MatmulWidenedCpu, DenormalsAndInfinities) {
  MatmulWorkload w = matmul({DType::kFloat16}, 5, 37, 4);
  const Program math = Workload(w).compute();
  auto expected = testing::random_args(math, 1);
  for (size_t i = 0; i < expected[0].size(); ++i) expected[0][i] = 0x1p-24 * static_cast<double>(1 + i);
  expected[0][3 * 4 + 1] = INFINITY;
  ASSERT_TRUE(interpret(math, expected).is_ok());
  for (const Target& t : hosts(1)) {
    const auto instance = matmul_cpu().apply(w, t);
    ASSERT_TRUE(instance.is_ok()) << instance.message();
    const auto program =
        (*instance)->instantiate((*instance)->space().at((*instance)->space().first_index()));
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
