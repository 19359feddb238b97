// What measuring and verifying compare with: the reference answer of every operator, and the tolerance that a
// kernel is given.
#include <gtest/gtest.h>

#include "compiler_core/codegen/reference.h"
#include "templates/tolerance.h"
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
          depthwise,
          SoftmaxWorkload{rows, columns},
          LayerNormWorkload{rows, columns},
          ReduceWorkload{rows, columns, RowReduction::kSum},
          ReduceWorkload{rows, columns, RowReduction::kMax},
          ReduceWorkload{rows, columns, RowReduction::kMin},
          ReduceWorkload{rows, columns, RowReduction::kMean},
          TransposeWorkload{rows, columns},
          ElementwiseWorkload{rows, columns},
          ElementwiseWorkload{rows, columns, true, true, true, Activation::kRelu}};
}

std::vector<std::vector<float>> inputs_of(const std::vector<std::vector<double>>& args) {
  std::vector<std::vector<float>> inputs;
  for (size_t i = 0; i + 1 < args.size(); ++i) inputs.emplace_back(args[i].begin(), args[i].end());
  return inputs;
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
  for (const Workload& w :
       {Workload(bytes), Workload(TransposeWorkload{9, 9}),
        Workload(ReduceWorkload{9, 9, RowReduction::kMax}), Workload(Pool2dWorkload{}),
        Workload(ElementwiseWorkload{.rows = 9, .columns = 9, .activation = Activation::kRelu})}) {
    EXPECT_EQ(tolerance_of(w).absolute, 0) << w.key();
    EXPECT_EQ(tolerance_of(w).relative, 0) << w.key();
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
