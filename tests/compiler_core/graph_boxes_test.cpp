// NonMaxSuppression: the standard's examples, and boxes drawn from a seed against a plain loop.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/compiler_core/graph_answer.h"

namespace tuner::graph {
namespace {

using testing::Answer;
using testing::Dims;
using ::testing::ElementsAre;
using testing::floats;
using ::testing::HasSubstr;
using testing::Numbers;
using testing::of;
using testing::Operand;
using testing::run;

Operand most(int64_t number) { return {{DType::kInt64, {1}}, {static_cast<double>(number)}, true}; }
Operand limit(double number) { return floats({1}, {number}); }

const Operand kBoxes = floats(
    {1, 6, 4}, {0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, -0.1, 1, 0.9, 0, 10, 1, 11, 0, 10.1, 1, 11.1, 0, 100, 1, 101});
const Operand kScores = floats({1, 1, 6}, {0.9, 0.75, 0.6, 0.95, 0.5, 0.3});
Attributes rows(int64_t count) { return {{"tuner.rows", of(count)}}; }
std::vector<Operand> constants(std::vector<Operand> operands) {
  for (Operand& operand : operands) operand.constant = true;
  return operands;
}

TEST(GraphBoxes, SelectsTheBestOfThoseThatOverlap) {
  EXPECT_THAT(run(11, "NonMaxSuppression", {kBoxes, kScores, most(3), limit(0.5), limit(0)}, rows(3)).numbers,
              ElementsAre(0, 0, 3, 0, 0, 0, 0, 0, 5));
  EXPECT_THAT(
      run(11, "NonMaxSuppression", {kBoxes, kScores, most(3), limit(0.5), limit(0.4)}, rows(3)).numbers,
      ElementsAre(0, 0, 3, 0, 0, 0, -1, -1, -1));
  EXPECT_THAT(run(11, "NonMaxSuppression", {kBoxes, kScores, most(2), limit(0.5), limit(0)}, rows(2)).numbers,
              ElementsAre(0, 0, 3, 0, 0, 0));
  // Beyond the bound rows are left out; without limits the least overlap suppresses, and every score counts.
  EXPECT_THAT(run(11, "NonMaxSuppression", {kBoxes, kScores, most(6)}, rows(1)).numbers,
              ElementsAre(0, 0, 3));
  EXPECT_THAT(run(11, "NonMaxSuppression", {kBoxes, kScores, most(6)}, rows(4)).numbers,
              ElementsAre(0, 0, 3, 0, 0, 0, 0, 0, 5, -1, -1, -1));
}

// Nothing overlaps by more than all of it: each box is selected, and once.
TEST(GraphBoxes, ABoxIsSelectedOnce) {
  EXPECT_THAT(run(11, "NonMaxSuppression", {kBoxes, kScores, most(6), limit(1)}, rows(6)).numbers,
              ElementsAre(0, 0, 3, 0, 0, 0, 0, 0, 1, 0, 0, 2, 0, 0, 4, 0, 0, 5));
}

TEST(GraphBoxes, BoxesMayBeCentersOrFlippedCorners) {
  const Operand centers = floats({1, 6, 4}, {0.5, 0.5,  1, 1, 0.5, 0.6,  1, 1, 0.5, 0.4,   1, 1,
                                             0.5, 10.5, 1, 1, 0.5, 10.6, 1, 1, 0.5, 100.5, 1, 1});
  Attributes attributes = rows(3);
  attributes["center_point_box"] = int64_t{1};
  EXPECT_THAT(
      run(11, "NonMaxSuppression", {centers, kScores, most(3), limit(0.5), limit(0)}, attributes).numbers,
      ElementsAre(0, 0, 3, 0, 0, 0, 0, 0, 5));
  const Operand flipped = floats({1, 6, 4}, {1, 1,  0, 0,  0, 0.1,  1, 1.1,  0, 0.9, 1, -0.1,
                                             0, 10, 1, 11, 1, 10.1, 0, 11.1, 1, 101, 0, 100});
  EXPECT_THAT(
      run(11, "NonMaxSuppression", {flipped, kScores, most(3), limit(0.5), limit(0)}, rows(3)).numbers,
      ElementsAre(0, 0, 3, 0, 0, 0, 0, 0, 5));
}

TEST(GraphBoxes, ExtentsThatDependOnDataNeedABound) {
  EXPECT_THAT(
      run(11, "NonMaxSuppression", {kBoxes, kScores, most(3), limit(0.5), limit(0)}).refusal,
      HasSubstr("the number of boxes it selects depends on data: input 0 (x) is an input of the model"));
  EXPECT_THAT(run(11, "NonMaxSuppression", {kBoxes, kScores, most(3)}, rows(4)).refusal,
              HasSubstr("4 rows of result, expected 1 to 3"));
  EXPECT_THAT(run(11, "NonMaxSuppression", {kBoxes, kScores}).refusal,
              HasSubstr("max_output_boxes_per_class is 0"));
  // Of constants the rows are counted.
  const Answer known =
      run(11, "NonMaxSuppression", constants({kBoxes, kScores, most(3), limit(0.5), limit(0.4)}));
  EXPECT_THAT(known.shape, ElementsAre(2, 3));
  EXPECT_THAT(known.numbers, ElementsAre(0, 0, 3, 0, 0, 0));
  EXPECT_THAT(
      run(11, "NonMaxSuppression", constants({kBoxes, kScores, most(3), limit(0.5), limit(4)})).refusal,
      HasSubstr("no box is selected"));
}

// Batches and classes of random boxes, scores that are equal, and NaNs among them.
TEST(GraphBoxes, RandomBoxesAreSelectedAsAPlainLoopDoes) {
  std::mt19937 random(17);
  std::uniform_real_distribution<float> place(0, 4), size(0.2F, 2);
  constexpr int64_t kBatches = 2, kClasses = 3, kCount = 23, kRounds = 7;
  for (int round = 0; round < 5; ++round) {
    Numbers boxes, scores;
    for (int64_t b = 0; b < kBatches * kCount; ++b) {
      const float y = place(random), x = place(random);
      for (const float edge : {y, x, y + size(random), x + size(random)}) boxes.push_back(edge);
    }
    for (int64_t k = 0; k < kBatches * kClasses * kCount; ++k)
      scores.push_back(static_cast<double>(random() % 12) / 16);
    scores[5] = std::nan("");
    Numbers expected;
    for (int64_t n = 0; n < kBatches; ++n)
      for (int64_t c = 0; c < kClasses; ++c) {
        Dims taken;
        std::vector<bool> gone(kCount);
        for (int64_t r = 0; r < kRounds; ++r) {
          int64_t best = -1;
          const auto score = [&](int64_t b) {
            return scores[static_cast<size_t>((n * kClasses + c) * kCount + b)];
          };
          for (int64_t b = 0; b < kCount; ++b)
            if (!gone[static_cast<size_t>(b)] && score(b) > 0.125 && (best < 0 || score(b) > score(best)))
              best = b;
          if (best < 0) break;
          for (const double x : {n, c, best}) expected.push_back(static_cast<double>(x));
          for (int64_t b = 0; b < kCount; ++b) {
            const double *p = &boxes[static_cast<size_t>(4 * (n * kCount + best))],
                         *q = &boxes[static_cast<size_t>(4 * (n * kCount + b))];
            double shared = 1;
            for (const int d : {0, 1})
              shared *= std::max(0.0, std::min(p[d + 2], q[d + 2]) - std::max(p[d], q[d]));
            const auto area = [](const double* e) { return (e[2] - e[0]) * (e[3] - e[1]); };
            if (b == best || shared / (area(p) + area(q) - shared) > 0.3) gone[static_cast<size_t>(b)] = true;
          }
        }
      }
    const auto found = static_cast<int64_t>(expected.size()) / 3, all = kBatches * kClasses * kRounds;
    expected.resize(static_cast<size_t>(3 * all), -1);
    const std::vector<Operand> operands{floats({kBatches, kCount, 4}, boxes),
                                        floats({kBatches, kClasses, kCount}, scores), most(kRounds),
                                        limit(0.3), limit(0.125)};
    EXPECT_EQ(run(11, "NonMaxSuppression", operands, rows(all)).numbers, expected);
    EXPECT_THAT(run(11, "NonMaxSuppression", constants(operands)).shape, ElementsAre(found, 3));
  }
}

}  // namespace
}  // namespace tuner::graph
