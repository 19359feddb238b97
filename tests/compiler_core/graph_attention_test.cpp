// Attention and its rotation, and losses: held against plain loops in double precision.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "tests/compiler_core/graph_answer.h"

namespace tuner::graph {
namespace {

using testing::Answer;
using testing::Dims;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using testing::floats;
using ::testing::HasSubstr;
using testing::kNone;
using testing::Numbers;
using testing::of;
using testing::Operand;
using ::testing::Pointwise;
using testing::run;
using testing::word;

Numbers drawn(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> number(-1, 1);
  Numbers numbers(static_cast<size_t>(count));
  for (double& x : numbers) x = static_cast<float>(number(random));
  return numbers;
}
auto near(const Numbers& expected) { return Pointwise(DoubleNear(1e-5), expected); }
size_t flat(std::initializer_list<int64_t> place, const Dims& shape) {
  int64_t all = 0;
  size_t d = 0;
  for (const int64_t p : place) all = all * shape[d++] + p;
  return static_cast<size_t>(all);
}

// --- attention, head by head ---
struct Case {
  int64_t batch = 2, heads = 4, shared = 2, queries = 3, keys = 5, past = 0, size = 4, value_size = 3;
  bool causal = false;
  double scale = 0.5, softcap = 0;  // 0.5: 1 / sqrt(size)
  std::function<double(int64_t, int64_t, int64_t, int64_t)> mask = [](auto...) { return 0.0; };
};
struct Given {
  Numbers q, k, v, past_k, past_v;
};
Given given(const Case& c) {
  return {drawn(c.batch * c.heads * c.queries * c.size, 1), drawn(c.batch * c.shared * c.keys * c.size, 2),
          drawn(c.batch * c.shared * c.keys * c.value_size, 3),
          drawn(c.batch * c.shared * c.past * c.size, 4),
          drawn(c.batch * c.shared * c.past * c.value_size, 5)};
}
double present(const Case& c, const Numbers& now, const Numbers& past, int64_t size, int64_t b, int64_t h,
               int64_t t, int64_t e) {
  return t < c.past ? past[flat({b, h, t, e}, {c.batch, c.shared, c.past, size})]
                    : now[flat({b, h, t - c.past, e}, {c.batch, c.shared, c.keys, size})];
}
Numbers attended(const Case& c, const Given& g) {
  Numbers y;
  const int64_t total = c.past + c.keys;
  for (int64_t b = 0; b < c.batch; ++b)
    for (int64_t h = 0; h < c.heads; ++h)
      for (int64_t s = 0; s < c.queries; ++s) {
        const int64_t shared = h / (c.heads / c.shared);
        Numbers score;
        for (int64_t t = 0; t < total; ++t) {
          double sum = 0;
          for (int64_t e = 0; e < c.size; ++e)
            sum += g.q[flat({b, h, s, e}, {c.batch, c.heads, c.queries, c.size})] *
                   present(c, g.k, g.past_k, c.size, b, shared, t, e);
          sum *= c.scale;
          if (c.softcap != 0) sum = c.softcap * std::tanh(sum / c.softcap);
          const bool hidden = c.causal && t > s + c.past;
          score.push_back(hidden ? -HUGE_VAL : sum + c.mask(b, h, s, t));
        }
        const double most = *std::ranges::max_element(score);
        double all = 0;
        for (double& x : score) all += x = most == -HUGE_VAL ? 0 : std::exp(x - most);
        for (int64_t e = 0; e < c.value_size; ++e) {
          double sum = 0;
          for (int64_t t = 0; t < total; ++t)
            sum += score[static_cast<size_t>(t)] * present(c, g.v, g.past_v, c.value_size, b, shared, t, e);
          y.push_back(all == 0 ? 0 : sum / all);
        }
      }
  return y;
}
std::vector<Operand> operands(const Case& c, const Given& g) {
  return {floats({c.batch, c.heads, c.queries, c.size}, g.q),
          floats({c.batch, c.shared, c.keys, c.size}, g.k),
          floats({c.batch, c.shared, c.keys, c.value_size}, g.v)};
}

TEST(GraphAttention, SharesHeadsOfKeysInOrder) {
  const Case c;
  const Given g = given(c);
  const Answer y = run(23, "Attention", operands(c, g));
  ASSERT_EQ(y.refusal, "");
  EXPECT_THAT(y.shape, ElementsAre(2, 4, 3, 3));
  EXPECT_THAT(y.numbers, near(attended(c, g)));
}

TEST(GraphAttention, MasksAreTruthOrAreAdded) {
  Case c;
  const Given g = given(c);
  const Numbers added = drawn(3 * 5, 8);
  std::vector<Operand> with = operands(c, g);
  with.push_back(floats({3, 5}, added));
  c.mask = [&](auto, auto, int64_t s, int64_t t) { return added[static_cast<size_t>(s * 5 + t)]; };
  EXPECT_THAT(run(23, "Attention", with).numbers, near(attended(c, g)));
  Numbers truth(2 * 3 * 5, 1);  // batch 0 sees no key at all in row 1
  for (size_t t = 0; t < 5; ++t) truth[5 + t] = 0;
  truth[2] = 0;
  with.back() = {{DType::kBool, {2, 1, 3, 5}}, truth};
  c.mask = [&](int64_t b, auto, int64_t s, int64_t t) {
    return truth[static_cast<size_t>((b * 3 + s) * 5 + t)] != 0 ? 0 : -HUGE_VAL;
  };
  EXPECT_THAT(run(23, "Attention", with).numbers, near(attended(c, g)));
  with.back() = floats({4, 5}, drawn(20, 1));
  EXPECT_THAT(run(23, "Attention", with).refusal,
              HasSubstr("shapes [2, 4, 3, 5] and [4, 5] do not broadcast"));
}

TEST(GraphAttention, CausalQueriesSeeThePastAndThemselves) {
  Case c;
  c.past = 2;
  c.causal = true;
  c.scale = 0.3;
  c.softcap = 0.7;
  const Given g = given(c);
  std::vector<Operand> with = operands(c, g);
  with.insert(with.end(), {kNone, floats({2, 2, 2, 4}, g.past_k), floats({2, 2, 2, 3}, g.past_v)});
  const Attributes attributes{{"is_causal", of(1)}, {"scale", 0.3}, {"softcap", 0.7}};
  EXPECT_THAT(run(23, "Attention", with, attributes).numbers, near(attended(c, g)));
  const Answer keys = run(23, "Attention", with, attributes, 3, 1),
               values = run(23, "Attention", with, attributes, 3, 2);
  ASSERT_THAT(keys.shape, ElementsAre(2, 2, 7, 4));
  ASSERT_THAT(values.shape, ElementsAre(2, 2, 7, 3));
  for (int64_t t = 0; t < 7; ++t) {
    EXPECT_EQ(keys.numbers[flat({1, 1, t, 2}, keys.shape)], present(c, g.k, g.past_k, 4, 1, 1, t, 2));
    EXPECT_EQ(values.numbers[flat({0, 1, t, 2}, values.shape)], present(c, g.v, g.past_v, 3, 0, 1, t, 2));
  }
  with.pop_back();
  EXPECT_THAT(run(23, "Attention", with).refusal, HasSubstr("has one of past_key and past_value"));
}

// Three dimensions hold the heads side by side.
TEST(GraphAttention, HeadsMayStandTogether) {
  Case c;
  c.heads = c.shared = 2;
  const Given g = given(c);
  const auto together = [](const Numbers& x, int64_t heads, int64_t n, int64_t size) {
    Numbers moved(x.size());
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t s = 0; s < n; ++s)
          for (int64_t e = 0; e < size; ++e)
            moved[flat({b, s, h, e}, {2, n, heads, size})] = x[flat({b, h, s, e}, {2, heads, n, size})];
    return moved;
  };
  const std::vector<Operand> flat_ones{floats({2, 3, 8}, together(g.q, 2, 3, 4)),
                                       floats({2, 5, 8}, together(g.k, 2, 5, 4)),
                                       floats({2, 5, 6}, together(g.v, 2, 5, 3))};
  const Answer y = run(23, "Attention", flat_ones, {{"q_num_heads", of(2)}, {"kv_num_heads", of(2)}});
  ASSERT_EQ(y.refusal, "");
  EXPECT_THAT(y.shape, ElementsAre(2, 3, 6));
  EXPECT_THAT(y.numbers, near(together(attended(c, g), 2, 3, 3)));
  EXPECT_THAT(run(23, "Attention", flat_ones).refusal,
              HasSubstr("expected 4 dimensions, or 3 and a number of heads"));
}

TEST(GraphAttention, ScoresAreShownAtFourPlaces) {
  Case c;
  c.batch = c.heads = c.shared = 1;
  const Given g = given(c);
  std::vector<Operand> with = operands(c, g);
  with.push_back(floats({1, 5}, {1, 2, 3, 4, 5}));
  const auto shown = [&](int64_t mode) {
    return run(23, "Attention", with, {{"qk_matmul_output_mode", of(mode)}}, 4, 3).numbers;
  };
  const Numbers products = shown(0), masked = shown(1), weights = shown(3);
  for (size_t k = 0; k < 15; ++k) EXPECT_NEAR(masked[k] - products[k], static_cast<double>(k % 5 + 1), 1e-6);
  EXPECT_EQ(shown(2), masked);
  for (size_t s = 0; s < 3; ++s) {
    double sum = 0;
    for (size_t t = 0; t < 5; ++t) sum += weights[s * 5 + t];
    EXPECT_NEAR(sum, 1, 1e-6);
    EXPECT_NEAR(weights[s * 5 + 1] / weights[s * 5], std::exp(masked[s * 5 + 1] - masked[s * 5]), 1e-5);
  }
}

// --- pairs of elements turned as complex numbers ---
TEST(GraphAttention, PairsAreTurnedByTheirAngles) {
  constexpr int64_t kBatch = 2, kHeads = 3, kPlaces = 4, kSize = 6;
  const Dims shape{kBatch, kHeads, kPlaces, kSize};
  const Numbers x = drawn(kBatch * kHeads * kPlaces * kSize, 60), angles = drawn(9 * 3, 61);
  Numbers cosines, sines;
  for (const double a : angles) {
    cosines.push_back(std::cos(3 * a));
    sines.push_back(std::sin(3 * a));
  }
  const Numbers ids = {0, 3, 8, 1, 2, 2, 7, 5};
  for (const bool interleaved : {false, true})
    for (const int64_t turned : {int64_t{0}, int64_t{4}}) {
      const int64_t half = (turned == 0 ? kSize : turned) / 2;
      const auto cache = [&](const Numbers& all) {
        Numbers part;
        for (size_t p = 0; p < 9; ++p)
          part.insert(part.end(), all.begin() + std::ptrdiff_t(3 * p),
                      all.begin() + std::ptrdiff_t(3 * p) + half);
        return floats({9, half}, part);
      };
      const Answer y =
          run(23, "RotaryEmbedding",
              {floats(shape, x), cache(cosines), cache(sines), {{DType::kInt64, {kBatch, kPlaces}}, ids}},
              {{"interleaved", of(interleaved)}, {"rotary_embedding_dim", of(turned)}});
      ASSERT_EQ(y.refusal, "");
      Numbers expected = x;
      for (int64_t b = 0; b < kBatch; ++b)
        for (int64_t h = 0; h < kHeads; ++h)
          for (int64_t p = 0; p < kPlaces; ++p)
            for (int64_t k = 0; k < half; ++k) {
              const size_t first = flat({b, h, p, interleaved ? 2 * k : k}, shape),
                           second = first + static_cast<size_t>(interleaved ? 1 : half);
              const auto at =
                  static_cast<size_t>(3 * ids[static_cast<size_t>(b * kPlaces + p)] + static_cast<double>(k));
              expected[first] = cosines[at] * x[first] - sines[at] * x[second];
              expected[second] = sines[at] * x[first] + cosines[at] * x[second];
            }
      EXPECT_THAT(y.numbers, near(expected)) << interleaved << turned;
    }
}

// Without position_ids the caches hold each place of each batch; three dimensions need a number of heads.
TEST(GraphAttention, RotaryCachesMayBeOfEachPlace) {
  const Operand x = floats({1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Operand cosines = floats({1, 2, 1}, {0, -1}), sines = floats({1, 2, 1}, {1, 0});
  const Answer y = run(23, "RotaryEmbedding", {x, cosines, sines}, {{"num_heads", of(2)}});
  EXPECT_THAT(y.numbers, near({-2, 1, -4, 3, -5, -6, -7, -8})) << y.refusal;
  EXPECT_THAT(run(23, "RotaryEmbedding", {x, cosines, sines}).refusal, HasSubstr("num_heads = 0"));
  EXPECT_THAT(run(23, "RotaryEmbedding", {x, floats({2, 1}, {0, 1}), sines}, {{"num_heads", of(2)}}).refusal,
              HasSubstr("input 1 is float32[2, 1], expected [1, 2, 1]"));
  const Answer far =
      run(23, "RotaryEmbedding",
          {x, floats({2, 1}, {0, -1}), floats({2, 1}, {1, 0}), {{DType::kInt64, {1, 2}}, {-5, 99}}},
          {{"num_heads", of(2)}});
  EXPECT_THAT(far.numbers, near({-2, 1, -4, 3, -5, -6, -7, -8})) << far.refusal;  // the nearest places
}

// --- losses ---
TEST(GraphLoss, LossesAreWeightedSumsOfTheChosenScores) {
  const Numbers scores = drawn(2 * 3 * 4, 70), weights = {0.5, 2, 0.25};
  const Numbers classes = {0, 2, 1, 1, 2, 0, 1, 2};
  const Operand known{{DType::kInt64, {2, 4}}, classes};
  for (const std::string op : {"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"})
    for (const bool weighted : {false, true})
      for (const std::string way : {"none", "sum", "mean"}) {
        std::vector<Operand> with{floats({2, 3, 4}, scores), known};
        if (weighted) with.push_back(floats({3}, weights));
        const Answer loss = run(13, op, with, {{"reduction", word(way)}, {"ignore_index", of(1)}});
        ASSERT_EQ(loss.refusal, "");
        Numbers each;
        double sum = 0, all = 0;
        for (size_t k = 0; k < 8; ++k) {
          const size_t n = k / 4, d = k % 4, c = static_cast<size_t>(classes[k]);
          const auto score = [&](size_t at) { return scores[(n * 3 + at) * 4 + d]; };
          double total = 0;
          for (size_t at = 0; at < 3; ++at) total += std::exp(score(at));
          const double x = op[0] == 'N' ? score(c) : score(c) - std::log(total);
          const double weight = c == 1 ? 0 : weighted ? weights[c] : 1;
          each.push_back(-x * weight);
          sum += each.back();
          all += weight;
        }
        EXPECT_THAT(loss.numbers, near(way == "none" ? each : Numbers{way == "sum" ? sum : sum / all}))
            << op << way;
      }
}

TEST(GraphLoss, TheMeanIsTheDefaultAndLogarithmsTheSecondResult) {
  const std::vector<Operand> with{floats({2, 2}, {1, 3, 0, 0}), {{DType::kInt64, {2}}, {1, 0}}};
  const double first = std::log1p(std::exp(-2.0)), second = std::log(2.0);
  EXPECT_THAT(run(13, "SoftmaxCrossEntropyLoss", with).numbers, near({(first + second) / 2}));
  EXPECT_THAT(run(13, "SoftmaxCrossEntropyLoss", with, {}, 2, 1).numbers,
              near({-2 - first, -first, -second, -second}));
  EXPECT_THAT(
      run(13, "NegativeLogLikelihoodLoss", {floats({1, 2}, {5, 7}), {{DType::kInt64, {1}}, {9}}}).numbers,
      near({-7}));  // beyond the classes: the nearest one
  Operand beyond{{DType::kInt64, {1}}, {9}, true};
  EXPECT_THAT(run(13, "NegativeLogLikelihoodLoss", {floats({1, 2}, {5, 7}), beyond}).refusal,
              HasSubstr("class 9, expected 0 to 1"));
  EXPECT_THAT(
      run(13, "NegativeLogLikelihoodLoss", {floats({1, 2, 3}, drawn(6, 1)), {{DType::kInt64, {1}}, {0}}})
          .refusal,
      HasSubstr("expected the same without dimension 1"));
}

}  // namespace
}  // namespace tuner::graph
