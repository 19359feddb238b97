// The fastest configs of other jobs, measured again: which, in what order, and what becomes of those that are
// not valid any more.
#include "tuner/search/known_best.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "templates/space/knob.h"

namespace tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Toy {
  ConfigSpace space;
  SearchSpace search;
  explicit Toy(int64_t most = 16) {
    const ChoiceKnob a = space.choice("a", {1, 2, 4, 8, 16}).try_first(1);
    const ChoiceKnob b = space.choice("b", {1, 2, 4, 8, 16}).try_first(1);
    const CategoryKnob order = space.category("order", {"mn", "nm"}).try_first("mn");
    static_cast<void>(order);
    space.require(a * b <= most);
    CHECK(space.seal().is_ok()) << "the toy space has configs";
    search.parts.push_back({.template_name = "toy", .space = &space, .program_features = {}});
  }
};

Config config(int64_t a, int64_t b, int64_t order = 0) {
  return Config({{"a", a}, {"b", b}, {"order", order}});
}
PriorTask::Row row(const Config& c, double ns, const std::string& name = "toy") {
  return {.template_name = name, .config = c, .ok = ns > 0, .time_ns = ns};
}
std::vector<std::string> texts(const Toy& toy, const std::vector<Candidate>& candidates) {
  std::vector<std::string> out;
  for (const Candidate& c : candidates) out.push_back(toy.space.at(c.config).to_text());
  return out;
}

TEST(KnownBest, ProposesTheFastestOfTheSameTaskThenTheDefaultThenNothing) {
  Toy toy;
  toy.search.priors = {{.source = "same",
                        .rows = {row(config(4, 2), 30), row(config(8, 2), 10), row(config(2, 2), 20)},
                        .same_task = true},
                       {.source = "another shape", .rows = {row(config(16, 1), 1)}}};
  const auto search = make_strategy(kKnownBestStrategy, toy.search, 0).value();
  EXPECT_THAT(texts(toy, search->propose(3)),
              ElementsAre("a=8 b=2 order=0", "a=2 b=2 order=0", "a=1 b=1 order=0"));
  EXPECT_THAT(texts(toy, search->propose(9)), ElementsAre("a=4 b=2 order=0"));
  EXPECT_THAT(search->propose(9), IsEmpty());
}

TEST(KnownBest, AskedForOneItGivesTheDefaultAndThenAsManyOfTheFastestAsThereIsRoomFor) {
  Toy toy;
  toy.search.priors = {{.source = "same",
                        .rows = {row(config(4, 2), 30), row(config(8, 2), 10), row(config(2, 2), 20)},
                        .same_task = true}};
  const auto search = make_strategy(kKnownBestStrategy, toy.search, 0).value();
  EXPECT_THAT(texts(toy, search->propose(1)), ElementsAre("a=1 b=1 order=0"));
  EXPECT_THAT(texts(toy, search->propose(2)), ElementsAre("a=8 b=2 order=0", "a=2 b=2 order=0"));
}

TEST(KnownBest, FailuresAndOtherTemplatesAreLeftOut) {
  Toy toy;
  toy.search.priors = {{.source = "same",
                        .rows = {row(config(4, 2), 0), row(config(8, 2), 10, "gone"), row(config(2, 2), 20)},
                        .same_task = true}};
  const auto search = make_strategy(kKnownBestStrategy, toy.search, 0).value();
  EXPECT_THAT(texts(toy, search->propose(9)), ElementsAre("a=2 b=2 order=0", "a=1 b=1 order=0"));
}

TEST(KnownBest, MachinesTakeTurnsBecauseTheirTimesDoNotCompare) {
  Toy toy;
  toy.search.priors = {
      {.source = "slow machine", .rows = {row(config(4, 1), 300), row(config(4, 2), 200)}, .same_task = true},
      {.source = "fast machine", .rows = {row(config(8, 1), 3), row(config(8, 2), 2)}, .same_task = true}};
  const auto search = make_strategy(kKnownBestStrategy, toy.search, 0).value();
  EXPECT_THAT(texts(toy, search->propose(5)),
              ElementsAre("a=4 b=2 order=0", "a=8 b=2 order=0", "a=4 b=1 order=0", "a=8 b=1 order=0",
                          "a=1 b=1 order=0"));
}

TEST(KnownBest, AConfigThatIsNotValidAnyMoreMovesToTheNearestThatIs) {
  const Toy toy(/*most=*/8);
  const auto moved = known_candidate(toy.search, "toy", config(8, 2, 1));
  ASSERT_TRUE(moved);
  EXPECT_TRUE(moved->moved);
  const Config near = toy.space.at(moved->candidate.config);
  EXPECT_EQ(near.at("order"), 1);
  EXPECT_EQ(near.at("a") * near.at("b"), 8) << near.to_text();  // a halved, or b
  EXPECT_FALSE(known_candidate(toy.search, "toy", config(4, 2))->moved);
  EXPECT_FALSE(known_candidate(toy.search, "gone", config(4, 2)));
}

TEST(KnownBest, KnobsThatWereAddedStandAtTheirDefaultAndRemovedOnesAreForgotten) {
  const Toy toy;
  const auto known = known_candidate(toy.search, "toy", Config({{"a", 4}, {"unroll", 3}}));
  ASSERT_TRUE(known);
  EXPECT_TRUE(known->moved);
  EXPECT_EQ(toy.space.at(known->candidate.config).to_text(), "a=4 b=1 order=0");
}

TEST(KnownBest, IsNotOfferedAmongTheSearches) {
  EXPECT_TRUE(is_strategy(kKnownBestStrategy));
  EXPECT_THAT(strategy_names(), ::testing::Not(::testing::Contains(kKnownBestStrategy)));
  EXPECT_FALSE(is_strategy("best"));
}

}  // namespace
}  // namespace tuner
