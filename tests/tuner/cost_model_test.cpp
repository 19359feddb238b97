// The cost model: it learns, it can be told apart by its digest, and it refuses what does not fit.
#include "tuner/cost_model/cost_model.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <random>

namespace tuner {
namespace {

struct Samples {
  FeatureMatrix features;
  std::vector<float> scores;
};

// score = 1 when x is near 3 and y is set, falling off with the distance; two columns that say nothing.
Samples samples(size_t rows, uint64_t seed) {
  Samples s{.features = {.columns = 4, .values = {}}, .scores = {}};
  std::mt19937_64 rng(seed);
  for (size_t i = 0; i < rows; ++i) {
    const float x = static_cast<float>(rng() % 8), y = static_cast<float>(rng() % 2);
    const float noise[] = {static_cast<float>(rng() % 5), static_cast<float>(rng() % 3)};
    s.features.values.insert(s.features.values.end(), {x, noise[0], y, noise[1]});
    s.scores.push_back((y == 1 ? 1.0f : 0.4f) / (1 + std::abs(x - 3)));
  }
  return s;
}

TEST(CostModel, RanksUnseenRowsOfAFunctionItLearnt) {
  const Samples train = samples(128, 1), test = samples(200, 2);
  const auto model = make_xgboost_model({});
  ASSERT_FALSE(model->fitted());
  ASSERT_TRUE(model->fit(train.features, train.scores).is_ok());
  ASSERT_TRUE(model->fitted());
  const Result<std::vector<float>> predicted = model->predict(test.features);
  ASSERT_TRUE(predicted.is_ok()) << predicted.message();
  EXPECT_GT(rank_correlation(*predicted, test.scores), 0.95);
  for (size_t i = 0; i < predicted->size(); ++i)
    EXPECT_NEAR((*predicted)[i], test.scores[i], 0.15) << "row " << i;
}

TEST(CostModel, DigestFollowsTheRowsAndTheSeedOfTheDraws) {
  const Samples a = samples(64, 1), b = samples(64, 2);
  const auto digest_after = [](const Samples& s, const XgboostOptions& options) {
    const auto model = make_xgboost_model(options);
    EXPECT_TRUE(model->fit(s.features, s.scores).is_ok());
    return model->digest();
  };
  EXPECT_TRUE(make_xgboost_model({})->digest().empty());
  EXPECT_EQ(digest_after(a, {}), digest_after(a, {}));
  EXPECT_NE(digest_after(a, {}), digest_after(b, {}));
  EXPECT_NE(digest_after(a, {.subsample = 0.5f, .seed = 1}), digest_after(a, {.subsample = 0.5f, .seed = 2}));
}

TEST(CostModel, MissingFeaturesAreTakenAsSuch) {
  Samples s = samples(128, 3);
  for (size_t row = 0; row < 64; ++row)
    s.features.values[row * 4 + 1] = std::numeric_limits<float>::quiet_NaN();
  const auto model = make_xgboost_model({});
  ASSERT_TRUE(model->fit(s.features, s.scores).is_ok());
  const Result<std::vector<float>> predicted = model->predict(s.features);
  ASSERT_TRUE(predicted.is_ok()) << predicted.message();
  EXPECT_GT(rank_correlation(*predicted, s.scores), 0.95);
}

TEST(CostModel, RefusesWhatDoesNotFit) {
  const Samples s = samples(32, 1);
  const auto model = make_xgboost_model({});
  EXPECT_EQ(model->predict(s.features).message(), "cost model: asked to predict before the first fit");
  EXPECT_EQ(model->fit(s.features, std::span(s.scores).first(31)).message(),
            "cost model: found 31 scores for 32 rows; expected one score a row and at least one row");
  EXPECT_EQ(model->fit({.columns = 5, .values = std::vector<float>(7)}, s.scores).message(),
            "cost model: 7 feature values do not make rows of 5 columns");
  std::vector<float> broken = s.scores;
  broken[3] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(model->fit(s.features, broken).code(), StatusCode::kInvalidArgument);
  ASSERT_TRUE(model->fit(s.features, s.scores).is_ok());
  const std::string digest = model->digest();
  EXPECT_EQ(model->predict({.columns = 3, .values = std::vector<float>(6)}).message(),
            "cost model: found 3 feature columns, expected 4 as in the fit");
  EXPECT_FALSE(model->fit(s.features, {}).is_ok());
  EXPECT_EQ(model->digest(), digest) << "a refused fit must leave the earlier one";
  EXPECT_TRUE(model->predict(s.features).is_ok());
}

TEST(CostModel, RankCorrelationIsSpearmans) {
  const auto rho = [](std::vector<float> a, std::vector<float> b) { return rank_correlation(a, b); };
  EXPECT_DOUBLE_EQ(rho({1, 2, 3, 4}, {10, 20, 25, 1000}), 1);
  EXPECT_DOUBLE_EQ(rho({1, 2, 3, 4}, {4, 3, 2, 1}), -1);
  EXPECT_DOUBLE_EQ(rho({1, 2, 3, 4, 5}, {2, 1, 4, 3, 5}), 0.8);  // 1 - 6 * 4 / (5 * 24)
  EXPECT_NEAR(rho({1, 1, 2, 3}, {1, 2, 3, 4}), 0.9487, 1e-4);    // ties share their rank
  EXPECT_EQ(rho({1, 1, 1}, {1, 2, 3}), 0);
  EXPECT_EQ(rho({}, {}), 0);
}

}  // namespace
}  // namespace tuner
