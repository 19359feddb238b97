// Tile intrinsics as machine code: which instructions, and the oracle's numbers from AMX code (on the
// hardware, or by the emulator of tests/support) and from targets without it.
#include <gmock/gmock.h>

#include "tests/compiler_core/amx_target.h"
#include "tests/compiler_core/kernel_testing.h"
#include "tests/compiler_core/tile_schedules.h"
#include "tests/random_seed.h"

namespace tuner {
namespace {

using namespace tuner::testing;
using ::testing::HasSubstr;
using ::testing::Not;

Program tiled(DType a, DType b, int64_t m, int64_t n, int64_t k, const TileShape& tile,
              bool parallel = false) {
  const Result<Program> program = tiled_matmul(typed_matmul(a, b, m, n, k), tile, parallel).finish();
  EXPECT_TRUE(program.is_ok()) << program.message();
  return *program;
}

int count(const std::string& text, const std::string& word) {
  int n = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

class CodegenIntrinsic : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string how = run_amx_kernels_here();
    if (how.empty()) GTEST_SKIP() << "AMX is of x86 CPUs";
    RecordProperty("amx", how);
    is_emulated = how == "emulated";
  }
  bool is_emulated = false;
};

// 2 x 2 tiles of C: four loads and four products in the loop, the configuration before it.
TEST_F(CodegenIntrinsic, TheInnerLoopIsLoadsAndProducts) {
  const Result<std::string> text = emit_asm(
      tiled(DType::kBFloat16, DType::kBFloat16, 32, 32, 128, {.down = 2, .across = 2}), amx_target());
  ASSERT_TRUE(text.is_ok()) << text.message();
  const size_t first = text->find("tileloadd"), last = text->rfind("tdpbf16ps");
  ASSERT_NE(first, std::string::npos) << *text;
  const std::string loop = text->substr(first, last + 1 - first);
  EXPECT_EQ(count(loop, "tileloadd"), 4) << loop;
  EXPECT_EQ(count(loop, "tdpbf16ps"), 3) << loop;  // and the last one, where the text is cut
  EXPECT_THAT(loop, Not(HasSubstr("ldtilecfg")));
  EXPECT_EQ(count(*text, "ldtilecfg"), 1);
  EXPECT_EQ(count(*text, "tilerelease"), 1);
  EXPECT_EQ(count(*text, "tilezero"), 4);
  EXPECT_EQ(count(*text, "tilestored"), 4);
}

TEST_F(CodegenIntrinsic, EqualsTheOracle) {
  for (const uint32_t seed : Seeds(/*fixed=*/1, 40)) {
    std::mt19937 random(seed);
    const auto between = [&](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(random);
    };
    const bool is_bytes = between(0, 1) == 0;
    const auto byte = [&] { return between(0, 1) == 0 ? DType::kInt8 : DType::kUInt8; };
    const DType a = is_bytes ? byte() : DType::kBFloat16, b = is_bytes ? byte() : DType::kBFloat16;
    const TileShape tile{.rows = between(1, 16), .down = between(1, 2), .across = between(1, 2)};
    const int threads = static_cast<int>(between(1, 3));
    const Program p =
        tiled(a, b, between(1, 70), between(2, 70), between(5, 150), tile, /*parallel=*/threads > 1);
    const double tolerance = is_bytes ? 0 : 2e-6;
    SCOPED_TRACE(to_text(p));
    ASSERT_TRUE(matches_oracle(p, threads, tolerance, seed, amx_target(threads)));
    ASSERT_TRUE(matches_oracle(p, threads, tolerance, seed, host_target(threads))) << "without AMX";
  }
}

// Each thread configures its registers once a call, whatever it executes, and releases them.
TEST_F(CodegenIntrinsic, RegistersAreConfiguredOnceACallAndThread) {
  if (!is_emulated) GTEST_SKIP() << "the hardware does not count instructions for us";
  for (const int threads : {1, 3}) {
    const Program p = tiled(DType::kInt8, DType::kInt8, 96, 96, 128, {.down = 2, .across = 2}, threads > 1);
    const AmxCounts before = amx_counts();
    ASSERT_TRUE(matches_oracle(p, threads, 0, 1, amx_target(threads)));
    const AmxCounts after = amx_counts();
    EXPECT_EQ(after.configurations - before.configurations, threads);
    EXPECT_EQ(after.releases - before.releases, threads);
    EXPECT_EQ(after.products - before.products, 6 * 6 * 2);
    EXPECT_EQ(after.loads - before.loads, 9 * 2 * 4);
  }
}

std::string refusal(int64_t down, int64_t across) {
  return compile(tiled(DType::kInt8, DType::kInt8, 96, 96, 128, {.down = down, .across = across}),
                 amx_target())
      .message();
}

TEST_F(CodegenIntrinsic, MoreTilesThanRegistersAreRefused) {
  EXPECT_EQ(refusal(3, 1), "");
  EXPECT_EQ(
      refusal(3, 2),
      "matmul: fragment A.packed.fragment takes 3 tiles of 16 rows of 64 bytes, and 6 are taken; there are 8 "
      "of 16 rows of 64");
}

// Largest values: sums are exact, and wrap as those of int32 do.
TEST_F(CodegenIntrinsic, BytesAtTheirLimitsAreExact) {
  const Program p = tiled(DType::kUInt8, DType::kInt8, 16, 16, 1024, {});
  for (const double b : {-128.0, 127.0}) {
    std::vector<std::vector<double>> args = {
        std::vector<double>(16 * 1024, 255.0), std::vector<double>(1024 * 16, b), {}};
    const Status status = run_compiled(p, args, amx_target(), 1);
    ASSERT_TRUE(status.is_ok()) << status.message();
    for (const double sum : args[2]) ASSERT_EQ(sum, 1024 * 255 * b);
  }
}

// Infinities are those of the plain sum; denormal inputs count as zeros.
TEST_F(CodegenIntrinsic, InfinitiesAndDenormals) {
  const Program p = tiled(DType::kBFloat16, DType::kBFloat16, 2, 3, 40, {});
  std::vector<std::vector<double>> args = {
      std::vector<double>(2 * 40, 1.0), std::vector<double>(40 * 3, 1.0), {}};
  args[0][5] = HUGE_VAL;
  args[0][40 + 7] = 0x1p-130;
  args[1][7 * 3 + 1] = 0x1p100;
  const Status status = run_compiled(p, args, amx_target(), 1);
  ASSERT_TRUE(status.is_ok()) << status.message();
  EXPECT_EQ(args[2][0], HUGE_VAL);
  EXPECT_EQ(args[2][3], 39);
  EXPECT_EQ(args[2][4], 39);  // 2^-130 * 2^100 is lost either way
}

// The emulator says no where the hardware does. Codes by hand.
#if defined(__x86_64__)
void tile_zero() { asm volatile(".byte 0xc4, 0xe2, 0x7b, 0x49, 0xc0"); }  // tilezero tmm0
void configure(int rows, int row_bytes) {
  alignas(64) unsigned char config[64] = {1};
  config[16] = static_cast<unsigned char>(row_bytes), config[48] = static_cast<unsigned char>(rows);
  asm volatile(".byte 0xc4, 0xe2, 0x78, 0x49, 0x00" ::"a"(config), "m"(config));  // ldtilecfg [rax]
}

TEST_F(CodegenIntrinsic, TheEmulatorRefusesAWrongConfiguration) {
  if (!is_emulated) GTEST_SKIP() << "this is the emulator's";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(tile_zero(), ::testing::ExitedWithCode(86), "a tile instruction before ldtilecfg");
  EXPECT_EXIT(configure(17, 64), ::testing::ExitedWithCode(86), "a tile larger than 16 rows of 64 bytes");
  EXPECT_EXIT(
      {
        configure(3, 64);
        tile_zero();
        asm volatile(".byte 0xc4, 0xe2, 0x7b, 0x49, 0xc8");  // tilezero tmm1
      },
      ::testing::ExitedWithCode(86), "a register that the configuration leaves out");
  EXPECT_EXIT(
      {
        configure(3, 64);
        asm volatile(".byte 0xc4, 0xe2, 0x7a, 0x5c, 0xc0");  // tdpbf16ps tmm0, tmm0, tmm0
      },
      ::testing::ExitedWithCode(86), "a product with one register twice");
}
#endif

}  // namespace
}  // namespace tuner
