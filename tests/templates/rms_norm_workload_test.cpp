// The operator rms_norm: its key, what it refuses, what it counts, and its math against the formula and
// against the operator of a network. workload_json_test has its job file.
#include <gtest/gtest.h>

#include <cmath>

#include "compiler_core/oracle/oracle.h"
#include "templates/workload/tolerance.h"
#include "tests/random_seed.h"

namespace tuner {
namespace {

TEST(RmsNormWorkload, HasAKey) {
  const Workload w(RmsNormWorkload{.rows = 7, .columns = 13, .epsilon = 1e-6});
  EXPECT_EQ(w.key(), "v1 rms_norm rows=7 columns=13 eps=1e-06 dtype=float32");
  const Result<Workload> read = workload_from_key(w.key());
  ASSERT_TRUE(read.is_ok()) << read.message();
  EXPECT_EQ(read->key(), w.key());
}

TEST(RmsNormWorkload, RefusesWhatHasNoMeaning) {
  EXPECT_EQ(validate(RmsNormWorkload{.epsilon = 0}).message(),
            "epsilon: expected a number from 1e-12 to 1, found 0");
  EXPECT_EQ(validate(RmsNormWorkload{.rows = 0}).message(),
            "rows: expected an integer from 1 to 2^31, found 0");
  EXPECT_EQ(validate(RmsNormWorkload{.dtype = DType::kFloat16}).message(),
            "dtype: expected float32, found float16");
}

TEST(RmsNormWorkload, CountsItsWork) {
  const Workload w(RmsNormWorkload{7, 13});
  EXPECT_EQ(w.flops(), 4 * 7 * 13);
  EXPECT_EQ(w.bytes(), 4 * (2 * 7 * 13 + 13));
  EXPECT_EQ(w.least_bytes(), 4.0 * (2 * 7 * 13 + 13));
  EXPECT_EQ(w.shape_name(), "7x13");
  EXPECT_TRUE(w.memory_bound());
  // Eight deviations of the roundings of a sum of a million positive numbers.
  EXPECT_NEAR(tolerance_of(RmsNormWorkload{3, 1'000'000}).relative, 8 * std::sqrt(1e6 / 3) / (1 << 24), 1e-9);
  EXPECT_EQ(tolerance_of(RmsNormWorkload{3, 10}).relative, 1e-5);
}

// Of rows that lie one after the other.
std::vector<double> plain_rms_norm(const RmsNormWorkload& w, const std::vector<double>& x,
                                   const std::vector<double>& gamma) {
  std::vector<double> out;
  const size_t columns = gamma.size();
  for (size_t row = 0; row < x.size(); row += columns) {
    double squares = 0;
    for (size_t j = 0; j < columns; ++j) squares += x[row + j] * x[row + j];
    const double root = std::sqrt(squares / static_cast<double>(columns) + w.epsilon);
    for (size_t j = 0; j < columns; ++j) out.push_back(x[row + j] / root * gamma[j]);
  }
  return out;
}

TEST(RmsNormWorkload, DividesByTheRootOfTheMeanSquare) {
  for (const uint32_t seed : Seeds(/*fixed=*/1, /*rounds=*/50)) {
    std::mt19937_64 random(seed);
    const auto extent = [&](int64_t most) { return std::uniform_int_distribution<int64_t>(1, most)(random); };
    const RmsNormWorkload w{.rows = extent(9), .columns = extent(40), .epsilon = 0.015625};
    std::vector<std::vector<double>> args(3);
    std::uniform_real_distribution<double> value(-1, 1);
    for (int64_t n = 0; n < w.rows * w.columns; ++n) args[0].push_back(value(random));
    for (int64_t n = 0; n < w.columns; ++n) args[1].push_back(value(random));
    std::vector<std::vector<double>> others = args;
    ASSERT_TRUE(interpret(Workload(w).compute(), args).is_ok());
    const std::string text = str("in=float32[", w.rows, ",", w.columns, "],float32[", w.columns,
                                 "] RMSNormalization(0,1){axis=-1,epsilon=0.015625f}");
    const Result<Workload> network = program_from_text(text);
    ASSERT_TRUE(network.is_ok()) << text << ": " << network.message();
    ASSERT_TRUE(interpret(network->compute(), others).is_ok()) << text;

    const std::vector<double> expected = plain_rms_norm(w, args[0], args[1]);
    ASSERT_EQ(args[2].size(), expected.size());
    ASSERT_EQ(others[2].size(), expected.size());
    for (size_t at = 0; at < expected.size(); ++at) {
      ASSERT_NEAR(args[2][at], expected[at], 1e-9) << text << ", out[" << at << "]";
      ASSERT_NEAR(args[2][at], others[2][at], 1e-9) << text << ", out[" << at << "]";
    }
  }
}

}  // namespace
}  // namespace tuner
