// The oracle: values, and the reports of what a compiled kernel would hide.
#include "tests/compiler_core/kernel_testing.h"

#include <gtest/gtest.h>

#include "compiler_core/codegen/reference.h"
#include "compiler_core/te/te.h"

namespace tuner {
namespace {

using namespace tuner::testing;

std::string error_of(const Program& p, std::vector<std::vector<double>> args) {
  return interpret(p, args).message();
}

TEST(Oracle, MatmulByHand) {
  te::Builder b("matmul");
  const Buffer a = b.input("A", {2, 2}), w = b.constant("B", {2, 2});
  b.reduce(
      "C", {2, 2}, {{"k", 2}}, ReduceOp::kSum,
      [&](auto i, auto r) {
        return load(a, {i[0], r[0]}) * load(w, {r[0], i[1]});
      },
      BufferRole::kOutput);
  std::vector<std::vector<double>> args{{1, 2, 3, 4}, {5, 6, 7, 8}, {}};
  const Status ran = interpret(b.finish(), args);
  ASSERT_TRUE(ran) << ran.message();
  EXPECT_EQ(args[2], (std::vector<double>{19, 22, 43, 50}));
}

TEST(Oracle, FloorDivisionRoundsTowardsMinusInfinity) {
  const Buffer y = output("y", {5});
  const Program p{"floor", {y}, loop("i", 5, [&](Expr i) {
                    return make_store(y, {i},
                                      cast(DType::kFloat32, floor_div(i - 4, 3) * 10 + floor_mod(i - 4, 3)));
                  })};
  std::vector<std::vector<double>> args{{}};
  const Status ran = interpret(p, args);
  ASSERT_TRUE(ran) << ran.message();
  EXPECT_EQ(args[0], (std::vector<double>{-18, -10, -9, -8, 0}));
}

TEST(Oracle, PackingRunsFirstAndArgumentsAreTheUnpackedOnes) {
  const Buffer x = input("x", {4}), y = output("y", {4});
  const Buffer w = make_buffer("w", DType::kFloat32, {4}, MemoryScope::kGlobal, BufferRole::kConstant);
  const Buffer packed =
      make_buffer("w.packed", DType::kFloat32, {4}, MemoryScope::kGlobal, BufferRole::kPacked);
  const Program packing{
      "pack", {w, packed}, loop("i", 4, [&](Expr i) { return make_store(packed, {i}, load(w, {3 - i})); })};
  const Program p{
      "main",
      {x, packed, y},
      loop("i", 4, [&](Expr i) { return make_store(y, {i}, load(x, {i}) * load(packed, {3 - i})); }),
      std::make_shared<const Program>(packing)};
  EXPECT_EQ(unpacked_args(p), (std::vector<Buffer>{x, w, y}));
  std::vector<std::vector<double>> args{{1, 2, 3, 4}, {10, 20, 30, 40}, {}};
  const Status ran = interpret(p, args);
  ASSERT_TRUE(ran) << ran.message();
  EXPECT_EQ(args[2], (std::vector<double>{10, 40, 90, 160}));
  EXPECT_TRUE(matches_oracle(p));  // the compiled entry packs too
}

TEST(Oracle, WithoutAPackingEntryPackedArgumentsAreGiven) {
  const Buffer packed =
      make_buffer("w.packed", DType::kFloat32, {4}, MemoryScope::kGlobal, BufferRole::kPacked);
  const Buffer y = output("y", {4});
  const Program p{
      "main", {packed, y}, loop("i", 4, [&](Expr i) { return make_store(y, {i}, load(packed, {3 - i})); })};
  EXPECT_EQ(unpacked_args(p), (std::vector<Buffer>{packed, y}));
  std::vector<std::vector<double>> args{{10, 20, 30, 40}, {}};
  const Status ran = interpret(p, args);
  ASSERT_TRUE(ran) << ran.message();
  EXPECT_EQ(args[1], (std::vector<double>{40, 30, 20, 10}));
  EXPECT_EQ(error_of(p, {{10, 20, 30}, {}}), "main: w.packed: expected 4 elements, found 3");
}

TEST(Oracle, ReportsAnIndexOutOfBounds) {
  const Buffer x = input("x", {2, 3}), y = output("y", {4});
  const Program p{"wide", {x, y}, loop("i", 4, [&](Expr i) { return make_store(y, {i}, load(x, {1, i})); })};
  EXPECT_EQ(error_of(p, {{1, 2, 3, 4, 5, 6}, {}}),
            "wide: x[1, 3] is out of bounds: dimension 1 is 3, index 3");
  const Program before{"before", {x, y}, loop("i", 3, [&](Expr i) {
                         return make_store(y, {i}, load(x, {1, i - 1}));
                       })};
  EXPECT_EQ(error_of(before, {{1, 2, 3, 4, 5, 6}, {}}),
            "before: x[1, -1] is out of bounds: dimension 1 is 3, index -1");
  const Program behind{
      "behind", {y}, loop("i", 4, [&](Expr i) { return make_store(y, {i + 1}, float_imm(1)); })};
  EXPECT_EQ(error_of(behind, {{}}), "behind: y[4] is out of bounds: dimension 0 is 4, index 4");
}

TEST(Oracle, ReportsAReadOfWhatWasNeverWritten) {
  const Buffer y = output("y", {2}), t = scratch("t", {2});
  const Program p{
      "hole", {y}, make_allocate(t, make_seq({make_store(t, {0}, float_imm(1)), loop("i", 2, [&](Expr i) {
                                                return make_store(y, {i}, load(t, {i}));
                                              })}))};
  EXPECT_EQ(error_of(p, {{}}), "hole: t[1] is read but was never written");
  // What an iteration before has written is gone, and so is what was allocated, behind its block.
  const Program again{"again", {y}, loop("i", 2, [&](Expr i) {
                        return make_allocate(t, make_seq({make_if(i < 1, make_store(t, {0}, float_imm(1))),
                                                          make_store(y, {i}, load(t, {0}))}));
                      })};
  EXPECT_EQ(error_of(again, {{}}), "again: t[0] is read but was never written");
  const Program late{"late",
                     {y},
                     make_seq({make_allocate(t, make_store(t, {0}, float_imm(1))),
                               make_store(y, {0}, load(t, {0})), make_store(y, {1}, float_imm(0))})};
  EXPECT_EQ(error_of(late, {{}}), "late: t is neither an argument nor allocated where it is used");
  const Program sum{"sum", {y}, loop("i", 2, [&](Expr i) {
                      return make_reduce(y, {i}, ReduceOp::kSum, {}, float_imm(1), {});
                    })};
  EXPECT_EQ(error_of(sum, {{}}), "sum: y[0] is read but was never written");
}

TEST(Oracle, ReportsAnOutputNeverWritten) {
  const Buffer y = output("y", {2, 2});
  const Program p{"partial", {y}, loop("i", 2, [&](Expr i) { return make_store(y, {i, i}, float_imm(1)); })};
  EXPECT_EQ(error_of(p, {{}}), "partial: y[0, 1] was never written");
}

// The first output counts as the last one does.
TEST(Oracle, EveryOutputIsFilledAndAskedFor) {
  const Buffer first = output("first", {2}), second = output("second", {2});
  const auto stores = [&](int64_t n) {
    return Program{"two", {first, second}, loop("i", 2, [&](Expr i) {
                     return make_seq({make_if(i < n, make_store(first, {i}, float_imm(3))),
                                      make_store(second, {i}, float_imm(4))});
                   })};
  };
  EXPECT_EQ(error_of(stores(1), {{}, {}}), "two: first[1] was never written");
  std::vector<std::vector<double>> args{{}, {}};
  ASSERT_TRUE(interpret(stores(2), args).is_ok());
  EXPECT_EQ(args, (std::vector<std::vector<double>>{{3, 3}, {4, 4}}));
}

// Of a NaN and a number, on either side and in a reduction.
TEST(Oracle, MaximaKeepNans) {
  const Buffer x = input("x", {4}), y = output("y", {2, 4});
  const auto value = [&](BinaryOp op) {
    const Program p{"pairs", {x, y}, loop("i", 4, [&](Expr i) {
                      return make_seq({make_store(y, {0, i}, binary(op, load(x, {i}), float_imm(1))),
                                       make_store(y, {1, i}, binary(op, float_imm(1), load(x, {i})))});
                    })};
    std::vector<std::vector<double>> args{{NAN, 2, -INFINITY, INFINITY}, {}};
    EXPECT_TRUE(interpret(p, args).is_ok());
    std::string text;
    for (const double v : args[1]) text += std::isnan(v) ? "nan " : str(v, " ");
    return text;
  };
  EXPECT_EQ(value(BinaryOp::kMax), "nan 2 1 inf nan 2 1 inf ");
  EXPECT_EQ(value(BinaryOp::kMin), "nan 1 -inf 1 nan 1 -inf 1 ");
  EXPECT_EQ(value(BinaryOp::kAtLeast), "1 2 1 inf nan 2 1 inf ") << "a > b ? a : b";
  for (const ReduceOp op : {ReduceOp::kMax, ReduceOp::kMin}) {
    te::Builder b("extreme");
    const Buffer from = b.input("from", {3, 3});
    b.reduce(
        "to", {3}, {{"k", 3}}, op,
        [&](auto i, auto r) {
          return load(from, {i[0], r[0]});
        },
        BufferRole::kOutput);
    std::vector<std::vector<double>> args{{NAN, 1, 2, 1, NAN, 2, 1, 2, NAN}, {}};
    ASSERT_TRUE(interpret(b.finish(), args).is_ok());
    for (const double v : args[1]) EXPECT_TRUE(std::isnan(v)) << v;
  }
}

TEST(Oracle, HalvesAreRoundedToEven) {
  const Buffer x = input("x", {6}), y = output("y", {6});
  const Program p{"halves", {x, y}, loop("i", 6, [&](Expr i) {
                    return make_store(y, {i}, unary(UnaryOp::kRound, load(x, {i})));
                  })};
  std::vector<std::vector<double>> args{{-2.5, -1.5, -0.5, 0.5, 1.5, 2.5}, {}};
  ASSERT_TRUE(interpret(p, args).is_ok());
  EXPECT_EQ(args[1], (std::vector<double>{-2, -2, 0, 0, 2, 2}));
}

// y[i] = y[i - 1] + 1 written as a parallel loop: backwards it reads what is not there yet.
TEST(Oracle, ParallelLoopsThatDependOnOrderShow) {
  const Buffer y = output("y", {3});
  const auto chain = [&](LoopKind kind) {
    return Program{"chain", {y}, loop("i", 3, kind, [&](Expr i) {
                     return make_store(y, {i}, select(i >= 1, load(y, {i - 1}), float_imm(0)) + 1);
                   })};
  };
  EXPECT_EQ(error_of(chain(LoopKind::kSerial), {{}}), "");
  for (const LoopKind kind : {LoopKind::kParallel, LoopKind::kVectorized})
    EXPECT_EQ(error_of(chain(kind), {{}}), "chain: y[1] is read but was never written");
}

// --- the compiled reference answer, held against the oracle ---

::testing::AssertionResult reference_matches(const Program& unscheduled, uint32_t seed) {
  std::vector<std::vector<double>> expected = random_args(unscheduled, seed);
  std::vector<std::vector<float>> inputs;
  for (const auto& arg : expected)
    if (!arg.empty()) inputs.emplace_back(arg.begin(), arg.end());
  if (const Status s = interpret(unscheduled, expected); !s)
    return ::testing::AssertionFailure() << s.message();
  const Result<std::vector<std::vector<double>>> found = reference_answer(unscheduled, inputs);
  if (!found) return ::testing::AssertionFailure() << found.message();
  const std::vector<double>& out = found->back();
  for (size_t i = 0; i < out.size(); ++i)
    if (!(std::fabs(out[i] - expected.back()[i]) <= 1e-13 * (1 + std::fabs(expected.back()[i]))))
      return ::testing::AssertionFailure()
             << "element " << i << " is " << out[i] << ", oracle " << expected.back()[i];
  return ::testing::AssertionSuccess();
}

Program matmul_bias_gelu(int64_t m, int64_t n, int64_t k) {
  te::Builder b("matmul");
  const Buffer a = b.input("A", {m, k}), w = b.constant("B", {k, n}), bias = b.constant("bias", {n});
  const Buffer c = b.reduce("C", {m, n}, {{"k", k}}, ReduceOp::kSum, [&](auto i, auto r) {
    return load(a, {i[0], r[0]}) * load(w, {r[0], i[1]});
  });
  b.compute(
      "out", {m, n},
      [&](auto i) {
        const Expr x = load(c, i) + load(bias, {i[1]});
        return x * float_imm(0.5) * (unary(UnaryOp::kErf, x * float_imm(0.70710678)) + 1);
      },
      BufferRole::kOutput);
  return b.finish();
}

Program conv_relu(int64_t channels, int64_t h, int64_t w, int64_t filters, int64_t kernel, int64_t stride,
                  int64_t pad) {
  te::Builder b("conv");
  const Buffer x = b.input("x", {1, channels, h, w}),
               f = b.constant("f", {filters, channels, kernel, kernel});
  const Buffer padded = b.compute("padded", {1, channels, h + 2 * pad, w + 2 * pad}, [&](auto i) {
    const Expr inside = i[2] >= pad && i[2] < h + pad && i[3] >= pad && i[3] < w + pad;
    return select(inside, load(x, {i[0], i[1], i[2] - pad, i[3] - pad}), float_imm(0));
  });
  const int64_t oh = (h + 2 * pad - kernel) / stride + 1, ow = (w + 2 * pad - kernel) / stride + 1;
  const Buffer conv =
      b.reduce("conv", {1, filters, oh, ow}, {{"c", channels}, {"kh", kernel}, {"kw", kernel}},
               ReduceOp::kSum, [&](auto i, auto r) {
                 return load(padded, {i[0], r[0], i[2] * stride + r[1], i[3] * stride + r[2]}) *
                        load(f, {i[1], r[0], r[1], r[2]});
               });
  b.compute(
      "out", {1, filters, oh, ow}, [&](auto i) { return max(load(conv, i), float_imm(0)); },
      BufferRole::kOutput);
  return b.finish();
}

TEST(Reference, MatmulEqualsTheOracle) {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 1, 1}, {7, 13, 29}, {5, 33, 3}, {3, 100, 2}})
    EXPECT_TRUE(reference_matches(matmul_bias_gelu(m, n, k), 5)) << m << "x" << n << "x" << k;
}

TEST(Reference, ConvolutionEqualsTheOracle) {
  EXPECT_TRUE(reference_matches(conv_relu(3, 7, 9, 5, 3, 1, 1), 6));
  EXPECT_TRUE(reference_matches(conv_relu(2, 11, 40, 3, 2, 3, 2), 7));
}

TEST(Reference, RefusesDataOfAnotherSize) {
  const Result<std::vector<std::vector<double>>> r = reference_answer(matmul_bias_gelu(2, 2, 2), {{1, 2, 3}});
  ASSERT_FALSE(r);
  EXPECT_EQ(r.message(), "reference of matmul: A: expected 4 elements, found 3");
  const std::vector<float> four(4), two(2);
  EXPECT_EQ(reference_answer(matmul_bias_gelu(2, 2, 2), {four, four, two, two}).message(),
            "reference of matmul: expected 3 inputs, found 4");
  EXPECT_EQ(reference_answer(matmul_bias_gelu(2, 2, 2), {four, four}).message(),
            "reference of matmul: bias: expected 2 elements, found no data");
}

}  // namespace
}  // namespace tuner
