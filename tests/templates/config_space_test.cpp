// ConfigSpace: exactly the configs that satisfy the constraints, counted, indexed and sampled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "templates/space/decision_diagram.h"
#include "templates/space/int_expr.h"
#include "templates/space/knob.h"
#include "tests/random_seed.h"
#include "tests/templates/large_spaces.h"

namespace tuner {
namespace {

using testing::Declared;
using testing::large_spaces;
using testing::LargeSpace;

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Config, TextIsSortedAndReadsBack) {
  const Config c({{"tile_n", 32}, {"pack_a", 0}});
  EXPECT_EQ(c.to_text(), "pack_a=0 tile_n=32");
  EXPECT_EQ(*config_from_text(c.to_text()), c);
  EXPECT_EQ(*config_from_text(""), Config());
}

TEST(Config, RefusesTextThatIsNotOne) {
  EXPECT_EQ(config_from_text("a=1 b").message(), "config: expected knob=integer, found \"b\"");
  EXPECT_EQ(config_from_text("a=1x").message(), "config: expected knob=integer, found \"a=1x\"");
  EXPECT_EQ(config_from_text("a=1 a=2").message(), "config: knob a is given twice");
  EXPECT_EQ(config_from_text("a=99999999999999999999").status().code(), StatusCode::kInvalidArgument);
}

TEST(Knobs, ListTheirCandidates) {
  ConfigSpace space;
  const SplitKnob plain = space.split("plain", 6);
  const SplitKnob vectors = space.split("vectors", 40).multiples_of(16).try_first(100);
  const SplitKnob narrow = space.split("narrow", 5).multiples_of(16);
  const SplitKnob divisors = space.split("divisors", 12).divisors_only().at_least(2).try_first(5);
  const ChoiceKnob choice = space.choice("choice", {4, 1, 2, 2}).try_first(2);
  const FlagKnob flag = space.flag("flag").try_first(true);
  const CategoryKnob order = space.category("order", {"rows", "columns"}).try_first("columns");
  ASSERT_TRUE(space.seal().is_ok());
  EXPECT_THAT(space.knobs()[0].candidates, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(space.knobs()[1].candidates, ElementsAre(16, 32, 48));
  EXPECT_THAT(space.knobs()[2].candidates, ElementsAre(16));
  EXPECT_THAT(space.knobs()[3].candidates, ElementsAre(2, 3, 4, 6, 12));
  EXPECT_THAT(space.knobs()[4].candidates, ElementsAre(1, 2, 4));
  EXPECT_EQ(space.size(), 6u * 3 * 1 * 5 * 3 * 2 * 2);
  const Config c = space.at(space.default_index());
  EXPECT_EQ(c.to_text(), "choice=2 divisors=4 flag=1 narrow=16 order=1 plain=1 vectors=48");
  EXPECT_EQ(space.describe(c), "choice=2 divisors=4 flag=yes narrow=16 order=columns plain=1 vectors=48");
  EXPECT_EQ(c[vectors].inner, 48);
  EXPECT_EQ(c[divisors].outer, 3);
  EXPECT_EQ(c[narrow].outer, 1);
  EXPECT_EQ(c[plain].outer, 6);
  EXPECT_EQ(c[choice], 2);
  EXPECT_TRUE(c[flag]);
  EXPECT_EQ(c[order], 1);
}

TEST(Knobs, LongAxisKeepsAtMostAFewHundredFactors) {
  ConfigSpace space;
  space.split("m", 100'000).try_first(12'345);
  ASSERT_TRUE(space.seal().is_ok());
  EXPECT_LT(space.size(), 300u);
  EXPECT_EQ(space.at(space.default_index()).at("m"), 12'345);
}

TEST(Knobs, PermutationsAreRankedAndReadAsOrders) {
  ConfigSpace space;
  const PermutationKnob order = space.permutation("order", {"oc", "oh", "ow"}).try_first({"ow", "oc", "oh"});
  const PermutationKnob fixed = space.permutation("fixed", {"only"});
  space.require(order.first() != 1);  // oh is never outermost
  ASSERT_TRUE(space.seal().is_ok());
  EXPECT_EQ(space.size(), 4u);
  const Config c = space.at(space.default_index());
  EXPECT_EQ(c.to_text(), "fixed=0 order=4");
  EXPECT_EQ(space.describe(c), "fixed=only order=ow,oc,oh");
  EXPECT_THAT(c[order], ElementsAre(2, 0, 1));
  EXPECT_THAT(c[fixed], ElementsAre(0));
  EXPECT_THAT(space.features(c), ElementsAre(1, 2, 0, 0));
  EXPECT_THAT(space.feature_names(), ElementsAre("order:oc", "order:oh", "order:ow", "fixed:only"));
  for (ConfigIndex i = 0; i < space.size(); ++i) EXPECT_NE(space.at(i)[order][0], 1);
  for (int64_t rank = 0; rank < 5040; ++rank)
    EXPECT_EQ(rank_of_permutation(permutation_of_rank(rank, 7)), rank);
  std::mt19937_64 rng(1);
  std::set<ConfigIndex> reached;
  for (int i = 0; i < 200; ++i) reached.insert(space.mutate(space.default_index(), rng));
  EXPECT_EQ(reached.size(), 3u);
}

TEST(Knobs, AConditionalKnobIsCountedOnceWhereItIsNotActive) {
  ConfigSpace space;
  const FlagKnob prefetch = space.flag("prefetch").try_first(false);
  const ChoiceKnob distance = space.choice("distance", {16, 32, 64, 128}).try_first(64);
  const CategoryKnob level = space.category("level", {"l1", "l2"});
  space.active_if(distance, prefetch);
  space.active_if(level, prefetch && distance >= 64);
  ASSERT_TRUE(space.seal().is_ok());
  // Without prefetch one; with it two short distances, two long ones at two levels.
  EXPECT_EQ(space.size(), 1u + 2 + 2 * 2);
  std::set<std::string> texts;
  for (ConfigIndex i = 0; i < space.size(); ++i) texts.insert(space.describe(space.at(i)));
  EXPECT_THAT(texts, ::testing::UnorderedElementsAre(
                         "prefetch=no", "distance=16 prefetch=yes", "distance=32 prefetch=yes",
                         "distance=64 level=l1 prefetch=yes", "distance=64 level=l2 prefetch=yes",
                         "distance=128 level=l1 prefetch=yes", "distance=128 level=l2 prefetch=yes"));
  const Config off = space.at(space.default_index());
  EXPECT_EQ(off.to_text(), "distance=64 level=0 prefetch=0");  // stored with its one value
  EXPECT_TRUE(space.is_active(off, "prefetch"));
  EXPECT_FALSE(space.is_active(off, "distance"));
  const std::vector<float> features = space.features(off);
  ASSERT_EQ(features.size(), 4u);
  EXPECT_EQ(features[0], 0);
  for (int i = 1; i < 4; ++i) EXPECT_TRUE(std::isnan(features[static_cast<size_t>(i)]));
  EXPECT_THAT(space.index_of(*config_from_text("distance=16 level=0 prefetch=0")).message(),
              HasSubstr("constraint prefetch || distance == 64 does not hold"));
  // Every config is reached by moves from the default.
  std::mt19937_64 rng(2);
  std::set<ConfigIndex> reached{space.default_index()};
  for (int i = 0; i < 2000; ++i)
    reached.insert(space.mutate(*std::next(reached.begin(), rng() % reached.size()), rng));
  EXPECT_EQ(reached.size(), space.size());
}

TEST(IntExprs, PrintWithFewParentheses) {
  ConfigSpace space;
  const SplitKnob m = space.split("m", 8), n = space.split("n", 8);
  const FlagKnob f = space.flag("f");
  ASSERT_TRUE(space.seal().is_ok());
  EXPECT_EQ(to_text(m.inner() * (n.inner() / 16) + 2 <= 32, space.knobs()), "m * (n / 16) + 2 <= 32");
  EXPECT_EQ(to_text(m.inner() - (n.inner() - 1) > 0 && (!f || min(m.inner(), 3) == 3), space.knobs()),
            "0 < m - (n - 1) && (f == 0 || min(m, 3) == 3)");
}

TEST(IntExprs, BoundsContainEveryValue) {
  const RandomSeed seed(7);
  std::mt19937_64 rng(seed);
  const IntOp ops[] = {IntOp::kAdd, IntOp::kSub, IntOp::kMul, IntOp::kDiv, IntOp::kMod,
                       IntOp::kMin, IntOp::kMax, IntOp::kLt,  IntOp::kLe,  IntOp::kEq,
                       IntOp::kNe,  IntOp::kAnd, IntOp::kOr};
  const auto range = [&] {
    const auto a = static_cast<int64_t>(rng() % 15) - 7, b = static_cast<int64_t>(rng() % 15) - 7;
    return IntRange{std::min(a, b), std::max(a, b)};
  };
  for (int round = 0; round < 3000; ++round) {
    const IntRange a = range(), b = range();
    for (const IntOp op : ops) {
      const IntRange bounds = apply(op, a, b);
      for (int64_t x = a.lo; x <= a.hi; ++x)
        for (int64_t y = b.lo; y <= b.hi; ++y) {
          const int64_t v = apply(op, x, y);
          ASSERT_TRUE(bounds.lo <= v && v <= bounds.hi)
              << "op " << static_cast<int>(op) << " on " << x << ", " << y << " is " << v << ", bounds "
              << bounds.lo << ".." << bounds.hi << " from " << a.lo << ".." << a.hi << ", " << b.lo << ".."
              << b.hi;
        }
    }
  }
}

TEST(IntExprs, SaturateInsteadOfWrapping) {
  EXPECT_EQ(apply(IntOp::kMul, INT64_MAX, 2), INT64_MAX);
  EXPECT_EQ(apply(IntOp::kSub, INT64_MIN, 1), INT64_MIN);
  EXPECT_EQ(apply(IntOp::kDiv, -7, 2), -4);
  EXPECT_EQ(apply(IntOp::kMod, -7, 2), 1);
  EXPECT_EQ(apply(IntOp::kDiv, 7, 0), 0);
}

// A random expression over the knobs, as a constraint.
IntExpr random_expr(const std::vector<IntExpr>& leaves, std::mt19937_64& rng, int depth) {
  if (depth == 0 || rng() % 5 == 0)
    return rng() % 3 == 0 ? IntExpr(static_cast<int64_t>(rng() % 9)) : leaves[rng() % leaves.size()];
  const IntExpr a = random_expr(leaves, rng, depth - 1), b = random_expr(leaves, rng, depth - 1);
  const IntOp ops[] = {IntOp::kAdd, IntOp::kSub, IntOp::kMul, IntOp::kMul, IntOp::kDiv,
                       IntOp::kMod, IntOp::kMin, IntOp::kMax, IntOp::kEq,  IntOp::kAnd};
  return int_expr(ops[rng() % std::size(ops)], a, b);
}

// A small random space and the list of its valid configs by brute force. One in some is empty.
struct RandomSpace {
  ConfigSpace space;
  std::set<std::string> valid;  // as text
  Status sealed;

  explicit RandomSpace(std::mt19937_64& rng) {
    std::vector<IntExpr> leaves;
    std::vector<std::string> names;
    std::vector<std::vector<int64_t>> candidates;
    std::vector<KnobHandle> handles;
    const size_t n = 2 + rng() % 4;
    for (size_t i = 0; i < n; ++i) {
      names.push_back(std::string(1, static_cast<char>('a' + i)));
      if (rng() % 4 == 0) {
        const FlagKnob knob = space.flag(names.back());
        leaves.push_back(knob);
        handles.push_back(knob);
        candidates.push_back({0, 1});
      } else if (rng() % 2 == 0) {
        const ChoiceKnob knob = space.choice(names.back(), {0, 3, 5, 8});
        leaves.push_back(knob);
        handles.push_back(knob);
        candidates.push_back({0, 3, 5, 8});
      } else {
        const auto extent = static_cast<int64_t>(1 + rng() % 8);
        const SplitKnob knob = space.split(names.back(), extent);
        leaves.push_back(knob.inner());
        handles.push_back(knob);
        candidates.emplace_back();
        for (int64_t v = 1; v <= extent; ++v) candidates.back().push_back(v);
      }
    }
    std::vector<IntExpr> constraints;
    for (size_t i = 0; i < 1 + rng() % 3; ++i) {
      const IntExpr left = random_expr(leaves, rng, 2), right = random_expr(leaves, rng, 1);
      constraints.push_back(rng() % 4 == 0 ? left != right : left <= right + static_cast<int64_t>(rng() % 8));
      space.require(constraints.back());
    }
    if (rng() % 3 == 0) {  // the last knob only beside a large value of the first; else at its first value
      const IntExpr condition = leaves[0] >= candidates[0].back();
      space.active_if(handles[n - 1], condition);
      constraints.push_back(condition || leaves[n - 1] == candidates[n - 1].front());
    }
    std::vector<size_t> at(n, 0);
    for (;;) {
      std::vector<int64_t> values(n);
      std::map<std::string, int64_t> by_name;
      for (size_t i = 0; i < n; ++i) by_name[names[i]] = values[i] = candidates[i][at[i]];
      bool holds = true;
      for (const IntExpr& c : constraints) holds = holds && evaluate(*c.node(), values) != 0;
      if (holds) valid.insert(Config(by_name).to_text());
      size_t i = 0;
      while (i < n && ++at[i] == candidates[i].size()) at[i++] = 0;
      if (i == n) break;
    }
    sealed = space.seal();
  }
  // A space whose default is not valid is refused by seal(), though it may have valid configs.
  bool usable() const { return sealed.is_ok(); }
};

// Of 16 pairs three have a product below 8/3.
TEST(ConfigSpace, BoundsOfMultiplesAreRoundedToTheInside) {
  const auto count = [](int64_t factor, bool at_most, int64_t bound, int64_t first) {
    ConfigSpace space;
    const ChoiceKnob x = space.choice("x", {1, 2, 3, 4}).try_first(first),
                     y = space.choice("y", {1, 2, 3, 4}).try_first(first);
    const IntExpr multiple = x * y * factor;
    space.require(at_most ? multiple <= bound : multiple >= bound);
    EXPECT_EQ(space.seal().message(), "");
    return space.size();
  };
  EXPECT_EQ(count(3, false, 8, 4), 13u);
  EXPECT_EQ(count(3, true, 8, 1), 3u);
  EXPECT_EQ(count(-3, true, -8, 4), 13u);
  EXPECT_EQ(count(-3, false, -8, 1), 3u);
}

TEST(ConfigSpace, HoldsExactlyTheValidConfigs) {
  const RandomSeed seed(20240);
  std::mt19937_64 rng(seed);
  int used = 0;
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE(str("round ", round));
    const RandomSpace r(rng);
    if (!r.usable()) {
      if (r.valid.empty()) {
        EXPECT_THAT(r.sealed.message(), ::testing::AnyOf(HasSubstr("no config"), HasSubstr("never")));
      } else {
        EXPECT_THAT(r.sealed.message(), HasSubstr("default config"));
      }
      continue;
    }
    ++used;
    ASSERT_EQ(r.space.size(), r.valid.size());
    std::set<std::string> seen;
    for (ConfigIndex i = 0; i < r.space.size(); ++i) {
      const Config c = r.space.at(i);
      ASSERT_TRUE(r.valid.contains(c.to_text())) << c.to_text();
      ASSERT_EQ(*r.space.index_of(c), i);
      seen.insert(c.to_text());
    }
    ASSERT_EQ(seen.size(), r.valid.size());
  }
  EXPECT_GT(used, 100);
}

TEST(ConfigSpace, MovesStayValid) {
  const RandomSeed seed(77);
  std::mt19937_64 rng(seed);
  for (int round = 0; round < 200; ++round) {
    const RandomSpace r(rng);
    if (!r.usable()) continue;
    const ConfigIndex a = r.space.sample(rng), b = r.space.sample(rng);
    const auto differing = [&](ConfigIndex x, ConfigIndex y) {
      int n = 0;
      const Config cx = r.space.at(x), cy = r.space.at(y);
      for (const auto& [name, value] : cx.values()) n += cy.at(name) != value;
      return n;
    };
    std::set<ConfigIndex> near;
    for (const ConfigIndex i : r.space.neighbours(a)) near.insert(i);
    for (ConfigIndex i = 0; i < r.space.size(); ++i) ASSERT_EQ(near.contains(i), differing(a, i) == 1);
    ASSERT_LT(r.space.crossover(a, b, rng), r.space.size());
    ASSERT_EQ(r.space.crossover(a, a, rng), a);
    const ConfigIndex m = r.space.mutate(a, rng);
    ASSERT_LT(m, r.space.size());
    ASSERT_TRUE(m != a || r.space.size() == 1);
  }
}

TEST(ConfigSpace, CrossoverTakesKnobsFromItsParents) {
  ConfigSpace space;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) space.split(name, 50);
  ASSERT_TRUE(space.seal().is_ok());
  std::mt19937_64 rng(3);
  const ConfigIndex a = space.sample(rng), b = space.sample(rng);
  bool mixed = false;
  for (int i = 0; i < 50; ++i) {
    const ConfigIndex x = space.crossover(a, b, rng);
    const Config c = space.at(x), ca = space.at(a), cb = space.at(b);
    for (const auto& [name, value] : c.values()) EXPECT_TRUE(value == ca.at(name) || value == cb.at(name));
    mixed = mixed || (x != a && x != b);
  }
  EXPECT_TRUE(mixed);
}

// Where the knob of one parent does not fit, that of the other does, and nothing else is taken.
TEST(ConfigSpace, CrossoverAsksTheOtherParentFirst) {
  ConfigSpace space;
  const SplitKnob a = space.split("a", 50), b = space.split("b", 50);
  space.require((a.inner() + b.inner()) % 2 == 0);
  ASSERT_TRUE(space.seal().is_ok());
  const auto index = [&](const char* text) { return *space.index_of(*config_from_text(text)); };
  const ConfigIndex even = index("a=4 b=40"), odd = index("a=5 b=1");
  std::mt19937_64 rng(4);
  std::set<ConfigIndex> children;
  for (int i = 0; i < 200; ++i) children.insert(space.crossover(even, odd, rng));
  EXPECT_EQ(children, (std::set<ConfigIndex>{even, odd}));
}

TEST(ConfigSpace, RefusesMoreConfigsThanAnIndexCounts) {
  const auto sealed = [](int knobs) {
    ConfigSpace space;
    for (int i = 0; i < knobs; ++i) space.split(str("k", i), 256);
    const Status status = space.seal();
    return status.is_ok() ? str(space.size()) : status.message();
  };
  EXPECT_EQ(sealed(7), str(uint64_t{1} << 56));
  EXPECT_EQ(sealed(8), "config space: more than 2^62 valid configs; narrow knob k7");
}

TEST(ConfigSpace, SamplesUniformly) {
  // Very uneven: a = 1 leaves 60 values of b, a = 60 leaves one.
  ConfigSpace space;
  const SplitKnob a = space.split("a", 60), b = space.split("b", 60);
  const FlagKnob f = space.flag("f");
  space.require(a.inner() * b.inner() <= 60);
  space.require(!f || a.inner() >= 2);
  ASSERT_TRUE(space.seal().is_ok());
  std::mt19937_64 rng(11);
  const uint64_t n = space.size();
  std::vector<int> hits(n, 0);
  const int per_config = 200;
  for (uint64_t i = 0; i < n * per_config; ++i) ++hits[space.sample(rng)];
  double chi = 0;
  for (const int h : hits) chi += (h - per_config) * static_cast<double>(h - per_config) / per_config;
  // Chi-square with n - 1 degrees of freedom: mean n - 1, variance 2 (n - 1); five deviations.
  const auto degrees = static_cast<double>(n - 1);
  EXPECT_NEAR(chi, degrees, 5 * std::sqrt(2 * degrees));
}

TEST(ConfigSpace, CountsBeyondWhatCouldBeListed) {
  // Products of 1e12 and more, tied by one register budget and one divisibility.
  ConfigSpace space;
  std::vector<SplitKnob> k;
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g"})
    k.push_back(space.split(name, 64).try_first(2));
  space.require(k[0].inner() * k[1].inner() + k[1].inner() + 1 <= 200);
  space.require(k[2].inner() + k[3].inner() + k[4].inner() + k[5].inner() + k[6].inner() <= 200);
  space.require((k[5].inner() * k[6].inner()) % 4 == 0);
  ASSERT_TRUE(space.seal().is_ok());
  EXPECT_GT(space.size(), 100'000'000'000u);
  // Exact: pairs by enumeration, quintuples by counting sums.
  uint64_t pairs = 0;
  for (int a = 1; a <= 64; ++a)
    for (int b = 1; b <= 64; ++b) pairs += a * b + b + 1 <= 200;
  std::vector<uint64_t> triples(65 * 3, 0), doubles(65 * 2, 0);
  for (int a = 1; a <= 64; ++a)
    for (int b = 1; b <= 64; ++b) {
      if (a * b % 4 == 0) ++doubles[static_cast<size_t>(a + b)];
      for (int c = 1; c <= 64; ++c) ++triples[static_cast<size_t>(a + b + c)];
    }
  uint64_t quintuples = 0;
  for (size_t x = 0; x < triples.size(); ++x)
    for (size_t y = 0; y < doubles.size(); ++y)
      if (x + y <= 200) quintuples += triples[x] * doubles[y];
  EXPECT_EQ(space.size(), pairs * quintuples);
  std::mt19937_64 rng(1);
  for (int i = 0; i < 2000; ++i) {
    const ConfigIndex index = space.sample(rng);
    EXPECT_EQ(*space.index_of(space.at(index)), index);
  }
}

TEST(ConfigSpace, CountsTheSpacesOfTemplatesBeyondAProductOf1e12) {
  for (const LargeSpace& large : large_spaces()) {
    SCOPED_TRACE(large.name);
    Declared d;
    large.declare(d);
    ASSERT_TRUE(d.space.seal().is_ok());
    const std::vector<KnobInfo>& knobs = d.space.knobs();
    const auto holds = [&](const std::vector<int64_t>& values) {
      return std::all_of(d.constraints.begin(), d.constraints.end(),
                         [&](const IntExpr& c) { return evaluate(*c.node(), values) != 0; });
    };
    // What it draws satisfies the constraints, and is found again.
    const RandomSeed seed(5);
    std::mt19937_64 rng(seed);
    for (int i = 0; i < 500; ++i) {
      const ConfigIndex index = d.space.sample(rng);
      const Config config = d.space.at(index);
      std::vector<int64_t> values;
      for (const KnobInfo& knob : knobs) values.push_back(config.at(knob.name));
      ASSERT_TRUE(holds(values)) << config.to_text();
      ASSERT_EQ(*d.space.index_of(config), index);
    }
    // The count is the valid share of the product, as far as draws from the product tell: within five
    // deviations.
    double product = 1;
    for (const KnobInfo& knob : knobs) product *= static_cast<double>(knob.candidates.size());
    EXPECT_GE(product, 1e12);
    constexpr int kDraws = 400'000;
    int valid = 0;
    std::vector<int64_t> values(knobs.size());
    for (int i = 0; i < kDraws; ++i) {
      for (size_t k = 0; k < knobs.size(); ++k)
        values[k] = knobs[k].candidates[rng() % knobs[k].candidates.size()];
      valid += holds(values) ? 1 : 0;
    }
    const double expected = static_cast<double>(d.space.size()) / product * kDraws;
    EXPECT_NEAR(valid, expected, 5 * std::sqrt(expected + 1));
  }
}

TEST(ConfigSpace, RefusesMoreDecisionsThanItsLimit) {
  std::vector<KnobInfo> knobs;
  std::vector<IntExpr> constraints;
  IntExpr sum = 0;
  for (int i = 0; i < 6; ++i) {
    KnobInfo knob{.name = str("k", i), .kind = KnobKind::kOrdered};
    // Powers of two weights: every prefix has a sum of its own.
    for (int64_t v = 0; v < 16; ++v) knob.candidates.push_back(v << (4 * i));
    knobs.push_back(knob);
    sum = sum + IntExpr(std::make_shared<IntExprNode>(IntExprNode{IntOp::kKnob, i, {}, {}}));
  }
  constraints.push_back(sum * sum % 12'345 != 7);
  const auto tree = DecisionDiagram::build(knobs, {0, 1, 2, 3, 4, 5}, constraints, 50'000);
  EXPECT_EQ(tree.status().code(), StatusCode::kInvalidConfig);
  EXPECT_THAT(tree.message(), HasSubstr("takes more than 50000 decisions"));
}

TEST(ConfigSpace, SaysWhyAConfigIsNotInIt) {
  ConfigSpace space;
  const SplitKnob m = space.split("m", 16).try_first(4), n = space.split("n", 64).multiples_of(16);
  space.flag("pack");
  space.require(m.inner() * (n.inner() / 16) + 2 <= 32);
  ASSERT_TRUE(space.seal().is_ok());
  const auto why = [&](const char* text) { return space.index_of(*config_from_text(text)).message(); };
  EXPECT_EQ(why("m=16 n=64 pack=0"), "constraint m * (n / 16) + 2 <= 32 does not hold for m=16 n=64 pack=0");
  EXPECT_EQ(why("m=4 n=20 pack=0"), "knob n: 20 is not one of its 4 candidates (16 to 64)");
  EXPECT_EQ(why("m=4 n=16"), "knob pack is missing");
  EXPECT_EQ(why("m=4 n=16 pack=0 x=1"), "knob x is not one of this space");
}

TEST(ConfigSpace, RefusesEmptySpacesAndInvalidDefaults) {
  {
    ConfigSpace space;
    const SplitKnob m = space.split("m", 4);
    space.require(m.inner() > 8);
    EXPECT_EQ(space.seal().message(), "knobs m: no config satisfies 8 < m");
  }
  {
    ConfigSpace space;
    const SplitKnob m = space.split("m", 4).try_first(4);
    space.require(m.inner() <= 2);
    EXPECT_EQ(space.seal().message(),
              "default config: constraint m <= 2 does not hold for m=4; give those knobs another try_first");
  }
  {
    ConfigSpace space;
    space.choice("c", {1, 2}).at_least(3);
    EXPECT_EQ(space.seal().message(), "knob c: no candidate is left; widen its limits");
  }
  {
    ConfigSpace space;
    space.require(IntExpr(1) == 2);
    EXPECT_EQ(space.seal().message(), "constraint 1 == 2 never holds");
  }
}

TEST(ConfigSpace, WithoutKnobsHasOneConfig) {
  ConfigSpace space;
  ASSERT_TRUE(space.seal().is_ok());
  EXPECT_EQ(space.size(), 1u);
  EXPECT_EQ(space.at(0), Config());
  std::mt19937_64 rng(1);
  EXPECT_EQ(space.mutate(0, rng), 0u);
  EXPECT_TRUE(space.neighbours(0).empty());
}

TEST(ConfigSpace, FeaturesHaveOneLengthAndNames) {
  ConfigSpace space;
  space.split("m", 16).try_first(8);
  space.flag("pack").try_first(true);
  space.category("order", {"rows", "columns", "blocks"}).try_first("blocks");
  space.choice("unroll", {0, 4}).try_first(0);
  ASSERT_TRUE(space.seal().is_ok());
  EXPECT_THAT(space.features(space.at(space.default_index())), ElementsAre(3, 1, 0, 0, 1, -1));
  EXPECT_THAT(space.feature_names(),
              ElementsAre("log2(m)", "pack", "order=rows", "order=columns", "order=blocks", "log2(unroll)"));
}

}  // namespace
}  // namespace tuner
