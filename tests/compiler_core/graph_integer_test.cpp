// What becomes of a number that an integer type does not hold: by Cast and Pow, in the reference and in
// machine code. Expected is what the page says (docs/models_reference.md), written out.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "compiler_core/graph/builder.h"
#include "compiler_core/graph/operator.h"
#include "compiler_core/graph/reference.h"
#include "tests/compiler_core/kernel_testing.h"

namespace tuner::graph {
namespace {

using Numbers = std::vector<double>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = HUGE_VAL;

// One operator on these numbers, repeated so that vectors are full and a tail is left.
class OneNode {
 public:
  OneNode(const std::string& op, DType dtype, Numbers x) : op_(op), dtype_(dtype), x_(std::move(x)) {}

  OneNode& to(DType dtype) {
    attributes_["to"] = std::string(dtype_name(dtype));
    return *this;
  }
  // The second operand: one number.
  OneNode& exponent(DType dtype, double e) {
    second_ = b_.constant("e", {dtype, {}}, Constant::of(Numbers{e}, dtype));
    return *this;
  }
  OneNode& word(const std::string& attribute, const std::string& value) {
    attributes_[attribute] = value;
    return *this;
  }
  // By the reference, and as machine code of the CPUs that this one can be.
  void expect(const Numbers& expected) {
    SCOPED_TRACE(str(op_, " of ", dtype_));
    constexpr int64_t kTimes = 7;
    Numbers all;
    for (int64_t k = 0; k < kTimes; ++k) all.insert(all.end(), x_.begin(), x_.end());
    std::vector<ValueId> inputs{b_.input("x", {dtype_, {std::ssize(all)}})};
    if (second_ != kNoValue) inputs.push_back(second_);
    const auto made = b_.add({.name = "n", .op = op_, .attributes = attributes_, .inputs = inputs}, {"y"});
    ASSERT_TRUE(made.is_ok()) << made.message();
    const Graph graph = b_.finish(*made);
    const auto reference = run_reference(graph, {all}, interpret);
    ASSERT_TRUE(reference.is_ok()) << reference.message();
    expect_all((*reference)[0], expected, "reference");
    const NodeProgram node = program_of(graph, graph.nodes[0]);
    for (const char* name : {"llvm -mcpu=x86-64-v2", "llvm -mcpu=haswell", "llvm -mcpu=skylake-avx512"}) {
      const Target target = *parse_target(name);
      if (!runs_here(target)) continue;
      std::vector<Numbers> args;
      for (const ValueId v : node.reads)
        args.push_back(graph[v].constant ? graph[v].constant->numbers(graph[v].type.dtype) : all);
      args.resize(node.program.args.size());
      const Status ran = tuner::testing::run_compiled(node.program, args, target, 1);
      ASSERT_TRUE(ran.is_ok()) << ran.message();
      expect_all(args.back(), expected, name);
    }
  }

 private:
  static void expect_all(const Numbers& found, const Numbers& expected, const char* by) {
    for (size_t k = 0; k < found.size(); ++k)
      ASSERT_EQ(found[k], expected[k % expected.size()]) << by << ", element " << k;
  }

  std::string op_;
  DType dtype_;
  Numbers x_;
  Attributes attributes_;
  GraphBuilder b_{"test", interpret};
  ValueId second_ = kNoValue;
};

// Reductions of one row.
class OneRow {
 public:
  OneRow(DType dtype, Numbers x) : dtype_(dtype), x_(std::move(x)) {}

  OneRow& expect(const std::string& op, double expected) {
    SCOPED_TRACE(str(op, " of ", dtype_));
    GraphBuilder b("test", interpret);
    const auto made =
        b.add({.name = "n", .op = op, .inputs = {b.input("x", {dtype_, {std::ssize(x_)}})}}, {"y"});
    EXPECT_TRUE(made.is_ok()) << made.message();
    if (!made) return *this;
    const Graph graph = b.finish(*made);
    const auto reference = run_reference(graph, {x_}, interpret);
    EXPECT_TRUE(reference.is_ok()) << reference.message();
    if (reference) {
      EXPECT_EQ((*reference)[0][0], expected) << "reference";
    }
    std::vector<Numbers> args{x_, {}};
    const Status ran =
        tuner::testing::run_compiled(program_of(graph, graph.nodes[0]).program, args, host_target(), 1);
    EXPECT_TRUE(ran.is_ok()) << ran.message();
    EXPECT_EQ(args.back()[0], expected) << "compiled";
    return *this;
  }

 private:
  DType dtype_;
  Numbers x_;
};

const Numbers kFloats = {-kInfinity, -1e30, -300.7, -128.9, -1.5, -0.5,      0.5,
                         1.5,        127.9, 255.9,  300.7,  1e30, kInfinity, kNan};
constexpr double kEnd32 = 0x1p31, kEnd64 = 0x1p63;  // one beyond the greatest

TEST(GraphInteger, CastsOfFloatsEndAtTheTypesNumbers) {
  OneNode("Cast", DType::kFloat32, kFloats)
      .to(DType::kInt8)
      .expect({-128, -128, -128, -128, -1, 0, 0, 1, 127, 127, 127, 127, 127, -128});
  OneNode("Cast", DType::kFloat32, kFloats)
      .to(DType::kUInt8)
      .expect({0, 0, 0, 0, 0, 0, 0, 1, 127, 255, 255, 255, 255, 0});
  OneNode("Cast", DType::kFloat32, kFloats)
      .to(DType::kInt32)
      .expect({-kEnd32, -kEnd32, -300, -128, -1, 0, 0, 1, 127, 255, 300, kEnd32 - 1, kEnd32 - 1, -kEnd32});
  OneNode("Cast", DType::kFloat32, {0x1p31, 0x1.fffffep30, -0x1p31, -0x1.000002p31, 0x1p62, -0x1p62})
      .to(DType::kInt32)
      .expect({kEnd32 - 1, 2147483520, -kEnd32, -kEnd32, kEnd32 - 1, -kEnd32});
  // The greatest int64 is 2^63 as a double.
  OneNode("Cast", DType::kFloat32, {0x1p63, 0x1.fffffep62, -0x1p63, -0x1.000002p63, 0x1p40, kNan, kInfinity})
      .to(DType::kInt64)
      .expect({kEnd64, 0x1.fffffep62, -kEnd64, -kEnd64, 0x1p40, -kEnd64, kEnd64});
}

TEST(GraphInteger, CastsOfSixteenBitsDoSo) {
  const Numbers x = {-kInfinity, -65504, -1.5, 1.5, 65504, kInfinity, kNan};
  OneNode("Cast", DType::kFloat16, x)
      .to(DType::kInt32)
      .expect({-kEnd32, -65504, -1, 1, 65504, kEnd32 - 1, -kEnd32});
  OneNode("Cast", DType::kFloat16, x).to(DType::kInt8).expect({-128, -128, -1, 1, 127, 127, -128});
  OneNode("Cast", DType::kBFloat16, {0x1p100, -0x1p100, -1.5, 0x1p30, kNan})
      .to(DType::kInt64)
      .expect({kEnd64, -kEnd64, -1, 0x1p30, -kEnd64});
}

// ONNX: the higher bits are discarded.
TEST(GraphInteger, CastsOfIntegersKeepTheLowerBits) {
  OneNode("Cast", DType::kInt32, {300, -1, 128, -129, 256}).to(DType::kUInt8).expect({44, 255, 128, 127, 0});
  OneNode("Cast", DType::kInt32, {300, -1, 128, -129, 256}).to(DType::kInt8).expect({44, -1, -128, 127, 0});
  OneNode("Cast", DType::kInt64, {0x1p32 + 5, -0x1p31 - 1, 0x1p31})
      .to(DType::kInt32)
      .expect({5, kEnd32 - 1, -kEnd32});
  OneNode("Cast", DType::kUInt8, {255, 128, 1}).to(DType::kInt8).expect({-1, -128, 1});
}

constexpr double kEndU32 = 0x1p32, kEndU64 = 0x1p64;

TEST(GraphInteger, CastsOfFloatsEndAtTheNumbersOfNewerTypes) {
  OneNode("Cast", DType::kFloat32, {-1e30, -70000, -0.5, 1.5, 40000, 70000, kInfinity, kNan})
      .to(DType::kInt16)
      .expect({-32768, -32768, 0, 1, 32767, 32767, 32767, -32768});
  OneNode("Cast", DType::kFloat32, {-1e30, -70000, -0.5, 1.5, 40000, 70000, kInfinity, kNan})
      .to(DType::kUInt16)
      .expect({0, 0, 0, 1, 40000, 65535, 65535, 0});
  OneNode("Cast", DType::kFloat32, {-1, 3e9, 0x1p31, 0x1.fffffep31, 0x1p32, kInfinity, kNan})
      .to(DType::kUInt32)
      .expect({0, 3e9, 0x1p31, 0x1.fffffep31, kEndU32 - 1, kEndU32 - 1, 0});
  // The greatest uint64 is 2^64 as a double.
  OneNode("Cast", DType::kFloat32, {-1, 0x1p63, 0x1.8p63, 0x1.fffffep63, 0x1p64, kInfinity, kNan})
      .to(DType::kUInt64)
      .expect({0, 0x1p63, 0x1.8p63, 0x1.fffffep63, kEndU64, kEndU64, 0});
}

TEST(GraphInteger, CastsOfUnsignedNumbersHaveNoSign) {
  OneNode("Cast", DType::kUInt32, {0, 1, 0x1p31, kEndU32 - 256})
      .to(DType::kFloat32)
      .expect({0, 1, 0x1p31, kEndU32 - 256});
  OneNode("Cast", DType::kUInt32, {0, 1, 0x1p31, kEndU32 - 1})
      .to(DType::kInt64)
      .expect({0, 1, 0x1p31, kEndU32 - 1});
  OneNode("Cast", DType::kUInt32, {1, 0x1p31, kEndU32 - 1}).to(DType::kInt32).expect({1, -0x1p31, -1});
  OneNode("Cast", DType::kInt32, {-1, -0x1p31, 7}).to(DType::kUInt32).expect({kEndU32 - 1, 0x1p31, 7});
  OneNode("Cast", DType::kUInt16, {65535, 40000, 1}).to(DType::kInt16).expect({-1, -25536, 1});
  OneNode("Cast", DType::kUInt16, {65535, 40000, 1}).to(DType::kFloat32).expect({65535, 40000, 1});
  OneNode("Cast", DType::kInt64, {-1, 70000, 65536}).to(DType::kUInt16).expect({65535, 4464, 0});
  OneNode("Cast", DType::kUInt64, {0x1p63, 5}).to(DType::kFloat64).expect({0x1p63, 5});
  OneNode("Cast", DType::kInt32, {-1, 5}).to(DType::kUInt64).expect({kEndU64, 5});
}

// Above the middle of the type a signed comparison or division would go wrong; sums and products wrap.
TEST(GraphInteger, UnsignedNumbersAreComparedDividedAndWrapped) {
  const struct {
    DType dtype;
    double end, high;  // one beyond the greatest; a number of the upper half
  } types[] = {{DType::kUInt8, 0x1p8, 200},
               {DType::kUInt16, 0x1p16, 40000},
               {DType::kUInt32, 0x1p32, 0x1p31 + 8},
               {DType::kUInt64, 0x1p64, 0x1p63 + 0x1p12}};
  for (const auto& [dtype, end, high] : types) {
    const bool is_wide = dtype == DType::kUInt64;  // its greatest number is none of a double
    const double unit = is_wide ? 0x1p12 : 1;
    const auto with = [&unit, &of = dtype, &most = high](const char* op) {
      return OneNode(op, of, {0, unit, most});
    };
    with("Less").exponent(dtype, high).expect({1, 1, 0});
    with("Greater").exponent(dtype, unit).expect({0, 0, 1});
    with("GreaterOrEqual").exponent(dtype, high).expect({0, 0, 1});
    with("Max").exponent(dtype, unit).expect({unit, unit, high});
    with("Min").exponent(dtype, high).expect({0, unit, high});
    with("Div").exponent(dtype, 2 * unit).expect({0, 0, std::floor(high / 2 / unit)});
    with("Mod").exponent(dtype, 8 * unit).expect({0, unit, std::fmod(high, 8 * unit)});
    with("Add").exponent(dtype, end - high).expect({end - high, end - high + unit, 0});
    with("Sub").exponent(dtype, unit).expect({end - unit, 0, high - unit});
    with("Mul").exponent(dtype, 2).expect({0, 2 * unit, 2 * high - end});
    with("Abs").expect({0, unit, high});
    with("Neg").expect({0, end - unit, end - high});
    with("Sign").expect({0, 1, 1});
  }
  OneNode("Mul", DType::kInt16, {300, -300, 2}).exponent(DType::kInt16, 200).expect({-5536, 5536, 400});
  OneNode("Div", DType::kInt16, {-7, 7, -32768}).exponent(DType::kInt16, 2).expect({-3, 3, -16384});
  OneNode("Less", DType::kInt16, {-7, 7, -32768}).exponent(DType::kInt16, 0).expect({1, 0, 1});
}

TEST(GraphInteger, BitsAreThoseOfTheType) {
  OneNode("BitwiseNot", DType::kUInt32, {0, 5}).expect({kEndU32 - 1, kEndU32 - 6});
  OneNode("BitwiseAnd", DType::kInt16, {-1, 0x0ff0, 7})
      .exponent(DType::kInt16, 0x00ff)
      .expect({0xff, 0xf0, 7});
  OneNode("BitwiseOr", DType::kUInt64, {0, 0x1p63})
      .exponent(DType::kUInt64, 0x1p62)
      .expect({0x1p62, 0x1.8p63});
  OneNode("BitwiseXor", DType::kInt64, {1, 6}).exponent(DType::kInt64, 3).expect({2, 5});
  const auto shift = [](DType dtype, double x, double by, const char* way) {
    OneNode node("BitShift", dtype, {x});
    node.exponent(dtype, by).word("direction", way);
    return node;
  };
  shift(DType::kUInt64, 0x1p63, 63, "RIGHT").expect({1});
  shift(DType::kUInt64, 1, 63, "LEFT").expect({0x1p63});
  shift(DType::kUInt64, 1, 64, "LEFT").expect({0});
  shift(DType::kUInt16, 0x8001, 1, "LEFT").expect({2});
  shift(DType::kUInt16, 0x8001, 1, "RIGHT").expect({0x4000});
  shift(DType::kUInt8, 255, 200, "RIGHT").expect({0});
}

TEST(GraphInteger, SumsAndExtremesOfUnsignedRowsAreRight) {
  for (const auto& [dtype, high] :
       {std::pair(DType::kUInt32, 0x1p31 + 8), std::pair(DType::kUInt64, 0x1p63 + 0x1p12)}) {
    OneRow(dtype, {high, 0x1p12, 0})
        .expect("ReduceMax", high)
        .expect("ReduceMin", 0)
        .expect("ReduceL1", high + 0x1p12)
        .expect("ArgMax", 0)
        .expect("ArgMin", 2);
    OneRow(dtype, {high, high, 0x1p12}).expect("ReduceSum", dtype == DType::kUInt32 ? 16 + 0x1p12 : 0x3p12);
  }
}

TEST(GraphInteger, PowersEndAtTheTypesNumbers) {
  OneNode("Pow", DType::kInt32, {0, 1, -3, 46340, 46341, -65536})
      .exponent(DType::kInt32, 2)
      .expect({0, 1, 9, 2147395600, kEnd32 - 1, kEnd32 - 1});
  OneNode("Pow", DType::kInt32, {10, -10, 2000, -2000})
      .exponent(DType::kInt32, 3)
      .expect({1000, -1000, kEnd32 - 1, -kEnd32});
  OneNode("Pow", DType::kInt32, {7, -7, 100, -100})
      .exponent(DType::kInt32, 5)
      .expect({16807, -16807, kEnd32 - 1, -kEnd32});
  // 0 to the power of -1 is infinite; others are fractions.
  OneNode("Pow", DType::kInt32, {0, 1, -1, 2}).exponent(DType::kInt32, -1).expect({kEnd32 - 1, 1, -1, 0});
  // The root of a negative number is none.
  OneNode("Pow", DType::kInt32, {4, 2, -4}).exponent(DType::kFloat32, 0.5).expect({2, 1, -kEnd32});
}

// Doubles hold no integers between: the elements themselves are looked at.
TEST(GraphInteger, SquaresAndCubesOfLargeIntegersAreExact) {
  struct Case {
    double exponent;
    std::array<int64_t, 4> x, expected;
  };
  constexpr Case kCases[] = {
      {2, {94906267, -3037000499, 3037000500, -5}, {9007199515875289, 9223372030926249001, INT64_MAX, 25}},
      {3,
       {208065, -2097151, 2097152, -2097153},
       {9007351116674625, -9223358842721533951, INT64_MAX, INT64_MIN}},
      {1, {9007199254740993, INT64_MAX, INT64_MIN, -1}, {9007199254740993, INT64_MAX, INT64_MIN, -1}}};
  for (const auto& [exponent, x, expected] : kCases) {
    SCOPED_TRACE(exponent);
    GraphBuilder b("test", interpret);
    const ValueId e = b.constant("e", {DType::kInt64, {}}, Constant::of(Numbers{exponent}, DType::kInt64));
    const auto made =
        b.add({.name = "n", .op = "Pow", .inputs = {b.input("x", {DType::kInt64, {4}}), e}}, {"y"});
    ASSERT_TRUE(made.is_ok()) << made.message();
    const Graph graph = b.finish(*made);
    const auto artifact = compile(program_of(graph, graph.nodes[0]).program, host_target());
    ASSERT_TRUE(artifact.is_ok()) << artifact.message();
    const auto kernel = Kernel::load(*artifact);
    ASSERT_TRUE(kernel.is_ok()) << kernel.message();
    alignas(64) std::array<int64_t, 4> in = x, out{};
    ThreadPool pool(1);
    const AlignedBuffer workspace(kernel->workspace_bytes(1));
    std::vector<void*> args{in.data(), out.data()};
    int64_t ignored = 0;
    if (program_of(graph, graph.nodes[0]).reads.size() == 2) args.insert(args.begin() + 1, &ignored);
    ASSERT_TRUE(kernel->call(args.data(), pool.runtime(workspace.data())).is_ok());
    EXPECT_EQ(out, expected);
  }
}

}  // namespace
}  // namespace tuner::graph
