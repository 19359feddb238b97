// The cost model: it learns, it can be told apart by its digest, and it refuses what does not fit.
#include "tuner/cost_model/cost_model.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>
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

// Rows of two tasks; scores of the second are ten times too small, as on a machine that is ten times slower.
TEST(CostModel, PairwiseLossComparesRowsOfOneTaskOnly) {
  Samples fast = samples(96, 4), both = fast;
  const Samples slow = samples(96, 5), test = samples(200, 6);
  both.features.values.insert(both.features.values.end(), slow.features.values.begin(),
                              slow.features.values.end());
  for (const float score : slow.scores) both.scores.push_back(0.1f * score);
  // Which task a row is from shows in the last column, so that a model could use it.
  for (size_t row = 0; row < 192; ++row) both.features.values[row * 4 + 3] = row < 96 ? 0.0f : 9.0f;
  const uint32_t groups[] = {96, 96};
  const auto used_for_task = [&](const XgboostOptions& options) {
    const auto model = make_xgboost_model(options);
    CHECK(model->fit(both.features, both.scores, {}, groups).is_ok());
    FeatureMatrix first = test.features, second = test.features;
    for (size_t row = 0; row < 200; ++row) {
      first.values[row * 4 + 3] = 0;
      second.values[row * 4 + 3] = 9;
    }
    const std::vector<float> a = model->predict(first).value(), b = model->predict(second).value();
    EXPECT_GT(rank_correlation(a, test.scores), 0.9);
    double apart = 0, spread = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      apart += std::abs(a[i] - b[i]);
      spread += std::abs(a[i] - a[0]);
    }
    return apart / spread;
  };
  EXPECT_GT(used_for_task({}), 0.5) << "squared error: what is from the slow task is worth less";
  EXPECT_LT(used_for_task({.loss = Loss::kPairwise}), 0.25);
}

TEST(CostModel, EveryLossRanksUnseenRowsAndPredictsOnTheScaleOfTheScores) {
  const Samples train = samples(256, 1), test = samples(200, 2);
  for (const Loss loss : {Loss::kSquared, Loss::kSquaredLog, Loss::kPairwise, Loss::kLogistic}) {
    const auto model = make_xgboost_model({.loss = loss});
    ASSERT_TRUE(model->fit(train.features, train.scores).is_ok());
    const std::vector<float> predicted = model->predict(test.features).value();
    EXPECT_GT(rank_correlation(predicted, test.scores), 0.95) << static_cast<int>(loss);
    double error = 0;
    for (size_t i = 0; i < predicted.size(); ++i) error += std::abs(predicted[i] - test.scores[i]) / 200;
    EXPECT_LT(error, 0.1) << static_cast<int>(loss);
  }
}

TEST(CostModel, LossOfLogsTellsTheSlowApart) {
  Samples s = samples(256, 7);
  for (size_t i = 0; i < s.scores.size(); ++i) {
    const float x = s.features.values[i * 4];
    s.scores[i] = std::exp2(-x);  // 1 to 1/128
  }
  const auto worst_ratio = [&](Loss loss) {
    const auto model = make_xgboost_model({.loss = loss, .rounds = 15});  // both unfinished
    CHECK(model->fit(s.features, s.scores).is_ok());
    const std::vector<float> predicted = model->predict(s.features).value();
    double worst = 1;
    for (size_t i = 0; i < predicted.size(); ++i) {
      const double ratio = std::max(predicted[i], 1e-6f) / s.scores[i];
      worst = std::max({worst, ratio, 1 / ratio});
    }
    return worst;
  };
  EXPECT_LT(worst_ratio(Loss::kSquaredLog), 1.4);
  EXPECT_GT(worst_ratio(Loss::kSquared), 2);
}

TEST(CostModel, LogisticLossLearnsWhatFails) {
  Samples s = samples(256, 8);
  for (size_t i = 0; i < s.scores.size(); ++i) s.scores[i] = s.features.values[i * 4] >= 6 ? 0.0f : 1.0f;
  const auto model = make_xgboost_model({.loss = Loss::kLogistic});
  ASSERT_TRUE(model->fit(s.features, s.scores).is_ok());
  const std::vector<float> chance = model->predict(s.features).value();
  for (size_t i = 0; i < chance.size(); ++i) {
    EXPECT_GT(chance[i], s.scores[i] == 1 ? 0.9f : 0.0f);
    EXPECT_LT(chance[i], s.scores[i] == 1 ? 1.0f : 0.1f);
  }
}

TEST(CostModel, RefusesWhatDoesNotFitTheLoss) {
  Samples s = samples(32, 1);
  const uint32_t short_groups[] = {16, 15};
  EXPECT_EQ(make_xgboost_model({})->fit(s.features, s.scores, {}, short_groups).message(),
            "cost model: the groups have 31 rows, expected 32");
  s.scores[3] = -0.5f;
  EXPECT_EQ(make_xgboost_model({.loss = Loss::kSquaredLog})->fit(s.features, s.scores).message(),
            "cost model: found score -0.5, expected 0 or more: its log is fitted");
  EXPECT_EQ(make_xgboost_model({.loss = Loss::kLogistic})->fit(s.features, s.scores).message(),
            "cost model: found score -0.5, expected a probability");
  EXPECT_TRUE(make_xgboost_model({})->fit(s.features, s.scores).is_ok());
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

TEST(CostModel, IsJudgedInWordsAndWithItsFigure) {
  const std::pair<double, std::string> judged[] = {{0.71, "well (0.71"},
                                                   {0.7, "well (0.70"},
                                                   {0.69, "fairly (0.69"},
                                                   {0.4, "fairly (0.40"},
                                                   {0.39, "poorly (0.39"},
                                                   {0.1, "poorly (0.10"},
                                                   {0.09, "no better than chance (0.09"},
                                                   {-0.8, "no better than chance (-0.80"}};
  for (const auto& [correlation, how] : judged)
    EXPECT_EQ(judged_text(correlation, 16), "the model ranks new candidates " + how + ", of 16 trials)");
}

std::ptrdiff_t threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                       std::filesystem::directory_iterator());
}
const std::ptrdiff_t kThreadsAtStart = threads();  // sanitizers have one of their own

// Two OpenMP threads on a busy host turn a fit of 20 ms into seconds.
TEST(CostModel, FitsAndPredictsInTheThreadThatCallsIt) {
  const Samples s = samples(256, 4);
  const auto model = make_xgboost_model({});
  ASSERT_TRUE(model->fit(s.features, s.scores).is_ok());
  ASSERT_TRUE(model->predict(s.features).is_ok());
  EXPECT_EQ(threads(), kThreadsAtStart) << "a pool outlives the fit that made it";
}

TEST(CostModel, AWeightCountsAsSoManyRows) {
  const FeatureMatrix same{.columns = 1, .values = {1, 1, 1, 1}};
  const std::vector<float> scores = {0, 0, 0, 1}, weights = {1, 1, 1, 9};
  const auto answer = [&](std::span<const float> w) {
    const auto model = make_xgboost_model({});
    CHECK(model->fit(same, scores, w).is_ok());
    return model->predict({.columns = 1, .values = {1}})->front();
  };
  EXPECT_NEAR(answer({}), 0.25, 0.06);
  EXPECT_NEAR(answer(weights), 0.75, 0.06);
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
