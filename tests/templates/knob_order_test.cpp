// Orders of knobs: they decide how large the diagram of a space becomes, and nothing else.
#include "templates/space/knob_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "templates/space/decision_diagram.h"
#include "templates/space/int_expr.h"
#include "tests/random_seed.h"
#include "tests/templates/large_spaces.h"

namespace tuner {
namespace {

using ::testing::UnorderedElementsAreArray;

IntExpr knob(int position) {
  return IntExpr(std::make_shared<IntExprNode>(IntExprNode{IntOp::kKnob, position, {}, {}}));
}

// Four or five knobs under constraints such as templates write, and their valid assignments by brute force.
struct SmallGroup {
  std::vector<KnobInfo> knobs;
  std::vector<int> members;
  std::vector<IntExpr> constraints;
  std::set<std::vector<int>> valid;  // choices

  explicit SmallGroup(std::mt19937_64& rng) {
    const int n = 4 + static_cast<int>(rng() % 2);
    for (int i = 0; i < n; ++i) {
      KnobInfo k{.name = str("k", i), .kind = KnobKind::kOrdered};
      for (uint64_t v = 0, count = 3 + rng() % 4; v < count; ++v)
        k.candidates.push_back(static_cast<int64_t>(v + 1) << (rng() % 2 == 0 ? 0 : v % 3));
      std::sort(k.candidates.begin(), k.candidates.end());
      k.candidates.erase(std::unique(k.candidates.begin(), k.candidates.end()), k.candidates.end());
      knobs.push_back(k);
      members.push_back(i);
    }
    // A chain, so that all are tied.
    for (int i = 0; i + 1 < n; ++i) {
      const IntExpr a = knob(i), b = knob(i + 1);
      const auto bound = static_cast<int64_t>(4 + rng() % 20);
      switch (rng() % 5) {
        case 0:
          constraints.push_back(a * b + b <= bound);
          break;
        case 1:
          constraints.push_back(a % b == 0 || b % a == 0);
          break;
        case 2:
          constraints.push_back((a + b) % 3 != 1);
          break;
        case 3:
          constraints.push_back(ceil_div(24, a) * b >= bound / 2);
          break;
        default:
          constraints.push_back(min(a, b) * knob(static_cast<int>(rng() % static_cast<uint64_t>(n))) <=
                                bound);
      }
    }
    std::vector<int> choices(static_cast<size_t>(n), 0);
    std::vector<int64_t> values(static_cast<size_t>(n), 0);
    while (true) {
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = knobs[i].candidates[static_cast<size_t>(choices[i])];
      if (std::all_of(constraints.begin(), constraints.end(),
                      [&](const IntExpr& c) { return evaluate(*c.node(), values) != 0; }))
        valid.insert(choices);
      size_t i = 0;
      while (i < choices.size() && ++choices[i] == static_cast<int>(knobs[i].candidates.size()))
        choices[i++] = 0;
      if (i == choices.size()) break;
    }
  }
};

TEST(KnobOrder, TheCheapestOrderHoldsExactlyTheValidConfigs) {
  const RandomSeed seed(20'261);
  std::mt19937_64 rng(seed);
  int other_order = 0;
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(str("round ", round));
    const SmallGroup g(rng);
    const std::vector<int> cheapest = cheapest_order(g.knobs, g.members, g.constraints);
    ASSERT_THAT(cheapest, UnorderedElementsAreArray(g.members));
    // With so few decisions the likely order is given up at once.
    const auto tree = DecisionDiagram::build(g.knobs, g.members, g.constraints, /*max_edges=*/5'000);
    if (g.valid.empty()) {
      EXPECT_FALSE(tree.is_ok());
      continue;
    }
    ASSERT_TRUE(tree.is_ok()) << tree.message();
    other_order += tree->order() != likely_order(g.knobs, g.members, g.constraints) ? 1 : 0;
    ASSERT_EQ(tree->size(), g.valid.size());
    std::set<std::vector<int>> seen;
    for (uint64_t i = 0; i < tree->size(); ++i) {
      std::vector<int> choices(g.knobs.size(), -1);
      tree->at(i, choices);
      ASSERT_TRUE(g.valid.contains(choices));
      uint64_t index = 0;
      ASSERT_TRUE(tree->index_of(choices, index));
      ASSERT_EQ(index, i);
      seen.insert(choices);
    }
    ASSERT_EQ(seen.size(), g.valid.size());
  }
  EXPECT_GT(other_order, 50);
}

// The same on every machine, unlike a time: config_space_bench tells what it costs.
TEST(KnobOrder, LargeSpacesTakeFewDecisions) {
  for (const testing::LargeSpace& large : testing::large_spaces()) {
    SCOPED_TRACE(large.name);
    testing::Declared d;
    large.declare(d);
    ASSERT_TRUE(d.space.seal().is_ok());
    const std::vector<KnobInfo>& knobs = d.space.knobs();
    std::vector<bool> tied(knobs.size(), false);
    for (const IntExpr& c : d.constraints) collect_knobs(*c.node(), tied);
    std::vector<int> members;
    for (size_t i = 0; i < knobs.size(); ++i)
      if (tied[i]) members.push_back(static_cast<int>(i));
    const auto tree = DecisionDiagram::build(knobs, members, d.constraints, /*max_edges=*/500'000);
    ASSERT_TRUE(tree.is_ok()) << tree.message();
    uint64_t untied = 1;
    for (size_t i = 0; i < knobs.size(); ++i)
      if (!tied[i]) untied *= knobs[i].candidates.size();
    EXPECT_EQ(tree->size() * untied, d.space.size());
  }
}

TEST(KnobOrder, ManyKnobsAreOrderedToo) {
  // Beyond what is searched exhaustively: a chain whose ends meet.
  constexpr int kKnobs = 24;
  std::vector<KnobInfo> knobs;
  std::vector<int> members;
  std::vector<IntExpr> constraints;
  for (int i = 0; i < kKnobs; ++i) {
    knobs.push_back({.name = str("k", i), .kind = KnobKind::kOrdered, .candidates = {1, 2, 3, 4}});
    members.push_back(i);
    constraints.push_back(knob(i) * knob((i + 7) % kKnobs) <= 8);
  }
  const std::vector<int> order = cheapest_order(knobs, members, constraints);
  ASSERT_THAT(order, UnorderedElementsAreArray(members));
  EXPECT_EQ(cheapest_order(knobs, members, constraints), order);
  // Around the ring: never more than two neighbours are open.
  EXPECT_TRUE(DecisionDiagram::build(knobs, members, constraints, /*max_edges=*/5'000).is_ok());
}

}  // namespace
}  // namespace tuner
