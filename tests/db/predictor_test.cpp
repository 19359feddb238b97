// The parts answers for unknown shapes are made of: trees, shapes, configs moved between spaces.
#include <gtest/gtest.h>

#include <limits>

#include "db/learning/boosted_trees.h"
#include "db/learning/task_shape.h"
#include "templates/space/knob.h"
#include "templates/space/project.h"

namespace tuner {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// y = 2 where a > 3, else 1; 5 where a is missing. b says nothing.
TrainingRows steps() {
  TrainingRows rows{.columns = 2};
  for (int i = 0; i < 300; ++i) {
    const float a = i % 3 == 2 ? kNaN : static_cast<float>(i % 7);
    rows.values.insert(rows.values.end(), {a, static_cast<float>(i % 5)});
    rows.wanted.push_back(std::isnan(a) ? 5.0f : a > 3 ? 2.0f : 1.0f);
    rows.weights.push_back(1);
  }
  return rows;
}

TEST(BoostedTrees, LearnStepsAndWhatIsMissing) {
  const BoostedTrees trees = BoostedTrees::fit(steps(), {});
  const auto at = [&](float a) { return trees.predict(std::vector<float>{a, 0}); };
  EXPECT_NEAR(at(1), 1, 0.02);
  EXPECT_NEAR(at(6), 2, 0.02);
  EXPECT_NEAR(at(kNaN), 5, 0.02);
  EXPECT_GT(trees.importance()[0], 0.99);
}

TEST(BoostedTrees, TheSameRowsGiveTheSameTreesAndTheyReadBack) {
  const BoostedTrees trees = BoostedTrees::fit(steps(), {});
  EXPECT_EQ(trees.to_json(), BoostedTrees::fit(steps(), {}).to_json());
  const Result<BoostedTrees> read = BoostedTrees::from_json(nlohmann::json::parse(trees.to_json().dump()));
  ASSERT_TRUE(read) << read.message();
  for (const float a : {-1.0f, 0.0f, 3.0f, 3.5f, 9.0f, kNaN}) {
    const std::vector<float> row = {a, 2};
    EXPECT_EQ(read->predict(row), trees.predict(row)) << a;
  }
}

TEST(BoostedTrees, ATreeThatWouldNotEndIsRefused) {
  nlohmann::json document = BoostedTrees::fit(steps(), {.trees = 1}).to_json();
  ASSERT_GE(document["trees"][0][0][0].get<int>(), 0) << "the first node is a split";
  for (const int left : {-1, 0, 1'000'000}) {
    nlohmann::json loop = document;
    loop["trees"][0][1][0] = left;
    EXPECT_FALSE(BoostedTrees::from_json(loop)) << left;
  }
  document["trees"][0][0][0] = 2;
  EXPECT_FALSE(BoostedTrees::from_json(document)) << "there are two columns";
}

Conv2dWorkload convolution() {
  Conv2dWorkload w;
  w.in_channels = 64;
  w.in_height = w.in_width = 56;
  w.out_channels = 128;
  w.kernel_height = w.kernel_width = 3;
  w.padding = {1, 1, 1, 1};
  w.constant = {"weight"};
  return w;
}

TEST(TaskShape, EpiloguesAreOneShapeAndLayoutsAreNot) {
  const Conv2dWorkload plain = convolution();
  Conv2dWorkload full = plain, blocked = plain;
  full.bias = full.residual = full.scale = true;
  full.activation = Activation::kRelu;
  full.constant = {"bias", "weight"};
  blocked.layout = blocked.out_layout = "NCHW16c";
  EXPECT_EQ(key_without_epilogue(full), key_without_epilogue(plain));
  EXPECT_EQ(shape_of(full).variant, shape_of(plain).variant);
  EXPECT_EQ(shape_of(full).dimensions, shape_of(plain).dimensions);
  EXPECT_NE(shape_of(blocked).variant, shape_of(plain).variant);
  EXPECT_EQ(output_elements(plain), 128 * 56 * 56);
}

TEST(TaskShape, RealDimensionsTellApartWhatAProductDoesNot) {
  MatmulWorkload flat, square;
  flat.m = 1, flat.n = 4096;
  square.m = square.n = 64;
  EXPECT_EQ(output_elements(flat), output_elements(square));
  EXPECT_NE(shape_of(flat).dimensions, shape_of(square).dimensions);
}

ConfigSpace tiles(int64_t m, int64_t n, int64_t budget) {
  ConfigSpace space;
  SplitKnob tile_m = space.split("tile_m", m).at_most(32);
  SplitKnob tile_n = space.split("tile_n", n).at_most(32);
  space.flag("pack");
  space.require(tile_m.inner() * tile_n.inner() <= budget);
  CHECK(space.seal().is_ok());
  return space;
}

Config config(int64_t m, int64_t n, int64_t pack) {
  return Config({{"tile_m", m}, {"tile_n", n}, {"pack", pack}});
}

TEST(Project, AValidConfigStaysAsItIs) {
  EXPECT_EQ(project(config(8, 16, 1), tiles(64, 64, 256)), config(8, 16, 1));
}

TEST(Project, TheNearestValidConfigIsFound) {
  // 8 x 16 is over the budget of 64: 8 x 8 and 4 x 16 are one doubling away.
  const std::optional<Config> here = project(config(8, 16, 1), tiles(64, 64, 64));
  ASSERT_TRUE(here);
  EXPECT_EQ(here->at("pack"), 1);
  const int64_t m = here->at("tile_m"), n = here->at("tile_n");
  EXPECT_LE(m * n, 64);
  EXPECT_NEAR(std::abs(std::log2(m / 8.0)) + std::abs(std::log2(n / 16.0)), 1, 1e-9);
}

TEST(Project, ATileLargerThanTheAxisShrinksToIt) {
  EXPECT_EQ(project(config(32, 32, 0), tiles(5, 64, 1024)), config(5, 32, 0));
}

TEST(Project, OtherKnobsAreNoConfigOfThisSpace) {
  EXPECT_EQ(project(Config({{"tile_m", 8}}), tiles(64, 64, 64)), std::nullopt);
  EXPECT_EQ(project(Config({{"tile_m", 8}, {"tile_k", 8}, {"pack", 0}}), tiles(64, 64, 64)), std::nullopt);
}

}  // namespace
}  // namespace tuner
