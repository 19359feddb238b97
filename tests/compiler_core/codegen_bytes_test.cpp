// Sums that become bytes: rounded, moved by a zero point and saturated, on every kind of target this host can
// run. What is right is computed here.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler_core/schedule/schedule.h"
#include "compiler_core/te/te.h"
#include "tests/compiler_core/kernel_testing.h"

namespace tuner {
namespace {

// out[i, j] = T(int32(round(min(at_least(x[i, j], LOW - z), HIGH - z))) + z), `lanes` columns at a time; with
// `floats` T(min(at_least(round(x[i, j]) + float32(z), LOW), HIGH)).
Program bytes_of(DType to, int64_t rows, int64_t columns, int64_t lanes, bool floats = false) {
  te::Builder b("bytes");
  const Buffer x = b.input("x", {rows, columns}), z = b.input("z", {1}, to);
  b.compute("out", {rows, columns},
            [&](const te::Indices& i) {
              const Expr zero = cast(DType::kInt32, load(z, {0}));
              const int64_t low = to == DType::kInt8 ? -128 : 0;
              const auto bound = [&](int64_t value) {
                return cast(DType::kFloat32, int_imm(value, DType::kInt32) - zero);
              };
              if (floats) {
                const Expr moved = unary(UnaryOp::kRound, load(x, i)) + cast(DType::kFloat32, zero);
                return cast(to, min(at_least(moved, float_imm(static_cast<double>(low))),
                                    float_imm(static_cast<double>(low + 255))));
              }
              const Expr bounded = min(at_least(load(x, i), bound(low)), bound(low + 255));
              return cast(to, cast(DType::kInt32, unary(UnaryOp::kRound, bounded)) + zero);
            },
            BufferRole::kOutput, {"i", "j"});
  Schedule s(b.finish());
  s.vectorize(s.split(s.axes<2>(s.tensor("out"))[1], lanes).inner);
  const Result<Program> program = s.finish();
  EXPECT_TRUE(program.is_ok()) << program.message();
  return *program;
}

double byte_of(double x, DType to, double zero) {
  const double low = to == DType::kInt8 ? -128 : 0;
  if (std::isnan(x)) return low;
  return std::min(std::max(std::nearbyint(x) + zero, low), low + 255);
}

std::vector<Target> targets() {
  std::vector<Target> found = {host_target()};
  for (const char* name : {"llvm -mcpu=x86-64", "llvm -mcpu=haswell", "llvm -mcpu=skylake-avx512",
                           "llvm -mcpu=cascadelake", "llvm -mcpu=cooperlake"}) {
    const Result<Target> t = parse_target(name);
    EXPECT_TRUE(t.is_ok()) << t.message();
    if (runs_here(*t).is_ok()) found.push_back(*t);
  }
  return found;
}

// Ties, the edges of bytes, of 16 and of 32 bits, and what no integer is. Rows that end inside of a vector.
TEST(CodegenBytes, AreRoundedMovedAndSaturated) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<double> numbers = {NAN,    kInfinity, -kInfinity, 3e9,     -3e9,    1e30,    -1e30,
                                 2147e6, -2147e6,   32767,      32766.5, 32767.5, 32768.5, 40000,
                                 -32768, -32768.5,  -32769,     -40000,  65535,   65536,   -65536,
                                 127.5,  128.5,     -127.5,     -128.5,  254.5,   255.5,   -0.0};
  for (int i = -1100; i <= 1100; ++i) numbers.push_back(i / 4.0);
  constexpr int64_t kColumns = 101;
  const int64_t rows = (std::ssize(numbers) + kColumns - 1) / kColumns;
  numbers.resize(static_cast<size_t>(rows * kColumns), 1);
  for (const Target& t : targets())
    for (const DType to : {DType::kUInt8, DType::kInt8})
      for (const int64_t lanes : {4, 8, 16, 32, 48, 64})
        for (const double zero : to == DType::kInt8 ? std::vector<double>{-128, -3, 0, 127}
                                                    : std::vector<double>{0, 1, 128, 255}) {
          SCOPED_TRACE(str(t.name(), ", ", to, ", ", lanes, " lanes, zero point ", zero));
          for (const bool floats : {false, true}) {
            std::vector<std::vector<double>> args{numbers, {zero}, {}};
            const Status ran = testing::run_compiled(bytes_of(to, rows, kColumns, lanes, floats), args, t, 1);
            ASSERT_TRUE(ran.is_ok()) << ran.message();
            for (size_t i = 0; i < numbers.size(); ++i)
              ASSERT_EQ(args.back()[i], byte_of(numbers[i], to, zero)) << numbers[i] << " " << floats;
          }
        }
}

// A number that is added need not be a byte: 16 bits do not hold it.
TEST(CodegenBytes, AreMovedByAnyInteger) {
  for (const int64_t moved : {-300, 300, 70000}) {
    te::Builder b("bytes");
    const Buffer x = b.input("x", {64});
    b.compute(
        "out", {64},
        [&](const te::Indices& i) {
          const Expr sum =
              unary(UnaryOp::kRound, load(x, i)) + cast(DType::kFloat32, int_imm(moved, DType::kInt32));
          return cast(DType::kUInt8, min(at_least(sum, float_imm(0)), float_imm(255)));
        },
        BufferRole::kOutput);
    Schedule s(b.finish());
    s.vectorize(s.axes<1>(s.tensor("out"))[0]);
    const Result<Program> program = s.finish();
    ASSERT_TRUE(program.is_ok()) << program.message();
    std::vector<double> numbers;
    for (int i = 0; i < 64; ++i) numbers.push_back(8 * i - 100 - static_cast<double>(moved));
    std::vector<std::vector<double>> args{numbers, {}};
    ASSERT_TRUE(testing::run_compiled(*program, args, host_target(), 1).is_ok());
    for (size_t i = 0; i < numbers.size(); ++i)
      EXPECT_EQ(args.back()[i], std::clamp(numbers[i] + static_cast<double>(moved), 0.0, 255.0)) << moved;
  }
}

// Two full vectors become bytes together; what a zero point makes stays outside of the loop.
TEST(CodegenBytes, TakeFewInstructionsInALoop) {
  const Target t = *parse_target("llvm -mcpu=sapphirerapids");
  const auto loop_of = [&](int64_t lanes, bool floats) {
    const Result<std::string> text = emit_asm(bytes_of(DType::kUInt8, 100, lanes, lanes, floats), t);
    EXPECT_TRUE(text.is_ok()) << text.message();
    const size_t end = text->find("\tjl\t"), begin = text->rfind("\n.LBB", end);
    EXPECT_NE(end, std::string::npos);
    EXPECT_NE(begin, std::string::npos);
    return text->substr(begin, end - begin);
  };
  const auto count = [](const std::string& text, const std::string& word) {
    int n = 0;
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
    return n;
  };
  for (const int64_t lanes : {16, 32, 64}) {
    const std::string loop = loop_of(lanes, /*floats=*/false);
    EXPECT_EQ(count(loop, "vcvtps2dq"), lanes / 16) << loop;
    EXPECT_EQ(count(loop, "cvtsi2ss") + count(loop, "broadcast") + count(loop, "movzbl"), 0) << loop;
    EXPECT_EQ(count(loop, "vpmovusdb"), lanes == 16 ? 1 : 0) << loop;
    EXPECT_EQ(count(loop, "vpackuswb"), lanes == 16 ? 0 : 1) << loop;
    EXPECT_EQ(count(loop, "vpaddsw"), lanes / 32) << loop;
  }
  for (const int64_t lanes : {32, 64}) EXPECT_EQ(count(loop_of(lanes, true), "vpackuswb"), 1) << lanes;
}

}  // namespace
}  // namespace tuner
