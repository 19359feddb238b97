// amx.float16: machine code with its instruction gives the exact sums of small numbers, and so does its
// meaning on targets without it.
#include <bit>
#include <random>

#include "compiler_core/runtime/kernel.h"
#include "compiler_core/runtime/thread_pool.h"
#include "tests/compiler_core/amx_target.h"
#include "tests/compiler_core/tile_schedules.h"

namespace tuner {
namespace {

using namespace tuner::testing;

// Of whole numbers below 2048.
uint16_t half(int value) {
  if (value == 0) return 0;
  const auto size = static_cast<unsigned>(std::abs(value));
  const int exponent = std::bit_width(size) - 1;
  return static_cast<uint16_t>((value < 0 ? 0x8000 : 0) | (exponent + 15) << 10 |
                               ((size << (10 - exponent)) & 1023));
}

struct Product {
  int64_t m, n, k;
  Program program() const {
    const Schedule s = tiled_matmul(typed_matmul(DType::kFloat16, DType::kFloat16, m, n, k),
                                    {.rows = 7, .down = 2, .across = 2});
    EXPECT_FALSE(s.refused()) << s.finish().message();
    return s.program();
  }
};

void expect_exact_sums(const Product& p, const Target& target) {
  SCOPED_TRACE(str(p.m, "x", p.n, "x", p.k, " on ", target.name()));
  const Result<Artifact> artifact = compile(p.program(), target);
  ASSERT_TRUE(artifact.is_ok()) << artifact.message();
  const Result<Kernel> kernel = Kernel::load(*artifact);
  ASSERT_TRUE(kernel.is_ok()) << kernel.message();
  const AlignedBuffer a(2 * p.m * p.k), b(2 * p.k * p.n), c(4 * p.m * p.n),
      packed(artifact->manifest.pack_args.back().bytes), workspace(kernel->workspace_bytes(1));
  std::mt19937 random(3);
  std::vector<int> numbers;
  for (const auto* operand : {&a, &b})
    for (int64_t i = 0; i < operand->bytes() / 2; ++i) {
      numbers.push_back(std::uniform_int_distribution<int>(-9, 9)(random));
      operand->as<uint16_t>()[i] = half(numbers.back());
    }
  ThreadPool pool(1);
  const tuner_runtime runtime = pool.runtime(workspace.data());
  void* pack_args[] = {b.data(), packed.data()};
  void* args[] = {a.data(), packed.data(), c.data()};
  ASSERT_TRUE(kernel->pack(pack_args, runtime).is_ok());
  ASSERT_TRUE(kernel->call(args, runtime).is_ok());
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j) {
      int sum = 0;
      for (int64_t k = 0; k < p.k; ++k)
        sum +=
            numbers[static_cast<size_t>(i * p.k + k)] * numbers[static_cast<size_t>(p.m * p.k + k * p.n + j)];
      ASSERT_EQ(c.as<float>()[i * p.n + j], static_cast<float>(sum)) << i << ", " << j;
    }
}

TEST(IntrinsicAmxFp16, SumsAreExactWithAndWithoutTheInstruction) {
  const std::string how = run_amx_kernels_here();
  if (how.empty()) GTEST_SKIP() << "AMX is of x86 CPUs";
  const bool has_tiles = how == "emulated" || runs_here(amx_fp16_target()).is_ok();
  for (const Product& p : {Product{16, 16, 32}, {21, 35, 70}, {3, 50, 41}}) {
    if (has_tiles) expect_exact_sums(p, amx_fp16_target());
    expect_exact_sums(p, host_target());
  }
  if (!has_tiles) GTEST_SKIP() << "this CPU has tiles, but not of float16: only its meaning was run";
}

TEST(IntrinsicAmxFp16, UsesTheInstruction) {
  const Result<std::string> text = emit_asm(Product{32, 32, 64}.program(), amx_fp16_target());
  ASSERT_TRUE(text.is_ok()) << text.message();
  EXPECT_NE(text->find("tdpfp16ps"), std::string::npos) << *text;
}

}  // namespace
}  // namespace tuner
