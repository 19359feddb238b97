// Dot products as machine code: which instructions, and the same numbers as the oracle on every kind of
// target this host can run.
#include <gmock/gmock.h>

#include "compiler_core/schedule/schedule.h"
#include "tests/compiler_core/kernel_testing.h"
#include "tests/compiler_core/programs.h"
#include "tests/templates/aarch64_run.h"

namespace tuner {
namespace {

using namespace tuner::testing;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// C = A B by dot products: two rows of sums in registers, b packed in groups of a lane.
Program dot_matmul(DType a, DType b, int64_t n, int64_t k, int64_t lanes, int64_t rows = 2) {
  Schedule s(typed_matmul(a, b, rows, n, k));
  const int64_t group = 4 / dtype_bytes(a);
  s.pack(s.tensor("B"), {{1, lanes}, {0, group}, {1, lanes, true}, {0, group, true}});
  const Tensor c = s.tensor("C"), sums = s.cache_write(c, MemoryScope::kRegister);
  const auto [m, column] = s.axes<2>(c);
  const auto [panel, lane] = s.split(column, lanes);
  s.reorder({panel, m, lane});
  s.compute_at(sums, panel);
  s.unroll(m);
  s.vectorize(lane);
  const auto [row, sum_lane] = s.inner_axes<2>(sums);
  const auto [outer, inner] = s.split(s.reduce_axes<1>(sums)[0], group);
  s.reorder({outer, row, sum_lane, inner});
  s.decompose_reduction(sums, outer);
  s.unroll(row);
  s.dot(inner);
  s.vectorize(sum_lane);
  const Result<Program> program = s.finish();
  EXPECT_TRUE(program.is_ok()) << program.message();
  return *program;
}

Target target(const char* name) {
  const Result<Target> t = parse_target(name);
  EXPECT_TRUE(t.is_ok()) << t.message();
  return *t;
}

std::vector<Target> targets() {
  std::vector<Target> found = {host_target()};
  for (const char* name : {"llvm -mcpu=x86-64", "llvm -mcpu=haswell", "llvm -mcpu=skylake-avx512",
                           "llvm -mcpu=cascadelake", "llvm -mcpu=cooperlake", "llvm -mcpu=alderlake"})
    if (const Target t = target(name); runs_here(t).is_ok()) found.push_back(t);
  return found;
}

// Groups that divide and do not; columns of whole vectors and not.
TEST(CodegenDot, EqualsTheOracleOnEveryTarget) {
  for (const Target& t : targets())
    for (const int64_t k : {1, 2, 3, 4, 5, 7, 8, 33})
      for (const int64_t n : {t.f32_lanes(), 2 * t.f32_lanes() + 3}) {
        SCOPED_TRACE(str(t.name(), ", k ", k, ", n ", n));
        EXPECT_TRUE(matches_oracle(dot_matmul(DType::kBFloat16, DType::kBFloat16, n, k, t.f32_lanes()), 1,
                                   2e-6, 1, t));
        for (const DType a : {DType::kUInt8, DType::kInt8})
          for (const DType b : {DType::kUInt8, DType::kInt8})
            EXPECT_TRUE(matches_oracle(dot_matmul(a, b, n, k, t.f32_lanes()), 1, 0, 1, t)) << a << " " << b;
      }
}

// The largest bytes: an instruction that sums pairs in 16 bits would saturate.
TEST(CodegenDot, SumsOfTheLargestBytesAreExact) {
  for (const Target& t : targets()) {
    const Program p = dot_matmul(DType::kUInt8, DType::kInt8, t.f32_lanes(), 1024, t.f32_lanes(), 1);
    for (const double b : {-128.0, 127.0}) {
      std::vector<std::vector<double>> args = {
          std::vector<double>(1024, 255.0),
          std::vector<double>(static_cast<size_t>(1024 * t.f32_lanes()), b),
          {}};
      const Status status = run_compiled(p, args, t, 1);
      ASSERT_TRUE(status.is_ok()) << status.message();
      for (const double sum : args[2]) EXPECT_EQ(sum, 1024 * 255 * b) << t.name();
    }
  }
}

std::string assembly(DType a, DType b, const char* name) {
  const Target t = target(name);
  const Result<std::string> text = emit_asm(dot_matmul(a, b, t.f32_lanes(), 16, t.f32_lanes()), t);
  EXPECT_TRUE(text.is_ok()) << text.message();
  return text.is_ok() ? *text : std::string();
}

TEST(CodegenDot, UsesTheInstructionWhereTheTargetHasIt) {
  const auto bytes = [](const char* name) { return assembly(DType::kUInt8, DType::kInt8, name); };
  const auto halves = [](const char* name) { return assembly(DType::kBFloat16, DType::kBFloat16, name); };
  for (const char* name : {"llvm -mcpu=cascadelake", "llvm -mcpu=znver5", "llvm -mcpu=alderlake"})
    EXPECT_THAT(bytes(name), HasSubstr("vpdpbusd")) << name;
  for (const char* name :
       {"llvm -mcpu=haswell", "llvm -mcpu=skylake-avx512", "llvm -mcpu=znver5 -mattr=-avx512vnni"}) {
    EXPECT_THAT(bytes(name), HasSubstr("vpmaddwd")) << name;
    EXPECT_THAT(bytes(name), Not(HasSubstr("vpdpbusd"))) << name;
    EXPECT_THAT(bytes(name), Not(HasSubstr("vpmaddubsw"))) << name;
  }
  // Both sides signed: no such instruction before AVX-VNNI-INT8.
  EXPECT_THAT(assembly(DType::kInt8, DType::kInt8, "llvm -mcpu=znver5"), Not(HasSubstr("vpdpbusd")));
  for (const char* name : {"llvm -mcpu=cooperlake", "llvm -mcpu=znver4"})
    EXPECT_THAT(halves(name), HasSubstr("vdpbf16ps")) << name;
  for (const char* name : {"llvm -mcpu=haswell", "llvm -mcpu=cascadelake"}) {
    EXPECT_THAT(halves(name), Not(HasSubstr("vdpbf16ps"))) << name;
    EXPECT_THAT(halves(name), HasSubstr("vfmadd")) << name;
  }
}

constexpr const char *kPlainArm = "llvm -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu",
                     *kArmWithDots = "llvm -mcpu=neoverse-n1 -mtriple=aarch64-linux-gnu",
                     *kArmWithMixedDots = "llvm -mcpu=neoverse-n2 -mtriple=aarch64-linux-gnu";

TEST(CodegenDot, UsesTheInstructionsOfAarch64) {
  EXPECT_THAT(assembly(DType::kInt8, DType::kInt8, kArmWithDots), HasSubstr("\tsdot\t"));
  EXPECT_THAT(assembly(DType::kUInt8, DType::kUInt8, kArmWithDots), HasSubstr("\tudot\t"));
  EXPECT_THAT(assembly(DType::kUInt8, DType::kInt8, kArmWithMixedDots), HasSubstr("\tusdot\t"));
  EXPECT_THAT(assembly(DType::kBFloat16, DType::kBFloat16, kPlainArm), HasSubstr("fmla"));
  const std::string plain = assembly(DType::kUInt8, DType::kInt8, kPlainArm);
  EXPECT_THAT(plain, HasSubstr("sadalp"));
  EXPECT_THAT(plain, Not(HasSubstr("dot\t")));
  // Signed products of the unsigned side less 128; what that takes away is added behind the loop, once.
  const std::string mixed = assembly(DType::kUInt8, DType::kInt8, kArmWithDots);
  EXPECT_THAT(mixed, AllOf(HasSubstr("\tsdot\t"), HasSubstr("\teor\t")));
  const size_t loop_end = mixed.find("b.l"), shift = mixed.find("\tshl\t");
  EXPECT_EQ(mixed.find("\tshl\t", shift + 1), std::string::npos) << mixed;
  EXPECT_LT(loop_end, shift) << mixed;
}

// As EqualsTheOracleOnEveryTarget, and the largest bytes.
TEST(CodegenDot, EqualsTheOracleOnAarch64UnderQemu) {
  if (const Status tools = aarch64_tools(); !tools) GTEST_SKIP() << tools.message();
  for (const char* name : {kPlainArm, kArmWithDots, kArmWithMixedDots}) {
    Aarch64Batch batch(target(name));
    std::vector<std::vector<double>> expected;
    const auto add = [&](DType a, DType b, int64_t n, int64_t k, std::vector<std::vector<double>> args) {
      const Program math = typed_matmul(a, b, 2, n, k);
      ASSERT_TRUE(interpret(math, args).is_ok());
      const Status added = batch.add(dot_matmul(a, b, n, k, 4), math, args, {}, str(a, " ", b, " k ", k));
      ASSERT_TRUE(added) << added.message();
      expected.push_back(args.back());
    };
    for (const DType a : {DType::kUInt8, DType::kInt8})
      for (const DType b : {DType::kUInt8, DType::kInt8}) {
        for (const int64_t k : {1, 3, 4, 5, 8, 33})
          for (const int64_t n : {4, 11}) add(a, b, n, k, random_args(typed_matmul(a, b, 2, n, k), 7));
        for (const double high : {a == DType::kUInt8 ? 255.0 : 127.0, a == DType::kUInt8 ? 0.0 : -128.0})
          for (const double other : {b == DType::kUInt8 ? 255.0 : 127.0, b == DType::kUInt8 ? 0.0 : -128.0})
            add(a, b, 4, 1024, {std::vector<double>(2048, high), std::vector<double>(4096, other), {}});
      }
    const auto outputs = batch.run();
    ASSERT_TRUE(outputs.is_ok()) << outputs.message();
    EXPECT_EQ(*outputs, expected) << name;
  }
}

// B as it is stored: no lane's elements lie side by side, so it is the plain loop.
TEST(CodegenDot, OperandsThatAreNotPackedRunAsALoop) {
  Schedule s(typed_matmul(DType::kUInt8, DType::kInt8, 3, 20, 9));
  const Tensor c = s.tensor("C");
  const auto [m, n] = s.axes<2>(c);
  const auto [outer, inner] = s.split(s.reduce_axes<1>(c)[0], 4);
  s.reorder({m, outer, n, inner});
  s.decompose_reduction(c, outer);
  s.dot(inner);
  s.vectorize(n);
  const Result<Program> program = s.finish();
  ASSERT_TRUE(program.is_ok()) << program.message();
  EXPECT_TRUE(matches_oracle(*program, 1, 0));
}

}  // namespace
}  // namespace tuner
