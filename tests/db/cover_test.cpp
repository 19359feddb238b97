// Cover sets against every set there is, trees against their columns, documents against damage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "db/learning/cover.h"
#include "db/learning/cover_set.h"
#include "tests/random_seed.h"

namespace tuner {
namespace {

// Scores as measured: most configs are slow, some failed or were never tried; one in each column is the best.
ScoreTable random_table(uint64_t seed, int rows, int columns) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> score(0.2, 1);
  ScoreTable table{.columns = columns, .rows = std::vector<std::vector<ScoreTable::Entry>>(rows)};
  for (int c = 0; c < columns; ++c) {
    const auto best = static_cast<int>(random() % static_cast<uint64_t>(rows));
    for (int r = 0; r < rows; ++r)
      if (r == best)
        table.rows[r].push_back({c, 1});
      else if (random() % 4 != 0)
        table.rows[r].push_back({c, score(random)});
  }
  return table;
}

double worst_of(const ScoreTable& table, const std::vector<int>& rows) {
  double worst = 1;
  for (int c = 0; c < table.columns; ++c) {
    double best = 0;
    for (const int r : rows)
      for (const ScoreTable::Entry& e : table.rows[r])
        if (e.column == c) best = std::max(best, e.score);
    worst = std::min(worst, best);
  }
  return worst;
}

// The best `worst` of all sets of k rows.
double exhaustive(const ScoreTable& table, int k) {
  const auto rows = static_cast<int>(table.rows.size());
  std::vector<bool> in(rows, false);
  std::fill(in.begin(), in.begin() + k, true);
  double best = 0;
  do {
    std::vector<int> set;
    for (int r = 0; r < rows; ++r)
      if (in[r]) set.push_back(r);
    best = std::max(best, worst_of(table, set));
  } while (std::prev_permutation(in.begin(), in.end()));
  return best;
}

TEST(CoverSet, ReachesTheBestOfAllSets) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const ScoreTable table = random_table(seed, 14, 4 + static_cast<int>(seed % 5));
    for (int k = 1; k <= 4; ++k) {
      const CoverSet set = best_cover(table, k);
      EXPECT_LE(std::ssize(set.rows), k);
      EXPECT_DOUBLE_EQ(set.worst, worst_of(table, set.rows)) << "seed " << seed << ", k " << k;
      EXPECT_DOUBLE_EQ(set.worst, exhaustive(table, k)) << "seed " << seed << ", k " << k;
      EXPECT_TRUE(set.is_optimal());
    }
  }
}

TEST(CoverSet, TheSmallestIsAsSmallAsAnyThatReachesTheLevel) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const ScoreTable table = random_table(1000 + seed, 12, 6);
    const double level = 0.95 - 0.01 * static_cast<double>(seed % 20);
    const SmallestCover smallest = smallest_cover(table, level, 6);
    const auto size = static_cast<int>(smallest.set.rows.size());
    EXPECT_GE(worst_of(table, smallest.set.rows), level) << "six columns need at most six rows";
    EXPECT_EQ(smallest.at_least, size) << "seed " << seed;
    if (size > 1) {
      EXPECT_LT(exhaustive(table, size - 1), level) << "seed " << seed;
    }
  }
}

TEST(CoverSet, TooFewRowsGiveTheBestThereIsAndItsFigure) {
  const ScoreTable table{
      .columns = 3, .rows = {{{0, 1}, {1, 0.5}, {2, 0.5}}, {{1, 1}, {0, 0.5}}, {{2, 1}, {0, 0.2}, {1, 0.2}}}};
  const SmallestCover smallest = smallest_cover(table, 0.95, 2);
  EXPECT_EQ(smallest.at_least, 3);
  EXPECT_DOUBLE_EQ(smallest.set.worst, 0.5);
  EXPECT_DOUBLE_EQ(smallest.set.bound, 0.5);
}

TEST(CoverSet, WhatWasNeverMeasuredCountsAsNothing) {
  const ScoreTable table{.columns = 2, .rows = {{{0, 1}}, {{0, 0.3}, {1, 1}}}};
  EXPECT_DOUBLE_EQ(score_cover(table, {0}).worst, 0);
  const CoverSet one = best_cover(table, 1);
  EXPECT_THAT(one.rows, testing::ElementsAre(1));
  EXPECT_DOUBLE_EQ(one.worst, 0.3);
}

TEST(CoverSet, AmongSetsThatAreAsGoodAtWorstTheMeanDecides) {
  const ScoreTable table{
      .columns = 3,
      .rows = {{{0, 0.8}, {1, 0.8}, {2, 0.8}}, {{0, 0.8}, {1, 0.9}, {2, 1}}, {{0, 1}}, {{1, 1}}}};
  EXPECT_THAT(best_cover(table, 1).rows, testing::ElementsAre(1));
}

TEST(CoverSet, WithoutStepsThereIsASetAndABoundThatHolds) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const ScoreTable table = random_table(2000 + seed, 14, 8);
    const CoverSet set = best_cover(table, 3, {.steps = 40});
    const double optimum = exhaustive(table, 3);
    EXPECT_LE(set.worst, optimum);
    EXPECT_GE(set.bound, optimum) << "seed " << seed;
    EXPECT_DOUBLE_EQ(set.worst, worst_of(table, set.rows));
  }
}

TEST(CoverSet, ManyColumnsAndRowsAreSolvedOrBounded) {
  const ScoreTable table = random_table(7, 3000, 90);
  const CoverSet set = best_cover(table, 6, {.steps = 20'000'000});
  EXPECT_LE(set.rows.size(), 6u);
  EXPECT_DOUBLE_EQ(set.worst, worst_of(table, set.rows));
  EXPECT_GE(set.bound, set.worst);
  EXPECT_GT(set.worst, 0.3);
}

TEST(CoverTree, FeaturesAreTheNumbersAndWordsOfAKey) {
  const CoverFeatures f = features_of_key(
      "v1 conv2d n=1 ic=512 stride=1,2 bias=1 act=relu dtype=float32 layout=NCHW const=weight");
  EXPECT_EQ(f.number("ic"), 512);
  EXPECT_EQ(f.number("stride_0"), 1);
  EXPECT_EQ(f.number("stride_1"), 2);
  EXPECT_EQ(f.word("act"), "relu");
  EXPECT_EQ(f.number("residual"), 0) << "a key leaves it out where there is none";
  EXPECT_EQ(f.words.count("const"), 0u);
  EXPECT_EQ(f.numbers.count("v1"), 0u);
}

// Arguments repeat the sizes, and a digest is of one task alone: neither tells which config another task may
// have.
TEST(CoverTree, FeaturesOfAUsersKernelAreItsSizes) {
  const CoverFeatures f = features_of_key(
      "v1 kernel stencil height=480 in=float32[482,642] out=out:float32[480,640] width=int64:640 source=" +
      std::string(64, 'a'));
  EXPECT_EQ(f.numbers.size(), 1u);
  EXPECT_EQ(f.number("height"), 480);
  EXPECT_TRUE(f.words.empty());
}

CoverFeatures shape(int64_t m, int64_t n, const std::string& target = "a") {
  return {.numbers = {{"m", m}, {"n", n}}, .words = {{"target", target}}};
}

TEST(CoverTree, SplitsWhereTheBestConfigChanges) {
  const CoverTree tree = grow_cover_tree({shape(1, 64), shape(4, 64), shape(100, 64), shape(900, 64)},
                                         {{1, 0.2}, {0.99, 0.3}, {0.3, 1}, {0.2, 1}}, 0.95);
  ASSERT_EQ(tree.nodes.size(), 3u);
  EXPECT_EQ(tree.nodes[0].feature, "m");
  EXPECT_EQ(tree.nodes[0].at_most, 20) << "half way between 4 and 100, by ratio";
  EXPECT_EQ(tree.choose(shape(2, 1000)), 0);
  EXPECT_EQ(tree.choose(shape(50, 1)), 1);
}

TEST(CoverTree, AsksForTheDeviceWhereShapesDoNotDecide) {
  const CoverTree tree =
      grow_cover_tree({shape(8, 8, "a"), shape(8, 8, "b"), shape(64, 8, "a"), shape(64, 8, "b")},
                      {{1, 0.5}, {0.5, 1}, {1, 0.4}, {0.4, 1}}, 0.95);
  EXPECT_EQ(tree.choose(shape(8, 8, "b")), 1);
  const CoverTree on_a = tree.given("target", "a");
  ASSERT_EQ(on_a.nodes.size(), 1u);
  EXPECT_EQ(on_a.nodes[0].use, 0);
}

TEST(CoverTree, OneConfigThatIsGoodEverywhereNeedsNoQuestion) {
  const CoverTree tree = grow_cover_tree({shape(1, 1), shape(9, 9)}, {{0.999, 1}, {1, 0.7}}, 0.95);
  ASSERT_EQ(tree.nodes.size(), 1u);
  EXPECT_EQ(tree.nodes[0].use, 0);
}

TEST(CoverTree, QuestionsWhoseAnswerMakesNoDifferenceAreNotAsked) {
  for (const uint32_t seed : Seeds(/*fixed=*/0, /*rounds=*/200)) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> score(0.3, 1);
    std::vector<CoverFeatures> columns;
    std::vector<std::vector<double>> scores;
    for (int c = 0; c < 12; ++c) {
      columns.push_back(shape(1 + c, 1));
      scores.push_back({score(random), score(random)});
    }
    const CoverTree tree = grow_cover_tree(columns, scores, 0);
    for (const CoverTree::Node& n : tree.nodes) {
      if (n.use >= 0) continue;
      const CoverTree::Node &yes = tree.nodes[static_cast<size_t>(n.yes)],
                            &no = tree.nodes[static_cast<size_t>(n.no)];
      EXPECT_FALSE(yes.use >= 0 && yes.use == no.use) << "seed " << seed;
    }
  }
}

TEST(CoverTree, EveryColumnGetsTheSetsWorstOrBetter) {
  for (const uint32_t seed : Seeds(/*fixed=*/0, /*rounds=*/50)) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> score(0.3, 1);
    std::vector<CoverFeatures> columns;
    std::vector<std::vector<double>> scores;
    double level = 1;
    for (int c = 0; c < 30; ++c) {
      columns.push_back(shape(1 + c / 6, 1 + c % 6));
      scores.push_back({score(random), score(random), score(random)});
      level = std::min(level, *std::max_element(scores.back().begin(), scores.back().end()));
    }
    const CoverTree tree = grow_cover_tree(columns, scores, level);
    for (size_t c = 0; c < columns.size(); ++c)
      EXPECT_GE(scores[c][static_cast<size_t>(tree.choose(columns[c]))], level) << "seed " << seed;
  }
}

Cover example() {
  Cover cover{.op = "matmul",
              .target = "llvm -mcpu=haswell -threads=1",
              .configs = {{"matmul_cpu", 2, "tile_m=4 tile_n=16"}, {"matmul_dot_cpu", 1, "rows=8"}},
              .columns = 4,
              .worst = 0.95,
              .mean = 0.98,
              .left_out = {.columns = 4, .known = 3, .worst = 0.7, .mean = 0.9}};
  cover.tree =
      grow_cover_tree({shape(1, 64), shape(100, 64)}, {{1, 0.2}, {0.3, 1}}, 0.95).given("target", "a");
  return cover;
}

TEST(Cover, ADocumentReadsBackAsItWasWritten) {
  const std::string text = cover_to_json(example());
  const Result<Cover> back = cover_from_json(text);
  ASSERT_TRUE(back.is_ok()) << back.message();
  EXPECT_EQ(cover_to_json(*back), text);
  EXPECT_EQ(back->choose("v1 matmul b=1 m=1 n=7 k=7").template_name, "matmul_cpu");
  EXPECT_EQ(back->choose("v1 matmul b=1 m=512 n=7 k=7").config, "rows=8");
  EXPECT_EQ(back->left_out.known, 3);
}

TEST(Cover, RefusesATreeThatWouldRunAstrayNamingThePlace) {
  const auto refusal = [](const std::string& from, const std::string& to) {
    std::string text = cover_to_json(example());
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return cover_from_json(text.replace(at, from.size(), to)).status().message();
  };
  EXPECT_EQ(refusal("\"yes\":1", "\"yes\":0"), "cover: tree[0].yes: expected an integer from 1 to 2");
  EXPECT_EQ(refusal("\"use\":1", "\"use\":2"), "cover: tree[2].use: expected an integer from 0 to 1");
  EXPECT_EQ(refusal("\"version\":1", "\"version\":9"), "cover: version: expected an integer from 1 to 1");
  EXPECT_EQ(refusal("\"worst\":0.95", "\"worst\":\"x\""), "cover: worst: expected a number from 0 to 1");
}

TEST(Cover, DamagedDocumentsAreRefusedOrSafeToChooseFrom) {
  const std::string good = cover_to_json(example());
  int accepted = 0;
  Seeds seeds(/*fixed=*/0, /*rounds=*/20'000);
  for (const uint32_t seed : seeds) {
    std::mt19937_64 random(seed);
    std::string text = good;
    for (uint64_t edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text[at] = static_cast<char>('0' + random() % 10);
          break;
        case 2:
          text.erase(at, 1 + random() % 6);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 20));
          break;
      }
      if (text.empty()) text = "x";
    }
    const Result<Cover> cover = cover_from_json(text);
    if (!cover) {
      ASSERT_EQ(cover.status().code(), StatusCode::kInvalidArgument) << "seed " << seed;
      continue;
    }
    ++accepted;
    for (const char* key : {"v1 matmul m=1", "v1 matmul m=100000", ""}) {
      const std::ptrdiff_t chosen = &cover->choose(key) - cover->configs.data();
      ASSERT_GE(chosen, 0) << "seed " << seed;
      ASSERT_LT(chosen, std::ssize(cover->configs)) << "seed " << seed;
    }
  }
  if (seeds.all()) {
    EXPECT_GT(accepted, 500) << "the mutations no longer get past the parser";
  }
}

}  // namespace
}  // namespace tuner
