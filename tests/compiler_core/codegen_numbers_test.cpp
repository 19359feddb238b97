// Numbers of small types, and rounding, in machine code with the instructions for it and without.
#include "compiler_core/codegen/cpu_backend.h"
#include "tests/compiler_core/kernel_testing.h"

#include <gtest/gtest.h>

namespace tuner {
namespace {

using namespace tuner::testing;

constexpr LoopKind kVector = LoopKind::kVectorized;

// With an instruction and without one, in both types: around ties, and where numbers have no place for a
// fraction.
TEST(CodegenNumbers, RoundsToTheNearestTiesToEven) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64})
    for (const Target& target : {host_target(), *parse_target("llvm -mcpu=x86-64")}) {
      if (target.family != host_target().family) continue;
      const double large = dtype == DType::kFloat32 ? 0x1p23 : 0x1p52;
      std::vector<double> numbers = {0, 0.25, 0.5, 0.75, 1.5, 2.5, 3.5, 126.5, 127.5, 8191.5, INFINITY};
      for (const double v : {large / 4, large / 2, large, 2 * large})
        for (const double step : {-1.5, -0.5, 0.0, 0.5, 1.0, 1.5}) numbers.push_back(v + step);
      for (size_t n = numbers.size(); n-- > 0;) numbers.push_back(-numbers[n]);
      if (dtype == DType::kFloat32)
        for (double& v : numbers) v = static_cast<float>(v);
      const auto count = std::ssize(numbers);
      const Buffer x = make_buffer("x", dtype, {count}, MemoryScope::kGlobal, BufferRole::kInput);
      const Buffer y = make_buffer("y", dtype, {count}, MemoryScope::kGlobal, BufferRole::kOutput);
      const Var i = make_var("i");
      const Stmt store = make_store(y, {i}, unary(UnaryOp::kRound, load(x, {i})));
      const Program p{"round", {x, y}, make_for(i, count, store, AxisKind::kSpatial, LoopKind::kVectorized)};
      std::vector<std::vector<double>> args = {numbers, {}};
      const Status ran = run_compiled(p, args, target, 1);
      ASSERT_TRUE(ran) << ran.message();
      for (size_t n = 0; n < numbers.size(); ++n)
        EXPECT_EQ(args[1][n], std::nearbyint(numbers[n])) << numbers[n] << " on " << target.name();
    }
}

// Lanes of 16-bit floats are combined in float32 and rounded once: the sum, the least and the largest of 37
// numbers, added to what was there.
TEST(CodegenNumbers, LanesOfSixteenBitsAreCombinedInFloat32) {
  constexpr int64_t kCount = 37;
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16})
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kMax})
      for (const char* cpu : {"", "haswell", "x86-64"}) {
        const Target target = *cpu == 0 ? host_target() : *parse_target(str("llvm -mcpu=", cpu));
        if (target.family != host_target().family || !runs_here(target)) continue;
        const Buffer x = make_buffer("x", dtype, {kCount}, MemoryScope::kGlobal, BufferRole::kInput);
        const Buffer y = make_buffer("y", dtype, {1}, MemoryScope::kGlobal, BufferRole::kOutput);
        const Var l = make_var("l");
        const Stmt start = make_store(y, {0}, float_imm(2, dtype));
        const Stmt step = make_reduce(y, {0}, op, float_imm(0, dtype), load(x, {l}), Expr());
        const Program p{
            "lanes", {x, y}, make_seq({start, make_for(l, kCount, step, AxisKind::kReduce, kVector)})};
        std::vector<std::vector<double>> args(2);
        double sum = 2, least = 2, largest = 2;
        for (int64_t k = 0; k < kCount; ++k) {
          const double v = static_cast<double>((k * 7) % 23) - 5.5;  // exact in both types
          args[0].push_back(v);
          sum += v, least = std::min(least, v), largest = std::max(largest, v);
        }
        const Status ran = run_compiled(p, args, target, 1);
        ASSERT_TRUE(ran) << ran.message();
        const double expected = op == ReduceOp::kSum ? sum : op == ReduceOp::kMin ? least : largest;
        const double unit = dtype == DType::kFloat16 ? 0x1p-11 : 0x1p-8;
        EXPECT_NEAR(args[1][0], expected, unit * std::fabs(expected)) << dtype << " on " << target.name();
      }
}

// What requantised sums become: bounds and zero point around a rounding, bytes at the end. Far beyond the
// bounds, too, where the sum is no number of int32.
TEST(CodegenNumbers, BytesAreRoundedAndSaturated) {
  const std::vector<double> numbers = {0,       0.5,        1.5,     2.5,    -0.5,    -1.5,     254.5,
                                       255.5,   255,        256,     -127.5, 300,     -300,     0x1p30,
                                       -0x1p30, 0x1p31,     -0x1p31, 0x1p40, -0x1p40, INFINITY, -INFINITY,
                                       NAN,     2147483520, 126.5,   -7.5,   3};
  for (const char* cpu : {"", "haswell", "x86-64"})
    for (const DType dtype : {DType::kUInt8, DType::kInt8})
      for (const double zero : {0.0, 3.0, dtype == DType::kUInt8 ? 255.0 : -128.0}) {
        const Target target = *cpu == 0 ? host_target() : *parse_target(str("llvm -mcpu=", cpu));
        if (target.family != host_target().family || !runs_here(target)) continue;
        const auto count = std::ssize(numbers);
        const Buffer x = make_buffer("x", DType::kFloat32, {count}, MemoryScope::kGlobal, BufferRole::kInput);
        const Buffer z = make_buffer("z", dtype, {1}, MemoryScope::kGlobal, BufferRole::kInput);
        const Buffer y = make_buffer("y", dtype, {count}, MemoryScope::kGlobal, BufferRole::kOutput);
        const Var i = make_var("i");
        const Expr zero_point = cast(DType::kInt32, load(z, {0}));
        const int64_t low = dtype == DType::kInt8 ? -128 : 0;
        const auto bound = [&](int64_t value) {
          return cast(DType::kFloat32, int_imm(value, DType::kInt32) - zero_point);
        };
        const Expr bounded = min(at_least(load(x, {i}), bound(low)), bound(low + 255));
        const Expr whole = cast(DType::kInt32, unary(UnaryOp::kRound, bounded));
        const Stmt store = make_store(y, {i}, cast(dtype, whole + zero_point));
        const Program p{"bytes", {x, z, y}, make_for(i, count, store, AxisKind::kSpatial, kVector)};
        std::vector<std::vector<double>> args = {numbers, {zero}, {}}, expected = args;
        ASSERT_TRUE(interpret(p, expected).is_ok());
        const Status ran = run_compiled(p, args, target, 1);
        ASSERT_TRUE(ran) << ran.message();
        for (size_t n = 0; n < numbers.size(); ++n)
          EXPECT_EQ(args[2][n], expected[2][n]) << numbers[n] << " + " << zero << " on " << target.name();
      }
}

// The last lane of each row alone, after all rows had their others: it must not reach into the next row.
TEST(CodegenNumbers, ASmallElementIsStoredByItself) {
  for (const DType dtype : {DType::kUInt8, DType::kInt8, DType::kBFloat16}) {
    constexpr int64_t kRows = 3, kColumns = 17, kLanes = 16;
    const DType wide = is_float(dtype) ? DType::kFloat32 : DType::kInt32;
    const Buffer x = make_buffer("x", wide, {kRows, kColumns}, MemoryScope::kGlobal, BufferRole::kInput);
    const Buffer y = make_buffer("y", dtype, {kRows, kColumns}, MemoryScope::kGlobal, BufferRole::kOutput);
    const Var block = make_var("block"), row = make_var("row"), lane = make_var("lane");
    const Expr column = Expr(block) * kLanes + Expr(lane);
    const Stmt store = make_store(y, {row, column}, cast(dtype, load(x, {row, column})));
    const Stmt lanes =
        make_for(lane, kLanes, make_if(column < kColumns, store), AxisKind::kSpatial, LoopKind::kVectorized);
    const Program p{"tails", {x, y}, make_for(block, 2, make_for(row, kRows, lanes))};
    std::vector<std::vector<double>> args(2);
    for (int64_t i = 0; i < kRows * kColumns; ++i) args[0].push_back(static_cast<double>(1 + i));
    const std::vector<double> expected = args[0];
    const Status ran = run_compiled(p, args, host_target(), 1);
    ASSERT_TRUE(ran) << ran.message();
    EXPECT_EQ(args[1], expected) << dtype;
  }
}

// Values of bfloat16 are computed in float32 and rounded once; copies and padding move bits.
TEST(CodegenNumbers, Bfloat16RoundsToTheNearest) {
  const Buffer x = input("x", {21}, DType::kBFloat16), y = output("y", {21}, DType::kBFloat16);
  for (const char* name : {"cpu", "llvm -mcpu=x86-64 -threads=1", "llvm -mcpu=haswell -threads=1"}) {
    const Result<Target> target = resolve_cpu_target(name);
    ASSERT_TRUE(target) << target.message();
    for (const LoopKind kind : {LoopKind::kSerial, kVector}) {
      const Program p{"rounding", {x, y}, loop("i", 21, kind, [&](Expr i) {
                        const Expr third = load(x, {i}) * float_imm(1.0 / 3, DType::kBFloat16);
                        return make_store(y, {i}, select(i < 17, third, float_imm(0, DType::kBFloat16)));
                      })};
      std::vector<std::vector<double>> args = random_args(p, 1);
      const std::vector<double> from = args[0];
      const Status status = run_compiled(p, args, *target, 1);
      ASSERT_TRUE(status.is_ok()) << status.message();
      for (size_t i = 0; i < 21; ++i) {
        const float third = static_cast<float>(from[i]) * rounded_to_bfloat16(1.0f / 3);
        EXPECT_EQ(args[1][i], i < 17 ? rounded_to_bfloat16(third) : 0) << name << ", element " << i;
      }
    }
  }
}

// Every float16 becomes the same number in float32; every float32 at, between and beside two of them the
// nearer one, of two as near the even one. With instructions and without.
TEST(CodegenNumbers, Float16OfEverySize) {
  std::vector<double> halves, numbers;
  for (uint32_t bits = 0; bits < 0x8000; ++bits)
    for (const double sign : {1.0, -1.0}) halves.push_back(sign * float16_value(static_cast<uint16_t>(bits)));
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const auto low = static_cast<float>(float16_value(static_cast<uint16_t>(bits)));
    const float high =
        bits == 0x7bff ? 65536 : static_cast<float>(float16_value(static_cast<uint16_t>(bits + 1)));
    const float between = (low + high) / 2;
    for (const float v : {low, between, std::nextafter(between, low), std::nextafter(between, high)})
      numbers.insert(numbers.end(), {v, -v});
  }
  numbers.insert(numbers.end(), {1e38, -1e38, INFINITY, -INFINITY, 1e-40, NAN});
  const auto convert = [](DType from, DType to, const std::vector<double>& x, const Target& target) {
    constexpr int64_t kLanes = 64;
    const int64_t n = std::ssize(x);
    const Buffer in = input("x", {n}, from), out = output("y", {n}, to);
    const Var block = make_var("block"), lane = make_var("lane");
    const Expr i = Expr(block) * kLanes + Expr(lane);
    const Stmt store = make_if(i < n, make_store(out, {i}, cast(to, load(in, {i}))));
    const Program p{"convert",
                    {in, out},
                    make_for(block, (n + kLanes - 1) / kLanes,
                             make_for(lane, kLanes, store, AxisKind::kSpatial, LoopKind::kVectorized))};
    std::vector<std::vector<double>> args = {x, {}};
    const Status status = run_compiled(p, args, target, 1);
    EXPECT_TRUE(status.is_ok()) << status.message();
    return args[1];
  };
  for (const char* name : {"cpu", "llvm -mcpu=x86-64 -threads=1", "llvm -mcpu=haswell -threads=1"}) {
    SCOPED_TRACE(name);
    const Result<Target> target = resolve_cpu_target(name);
    ASSERT_TRUE(target) << target.message();
    const std::vector<double> wide = convert(DType::kFloat16, DType::kFloat32, halves, *target);
    for (size_t i = 0; i < halves.size(); ++i)
      ASSERT_TRUE(wide[i] == halves[i] || (std::isnan(wide[i]) && std::isnan(halves[i]))) << halves[i];
    const std::vector<double> narrow = convert(DType::kFloat32, DType::kFloat16, numbers, *target);
    for (size_t i = 0; i < numbers.size(); ++i) {
      const double x = numbers[i];
      const double expected =
          std::abs(x) >= 65520 ? std::copysign(INFINITY, x) : rounded_to_float16(static_cast<float>(x));
      ASSERT_TRUE(narrow[i] == expected || (std::isnan(x) && std::isnan(narrow[i])))
          << x << " is " << narrow[i];
    }
  }
}

}  // namespace
}  // namespace tuner
