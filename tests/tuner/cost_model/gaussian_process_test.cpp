// The Gaussian process: it predicts what it was not shown, knows where it does not know, and adding rows one
// by one is the same as fitting them together.
#include "tuner/cost_model/gaussian_process.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace tuner {
namespace {

struct Samples {
  GpInputs inputs;
  std::vector<float> y;
};

// Two columns that matter, one that does not.
Samples samples(size_t rows, uint64_t seed) {
  Samples s{GpInputs(rows, 3, 0), {}};
  std::mt19937_64 rng(seed);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < 3; ++c) s.inputs.at(r, c) = static_cast<float>(rng() % 9) / 8;
    const float x = s.inputs.at(r, 0), z = s.inputs.at(r, 1);
    s.y.push_back(std::sin(4 * x) + 0.5f * (z - 0.3f) * (z - 0.3f) + 5);
  }
  return s;
}

TEST(GaussianProcess, PredictsUnseenRowsAndFindsTheColumnThatSaysNothing) {
  const Samples train = samples(60, 1), test = samples(100, 2);
  GaussianProcess gp(3, 0);
  for (int i = 0; i < 4; ++i) gp.tune(train.inputs, train.y, 24);
  gp.fit(train.inputs, train.y);
  const std::vector<float> mean = gp.mean(test.inputs);
  for (size_t i = 0; i < mean.size(); ++i) EXPECT_NEAR(mean[i], test.y[i], 0.1) << "row " << i;
  EXPECT_GT(gp.length_scales()[2], 2 * gp.length_scales()[0]);
}

TEST(GaussianProcess, IsSureWhereItWasShownAndUnsureFarAway) {
  Samples train{GpInputs(4, 1, 0), {0, 0.2f, 0.1f, 0.3f}};
  for (size_t i = 0; i < 4; ++i) train.inputs.at(i, 0) = 0.1f * static_cast<float>(i);
  GpInputs pool(2, 1, 0);
  pool.at(0, 0) = 0.1f;
  pool.at(1, 0) = 1;
  GaussianProcess gp(1, 0);
  gp.fit(train.inputs, train.y);
  const PoolPosterior posterior(gp, pool);
  EXPECT_LT(3 * posterior.deviation(0), posterior.deviation(1));
}

// Of values ten times as large the deviations are larger, too; a few rows of an expected amplitude count with
// them.
TEST(PoolPosterior, DeviationsAreInTheUnitOfTheValues) {
  Samples train = samples(40, 5);
  const Samples pool = samples(1, 6);
  const auto deviation = [&](float unit) {
    std::vector<float> y;
    for (const float value : train.y) y.push_back(unit * value);
    GaussianProcess gp(3, 0);
    gp.fit(train.inputs, y);
    return PoolPosterior(gp, pool.inputs).deviation(0);
  };
  EXPECT_GT(deviation(10), 4 * deviation(1));
  EXPECT_LT(deviation(10), 10.01 * deviation(1));
}

TEST(PoolPosterior, RowsAddedOneByOneAreRowsFittedTogether) {
  const Samples all = samples(40, 3), pool = samples(50, 4);
  std::vector<size_t> head(30), tail(10);
  for (size_t i = 0; i < 30; ++i) head[i] = i;
  for (size_t i = 0; i < 10; ++i) tail[i] = 30 + i;
  GaussianProcess part(3, 0), whole(3, 0);
  part.fit(all.inputs.selected(head), std::span(all.y).first(30));
  whole.fit(all.inputs, all.y);

  PoolPosterior added(part, pool.inputs);
  added.extend(all.inputs.selected(tail));  // at 50..59
  std::vector<float> before(50);
  for (size_t i = 0; i < 50; ++i) before[i] = added.mean(i);
  for (size_t i = 0; i < 10; ++i) added.believe(50 + i);
  for (size_t i = 0; i < 50; ++i)
    EXPECT_EQ(added.mean(i), before[i]) << "believing a prediction moves no mean";

  std::vector<float> unknown = all.y;
  for (size_t i = 30; i < 40; ++i) unknown[i] = std::numeric_limits<float>::quiet_NaN();
  added.set_values(unknown);
  for (size_t i = 0; i < 50; ++i) EXPECT_NEAR(added.mean(i), before[i], 1e-4);

  added.set_values(all.y);
  const PoolPosterior together(whole, pool.inputs);
  for (size_t i = 0; i < 50; ++i) {
    EXPECT_NEAR(added.mean(i), together.mean(i), 1e-3) << "candidate " << i;
    EXPECT_NEAR(added.deviation(i) / part.amplitude(), together.deviation(i) / whole.amplitude(), 1e-2);
  }
  const std::vector<float> mean = whole.mean(pool.inputs);
  for (size_t i = 0; i < 50; ++i) EXPECT_NEAR(mean[i], together.mean(i), 1e-3);
}

TEST(GaussianProcess, ATrendIsFollowedAndCorrected) {
  // y is half the trend: the trend is followed, but not at its word.
  Samples s{GpInputs(20, 1, 1), {}};
  for (size_t r = 0; r < 20; ++r) {
    s.inputs.at(r, 0) = 0.5f;
    s.inputs.at(r, 1) = static_cast<float>(r) / 20;
    s.y.push_back(0.5f * s.inputs.at(r, 1) + 2);
  }
  GaussianProcess gp(1, 1);
  gp.fit(s.inputs, s.y);
  GpInputs beyond(1, 1, 1);
  beyond.at(0, 0) = 0.5f;
  beyond.at(0, 1) = 2;
  EXPECT_NEAR(gp.mean(beyond)[0], 3, 0.1);
}

TEST(GaussianProcess, WithoutRowsEverythingIsEqual) {
  GaussianProcess gp(3, 0);
  gp.fit(GpInputs(0, 3, 0), {});
  const Samples pool = samples(5, 1);
  const PoolPosterior posterior(gp, pool.inputs);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(posterior.mean(i), 0);
    EXPECT_EQ(posterior.deviation(i), posterior.deviation(0));
  }
}

}  // namespace
}  // namespace tuner
