// What measuring and verifying compare with: the reference answer of every operator, and the tolerance that a
// kernel is given.
#include <gtest/gtest.h>

#include "compiler_core/codegen/reference.h"
#include "compiler_core/ir/visitor.h"
#include "templates/workload/tolerance.h"
#include "templates/workload/winograd_math.h"
#include "tests/compiler_core/kernel_testing.h"
#include "tests/templates/template_check.h"

namespace tuner {
namespace {

// Each operator, and each form of it that has a tolerance of its own.
std::vector<Workload> operators(int64_t rows, int64_t columns) {
  MatmulWorkload product;
  product.m = rows;
  product.n = 5;
  product.k = columns;
  product.bias = true;
  Conv2dWorkload depthwise;
  depthwise.in_channels = depthwise.out_channels = depthwise.groups = rows;
  depthwise.in_height = 9;
  depthwise.in_width = 8;
  depthwise.kernel_height = depthwise.kernel_width = 3;
  depthwise.padding = {1, 1, 1, 1};
  MatmulWorkload halves = product, bytes = product;
  halves.dtype = DType::kBFloat16;
  bytes.dtype = DType::kInt8;
  bytes.k = std::min<int64_t>(columns, 1 << 16);
  MatmulWorkload brain = halves, quantised = bytes;
  brain.narrow_out = DType::kBFloat16;
  MatmulWorkload half = halves;
  half.dtype = DType::kFloat16;
  MatmulWorkload narrow_half = half;
  narrow_half.narrow_out = DType::kFloat16;
  quantised.narrow_out = DType::kUInt8;
  quantised.activation = Activation::kRelu;
  Pool2dWorkload largest{.channels = rows, .in_height = 1, .in_width = columns};
  largest.kernel_width = columns;
  largest.padding = {0, columns / 2, 0, 0};
  largest.stride = {1,
                    std::max<int64_t>(columns / 3, 1)};  // a window at every pixel would be columns^2 terms
  Pool2dWorkload average = largest;
  average.pooling = Pooling::kAverage;
  return {product,
          largest,
          average,
          halves,
          bytes,
          brain,
          half,
          narrow_half,
          quantised,
          depthwise,
          SoftmaxWorkload{rows, columns},
          LayerNormWorkload{rows, columns},
          RmsNormWorkload{rows, columns},
          MatmulNBitsWorkload{.m = rows, .n = 5, .k = columns},
          MatmulNBitsWorkload{.m = rows, .n = 5, .k = columns, .group = 128, .zero_points = true},
          ReduceWorkload{rows, columns, RowReduction::kSum},
          ReduceWorkload{rows, columns, RowReduction::kMax},
          ReduceWorkload{rows, columns, RowReduction::kMin},
          ReduceWorkload{rows, columns, RowReduction::kMean},
          AttentionWorkload{.queries = std::min<int64_t>(rows, 9), .keys = columns, .size = 3, .v_size = 2},
          TransposeWorkload{rows, columns},
          ElementwiseWorkload{rows, columns},
          ElementwiseWorkload{rows, columns, true, true, true, Activation::kRelu}};
}

std::vector<std::vector<float>> inputs_of(const std::vector<std::vector<double>>& args) {
  std::vector<std::vector<float>> inputs;
  for (size_t i = 0; i + 1 < args.size(); ++i) inputs.emplace_back(args[i].begin(), args[i].end());
  return inputs;
}

// The Program with the numbers of its transforms wrong by a part in 1024.
Program with_wrong_constant(const Program& program) {
  const auto changed = [](const auto& self, const Expr& e) -> Expr {
    if (e->kind == ExprKind::kFloatImm && std::abs(e->float_value) >= 0.25)
      return float_imm(e->float_value * (1 + 1.0 / 1024), e->dtype);
    return map_children(e, [&](const Expr& operand) { return self(self, operand); });
  };
  const auto rewritten = [&](const auto& self, const Stmt& s) -> Stmt {
    return map_children(
        s, [&](const Expr& e) { return changed(changed, e); },
        [&](const Stmt& child) { return self(self, child); });
  };
  Program result = program;
  Program packing = *program.packing;
  packing.body = rewritten(rewritten, packing.body);
  result.packing = std::make_shared<const Program>(std::move(packing));
  result.body = rewritten(rewritten, program.body);
  return result;
}

TEST(ReferenceAnswer, OfEveryOperatorIsThatOfTheInterpreter) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{1, 1}, {3, 7}, {37, 33}, {2, 100}})
    for (const Workload& w : operators(rows, columns)) {
      SCOPED_TRACE(w.key());
      const Program math = w.compute();
      auto args = testing::random_args(math, 1);
      const Status status = interpret(math, args);
      ASSERT_TRUE(status.is_ok()) << status.message();
      const auto answer = reference_answer(math, inputs_of(args));
      ASSERT_TRUE(answer.is_ok()) << answer.message();
      ASSERT_EQ(answer->back().size(), args.back().size());
      for (size_t i = 0; i < args.back().size(); ++i)
        ASSERT_NEAR(answer->back()[i], args.back()[i], 1e-12) << "out[" << i << "]";
    }
}

// The steps of ONNX's QLinearMatMul, written out.
double requantised(double sum, double scale, double zero_point, const MatmulWorkload& w) {
  const double low = w.out_dtype() == DType::kInt8 ? -128 : 0;
  float x = static_cast<float>(sum) * static_cast<float>(scale);
  if (w.activation == Activation::kRelu) x = x < 0 ? 0 : x;  // a NaN passes
  if (std::isnan(x)) return low;
  return std::clamp(std::nearbyint(static_cast<double>(x)) + zero_point, low, low + 255);
}

// Ties, saturation at both ends, infinite scales and 0 times them, scales of any size, zero points: by the
// interpreter, by the reference and by plain code of two targets.
TEST(Requantisation, RoundsToEvenAndSaturates) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<double> scales = {0.5,   -0.5,      1,          -1,      1.0F / 3, 0.0078125,
                                      1e-30, kInfinity, -kInfinity, 0x1p-12, 0x1p-149, 3e38};
  MatmulWorkload w;
  w.m = 256, w.n = std::ssize(scales), w.k = 1;
  w.dtype = DType::kInt8;
  std::vector<double> a, b;
  for (int64_t i = 0; i < w.m; ++i) a.push_back(static_cast<double>(i));
  for (int64_t j = 0; j < w.n; ++j) b.push_back(j % 3 == 0 ? 1 : j % 3 == 1 ? -3 : 127);
  for (const DType out : {DType::kUInt8, DType::kInt8})
    for (const Activation activation : {Activation::kNone, Activation::kRelu})
      for (const double zero_point : {0.0, 1.0, 127.0, out == DType::kInt8 ? -128.0 : 255.0}) {
        w.narrow_out = out;
        w.activation = activation;
        SCOPED_TRACE(str(Workload(w).key(), ", zero point ", zero_point));
        std::vector<double> expected;
        for (const double x : a)
          for (size_t j = 0; j < scales.size(); ++j)
            expected.push_back(requantised(x * b[j], scales[j], zero_point, w));
        const Program math = Workload(w).compute();
        std::vector<std::vector<double>> args = {a, b, scales, {zero_point}, {}};
        ASSERT_TRUE(interpret(math, args).is_ok());
        EXPECT_EQ(args.back(), expected);
        const auto answer = reference_answer(math, inputs_of(args));
        ASSERT_TRUE(answer.is_ok()) << answer.message();
        EXPECT_EQ(answer->back(), expected);
        for (const Target& target : {host_target(1), *parse_target("llvm -mcpu=x86-64")}) {
          if (target.family != host_target(1).family) continue;
          args.back().clear();
          const Status status = testing::run_compiled(math, args, target, 1);
          ASSERT_TRUE(status.is_ok()) << status.message();
          EXPECT_EQ(args.back(), expected) << target.name();
        }
      }
}

// Where the last bit of float32 decides: products beside a tie, which double precision puts on either side.
TEST(Requantisation, ReferenceRoundsAsKernelsDo) {
  MatmulWorkload w;
  w.m = 1, w.n = 4096, w.k = 1;
  w.bias = true;
  w.dtype = DType::kInt8;
  w.narrow_out = DType::kInt8;
  std::vector<double> bias, scales, expected;
  int differ = 0;
  for (int j = 0; j < w.n; ++j) {
    bias.push_back(1'000'003 + 64.0 * j);
    // The nearest float32 to a number that brings the sum to a tie.
    scales.push_back(static_cast<float>((j % 100 + 0.5) / bias.back()));
    expected.push_back(requantised(bias.back(), scales.back(), 0, w));
    differ += std::nearbyint(bias.back() * scales.back()) != expected.back();
  }
  EXPECT_GT(differ, 100);
  std::vector<std::vector<double>> args = {
      {0}, std::vector<double>(static_cast<size_t>(w.n)), bias, scales, {0}, {}};
  const Program math = Workload(w).compute();
  ASSERT_TRUE(interpret(math, args).is_ok());
  EXPECT_EQ(args.back(), expected);
  const auto answer = reference_answer(math, inputs_of(args));
  ASSERT_TRUE(answer.is_ok()) << answer.message();
  EXPECT_EQ(answer->back(), expected);
  args.back().clear();
  const Status status = testing::run_compiled(math, args, host_target(1), 1);
  ASSERT_TRUE(status.is_ok()) << status.message();
  EXPECT_EQ(args.back(), expected);
}

// A residual of 8 bits, the formula written out: both products rounded, then added. Sums beside ties, where a
// product fused with the addition would give another integer; all residuals; zero points and scales of both
// signs.
TEST(Requantisation, AResidualHasItsOwnScaleAndZeroPoint) {
  MatmulWorkload w;
  w.m = 1, w.n = 8192, w.k = 1;
  w.bias = w.residual = true;
  w.dtype = DType::kInt8;
  for (const DType out : {DType::kUInt8, DType::kInt8})
    for (const double residual_scale : {0.37, -1.7, 0.0, 1e30})
      for (const Activation activation : {Activation::kNone, Activation::kRelu}) {
        w.narrow_out = out;
        w.activation = activation;
        const double low = out == DType::kInt8 ? -128 : 0, zero = low + 100, residual_zero = low + 31;
        const auto by = static_cast<float>(residual_scale);
        SCOPED_TRACE(str(Workload(w).key(), ", residual_scale ", by));
        std::vector<double> bias, residual, scales, expected;
        int fused_sum = 0, fused_residual = 0;
        for (int j = 0; j < w.n; ++j) {
          bias.push_back(1'000'003 + 64.0 * j);
          residual.push_back(low + j % 256);
          const auto distance = static_cast<float>(residual.back() - residual_zero),
                     sum = static_cast<float>(bias.back());
          const volatile float from_residual = by * distance;
          // The nearest float32 to a number that brings both together to a tie.
          const auto scale = static_cast<float>((j % 90 - 40.5 - by * distance) / bias.back());
          scales.push_back(scale);
          const volatile float from_sum = sum * scale;
          const auto finished = [&](float x) {
            if (activation == Activation::kRelu) x = std::max(x, 0.0F);
            return std::clamp(std::nearbyint(static_cast<double>(x)) + zero, low, low + 255);
          };
          expected.push_back(finished(from_sum + from_residual));
          fused_sum += finished(std::fma(sum, scale, from_residual)) != expected.back();
          fused_residual += finished(std::fma(by, distance, from_sum)) != expected.back();
        }
        if (std::abs(by) < 10 && by != 0) {
          EXPECT_GT(std::min(fused_sum, fused_residual), 50);
        }
        std::vector<std::vector<double>> args = {{0},    std::vector<double>(static_cast<size_t>(w.n)),
                                                 bias,   residual,
                                                 scales, {zero},
                                                 {by},   {residual_zero},
                                                 {}};
        const Program math = Workload(w).compute();
        ASSERT_TRUE(interpret(math, args).is_ok());
        EXPECT_EQ(args.back(), expected);
        const auto answer = reference_answer(math, inputs_of(args));
        ASSERT_TRUE(answer.is_ok()) << answer.message();
        EXPECT_EQ(answer->back(), expected);
        for (const Target& target : {host_target(1), *parse_target("llvm -mcpu=x86-64")}) {
          if (target.family != host_target(1).family) continue;
          args.back().clear();
          const Status status = testing::run_compiled(math, args, target, 1);
          ASSERT_TRUE(status.is_ok()) << status.message();
          EXPECT_EQ(args.back(), expected) << target.name();
        }
      }
}

// The largest |found - right| / tolerance.
double worst_error(const Tolerance& t, const std::vector<double>& found, const std::vector<double>& right) {
  double worst = 0;
  for (size_t i = 0; i < right.size(); ++i) {
    const double error = std::abs(found[i] - right[i]);
    if (error > 0) worst = std::max(worst, error / (t.absolute + t.relative * std::abs(right[i])));
  }
  return worst;
}

// Runs the math as it stands, in its own types: each sum in one chain, the order that errs most.
std::vector<double> plain_answer(const Workload& w, const std::vector<std::vector<double>>& arguments) {
  auto args = arguments;
  args.back().clear();
  const Status status = testing::run_compiled(w.compute(), args, host_target(1), 1);
  EXPECT_TRUE(status.is_ok()) << status.message();
  return args.back();
}

TEST(Tolerance, HoldsPlainSumsOfEveryOperator) {
  for (const auto& [rows, columns] :
       {std::pair<int64_t, int64_t>{2000, 2}, {500, 31}, {300, 1000}, {2, 100'000}})
    for (const Workload& w : operators(rows, columns))
      for (const uint32_t seed : {1u, 2u}) {
        SCOPED_TRACE(str(w.key(), ", seed ", seed));
        const auto args = testing::random_args(w.compute(), seed);
        const auto right = reference_answer(w.compute(), inputs_of(args));
        ASSERT_TRUE(right.is_ok()) << right.message();
        EXPECT_LT(worst_error(tolerance_of(w), plain_answer(w, args), right->back()), 1);
      }
}

// A kernel that forgets the last column of each row must be seen.
TEST(Tolerance, ShowsAMissingColumn) {
  for (const int64_t columns : {16, 1000, 10'000})
    for (const Workload& w :
         {Workload(ReduceWorkload{50, columns}), Workload(ReduceWorkload{50, columns, RowReduction::kMean}),
          Workload(SoftmaxWorkload{50, columns}), Workload(LayerNormWorkload{50, columns})}) {
      SCOPED_TRACE(w.key());
      const auto args = testing::random_args(w.compute(), 3);
      const auto right = reference_answer(w.compute(), inputs_of(args));
      ASSERT_TRUE(right.is_ok()) << right.message();
      auto damaged = args;
      for (int64_t i = 0; i < 50; ++i) {
        // A sum or a mean misses a number, a maximum or a softmax an exp of about one.
        const bool softmax = w.get_if<SoftmaxWorkload>() != nullptr;
        damaged[0][static_cast<size_t>((i + 1) * columns - 1)] = softmax ? -100 : 0;
      }
      const auto wrong = reference_answer(w.compute(), inputs_of(damaged));
      ASSERT_TRUE(wrong.is_ok()) << wrong.message();
      auto found = wrong->back();
      // Only what the other elements see of it counts.
      if (found.size() > 50)
        for (int64_t i = 0; i < 50; ++i) {
          const auto last = static_cast<size_t>((i + 1) * columns - 1);
          found[last] = right->back()[last];
        }
      EXPECT_GT(worst_error(tolerance_of(w), found, right->back()), 1);
    }
}

TEST(Tolerance, IsExactWhereNothingIsRounded) {
  MatmulWorkload bytes;
  bytes.dtype = DType::kInt8;
  MatmulWorkload quantised = bytes;
  quantised.narrow_out = DType::kUInt8;
  for (const Workload& w :
       {Workload(bytes), Workload(quantised), Workload(TransposeWorkload{9, 9}),
        Workload(ReduceWorkload{9, 9, RowReduction::kMax}), Workload(Pool2dWorkload{}),
        Workload(ElementwiseWorkload{.rows = 9, .columns = 9, .activation = Activation::kRelu})}) {
    EXPECT_EQ(tolerance_of(w).absolute, 0) << w.key();
    EXPECT_EQ(tolerance_of(w).relative, 0) << w.key();
  }
}

// Answers of F(m, 3) in float32, and of the same schedule with one constant of a transform a little wrong.
TEST(Tolerance, HoldsWinogradAndShowsAWrongConstant) {
  for (const int64_t m : {2, 4, 6})
    for (const auto& [channels, size] : {std::pair<int64_t, int64_t>{1, 30}, {16, 24}, {100, 13}, {500, 7}}) {
      const Workload w = Conv2dWorkload{.in_channels = channels,
                                        .in_height = size,
                                        .in_width = size,
                                        .out_channels = 32,
                                        .kernel_height = 3,
                                        .kernel_width = 3,
                                        .padding = {1, 1, 1, 1},
                                        .constant = {"weight"}};
      const AnyTemplate& t = *find_template(str("conv2d_winograd", m, "_cpu"));
      SCOPED_TRACE(str(t.name(), " of ", w.key()));
      ASSERT_TRUE(t.supports(w, host_target(1)).yes) << t.supports(w, host_target(1)).reason;
      const auto instance = t.apply(w, host_target(1));
      ASSERT_TRUE(instance.is_ok()) << instance.message();
      const ConfigSpace& space = (*instance)->space();
      std::mt19937_64 rng(static_cast<uint64_t>(m * channels));
      for (const uint32_t seed : {1u, 2u, 3u}) {
        const auto args = testing::random_args(w.compute(), seed);
        const auto right = reference_answer(w.compute(), inputs_of(args));
        ASSERT_TRUE(right.is_ok()) << right.message();
        const auto error_of = [&](const Program& program) {
          auto found = args;
          found.back().clear();
          const Status status = testing::run_compiled(program, found, host_target(1), 1);
          EXPECT_TRUE(status.is_ok()) << status.message();
          return worst_error(t.tolerance(w), found.back(), right->back());
        };
        const auto program = (*instance)->instantiate(space.at(space.sample(rng)));
        ASSERT_TRUE(program.is_ok()) << program.message();
        EXPECT_LT(error_of(*program), 1);
        EXPECT_GT(error_of(with_wrong_constant(*program)), 1);
      }
    }
}

TEST(Tolerance, OfWinogradIsASmallPartOfTheLargestOutput) {
  EXPECT_LT(winograd_relative_error({2, 2}, 512), 1.2e-5);
  EXPECT_GT(winograd_relative_error({2, 4}, 512), winograd_relative_error({2, 2}, 512));
  EXPECT_LT(winograd_relative_error({2, 4}, 512), winograd_relative_error({4, 4}, 512));
  EXPECT_LT(winograd_relative_error({6, 6}, 64), 4.8e-5);
  EXPECT_LE(winograd_relative_error({6, 6}, 512), kMostWinogradError);
  EXPECT_GT(winograd_relative_error({6, 6}, 2048), kMostWinogradError);
}

TEST(Tolerance, OfLongSumsIsAPartOfTheLargest) {
  for (const auto& [terms, part] : {std::pair<int64_t, double>{1000, 1e-5}, {14'000, 1e-5}, {70'000, 2.3e-5}})
    EXPECT_LE(product_sum_tolerance(terms), part * 4 * std::sqrt(static_cast<double>(terms)) / 3) << terms;
}

// Errors of right sums have tails that are longer than a normal law's: 8 deviations of typical roundings
// (0.42 of the largest) are too few for some hundred thousand outputs. Sums in one chain, beside those in
// double.
TEST(Tolerance, HoldsTheWorstOfManySums) {
  constexpr size_t kSums = 1'000'000, kTerms = 200;
  std::vector<float> sums(kSums);
  std::vector<double> exact(kSums);
  std::mt19937 rng(7);
  std::uniform_real_distribution<float> draw(-1, 1);
  std::vector<float> a(4096), b(4099);  // lengths without a common divisor: other pairs each time
  for (float& x : a) x = draw(rng);
  for (float& x : b) x = draw(rng);
  for (size_t term = 0; term < kTerms; ++term) {
    const size_t from_a = rng() % a.size(), from_b = rng() % b.size();
    for (size_t i = 0; i < kSums; ++i) {
      const float x = a[(from_a + i) % a.size()], y = b[(from_b + i) % b.size()];
      sums[i] = std::fma(x, y, sums[i]);
      exact[i] += static_cast<double>(x) * y;
    }
  }
  double worst = 0;
  for (size_t i = 0; i < kSums; ++i) worst = std::max(worst, std::abs(sums[i] - exact[i]));
  const double tolerance = product_sum_tolerance(kTerms);
  EXPECT_LT(worst, 0.9 * tolerance);
  EXPECT_GT(worst, 0.42 * tolerance) << "the worst is further off than a normal law allows";
}

// The shape whose right answers were once refused: 14,000 tiles of 6x6 over many channels.
TEST(Tolerance, HoldsWinogradOfManyTiles) {
  const Workload w = Conv2dWorkload{.in_channels = 224,
                                    .in_height = 48,
                                    .in_width = 48,
                                    .out_channels = 64,
                                    .kernel_height = 3,
                                    .kernel_width = 3,
                                    .padding = {1, 1, 1, 1},
                                    .constant = {"weight"}};
  const AnyTemplate& t = *find_template("conv2d_winograd6_cpu");
  const auto instance = t.apply(w, host_target(1));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const auto program =
      (*instance)->instantiate((*instance)->space().at((*instance)->space().default_index()));
  ASSERT_TRUE(program.is_ok()) << program.message();
  for (const uint32_t seed : {1u, 2u, 3u, 4u}) {
    auto args = testing::random_args(w.compute(), seed);
    const auto right = reference_answer(w.compute(), inputs_of(args));
    ASSERT_TRUE(right.is_ok()) << right.message();
    args.back().clear();
    const Status status = testing::run_compiled(*program, args, host_target(1), 1);
    ASSERT_TRUE(status.is_ok()) << status.message();
    EXPECT_LT(worst_error(t.tolerance(w), args.back(), right->back()), 0.7) << "seed " << seed;
  }
}

TEST(Tolerance, GrowsWithTheSumAndNeverVanishes) {
  EXPECT_GE(product_sum_tolerance(1), 1e-6);
  EXPECT_LT(product_sum_tolerance(100), product_sum_tolerance(10'000));
  // A missing term, a third on average, shows in any sum we know.
  EXPECT_LT(product_sum_tolerance(100'000), 1.0 / 3);
}

}  // namespace
}  // namespace tuner
