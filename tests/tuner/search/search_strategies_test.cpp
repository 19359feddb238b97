// What every strategy promises: nothing twice, nothing outside the space, all of a small space, and the same
// again from the same seed and results.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include "tests/random_seed.h"
#include "tests/tuner/measured_space.h"
#include "tuner/search/bayesian.h"
#include "tuner/search/breeding.h"
#include "tuner/search/model_guided.h"
#include "tuner/search/search_strategy.h"

namespace tuner {
namespace {

using testing::MeasuredSpace;

// 3 * 4 * 2 = 24 configs less those with a * b > 8: 20.
MeasuredSpace small_space(const std::string& name = "small") {
  MeasuredSpace m{.name = name, .space = ConfigSpace(), .time_ns = {}};
  const ChoiceKnob a = m.space.choice("a", {1, 2, 4}).try_first(2);
  const ChoiceKnob b = m.space.choice("b", {1, 2, 3, 4}).try_first(3);
  const FlagKnob c = m.space.flag("c").try_first(true);
  static_cast<void>(c);
  m.space.require(a * b <= 8);
  CHECK(m.space.seal().is_ok()) << "the small space has configs";
  for (ConfigIndex i = 0; i < m.space.size(); ++i)
    m.time_ns.push_back(100 + 900 * testing::hash_to_unit(i + 17));
  return m;
}

std::unique_ptr<SearchStrategy> strategy(const std::string& name, const SearchSpace& space, uint64_t seed) {
  Result<std::unique_ptr<SearchStrategy>> made = make_strategy(name, space, seed);
  CHECK(made.is_ok()) << made.message();
  return *std::move(made);
}

// Number of knobs in which two configs of a space differ.
int steps_between(const ConfigSpace& space, const Candidate& a, const Candidate& b) {
  const Config left = space.at(a.config), right = space.at(b.config);
  int differ = 0;
  auto other = right.values().begin();
  for (const auto& [name, value] : left.values()) differ += (other++)->second != value ? 1 : 0;
  return differ;
}

class EveryStrategy : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, EveryStrategy, ::testing::ValuesIn(strategy_names()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST_P(EveryStrategy, ProposesEveryConfigOfSmallSpacesOnceAndThenNothing) {
  const MeasuredSpace first = small_space("first"), second = small_space("second");
  const SearchSpace space{.parts = {{"first", &first.space, {}}, {"second", &second.space, {}}}};
  ASSERT_EQ(space.size(), 40u);
  const auto search = strategy(GetParam(), space, /*seed=*/3);
  EXPECT_EQ(search->name(), GetParam());
  std::set<Candidate> seen;
  for (;;) {
    const std::vector<Candidate> batch = search->propose(5);
    std::vector<Observation> results;
    for (const Candidate& c : batch) {
      ASSERT_LT(c.template_index, 2);
      ASSERT_LT(c.config, 20u);
      EXPECT_TRUE(seen.insert(c).second)
          << "proposed twice: template " << c.template_index << ", config " << c.config;
      results.push_back((c.template_index == 0 ? first : second).measure(c));
      results.back().candidate = c;
    }
    search->observe(results);
    if (batch.size() < 5) break;
  }
  EXPECT_EQ(seen.size(), 40u);
  EXPECT_EQ(search->rng_counter(), 40u);
  EXPECT_TRUE(search->propose(5).empty());
}

TEST_P(EveryStrategy, NeverRepeatsInALargeSpaceWithResultsOutstanding) {
  const MeasuredSpace m = testing::rugged_space(1);
  const SearchSpace space = m.search_space();
  const auto search = strategy(GetParam(), space, 11);
  std::set<Candidate> seen;
  std::vector<Candidate> open;
  for (int round = 0; round < 40; ++round) {
    const std::vector<Candidate> batch = search->propose(7);
    ASSERT_EQ(batch.size(), 7u);
    for (const Candidate& c : batch) {
      ASSERT_LT(c.config, m.space.size());
      ASSERT_TRUE(seen.insert(c).second) << "round " << round;
      open.push_back(c);
    }
    // Three of the open ones are answered, latest first; the rest stay open.
    std::vector<Observation> results;
    for (int i = 0; i < 3; ++i, open.pop_back()) results.push_back(m.measure(open.back()));
    search->observe(results);
  }
}

TEST_P(EveryStrategy, SameSeedAndSameResultsInAnyOrderOfArrivalProposeTheSame) {
  const MeasuredSpace m = testing::rugged_space(2);
  const SearchSpace space = m.search_space();
  const auto propose_all = [&](uint64_t seed) {
    const auto search = strategy(GetParam(), space, seed);
    std::vector<Candidate> all, held;
    std::mt19937_64 shuffle(99);  // the order in which results arrive: late ones, swapped ones
    for (int round = 0; round < 12; ++round) {
      for (const Candidate& c : search->propose(9)) {
        all.push_back(c);
        held.push_back(c);
      }
      std::shuffle(held.begin(), held.end(), shuffle);
      std::vector<Observation> results;
      for (; held.size() > 4; held.pop_back()) results.push_back(m.measure(held.back()));
      search->observe(results);
    }
    return all;
  };
  const std::vector<Candidate> once = propose_all(5);
  EXPECT_EQ(once, propose_all(5));
  if (GetParam() != "grid") {
    EXPECT_NE(once, propose_all(6));
  }
}

TEST_P(EveryStrategy, EndsWhereEveryConfigFails) {
  const MeasuredSpace m = small_space();
  const SearchSpace space = m.search_space();
  const auto search = strategy(GetParam(), space, 1);
  size_t proposed = 0;
  for (;;) {
    const std::vector<Candidate> batch = search->propose(4);
    if (batch.empty()) break;
    std::vector<Observation> results;
    for (const Candidate& c : batch) results.push_back({.candidate = c, .ok = false});
    search->observe(results);
    proposed += batch.size();
    ASSERT_LE(proposed, 20u);
  }
  EXPECT_EQ(proposed, 20u);
}

TEST_P(EveryStrategy, TakesRecordsOfAnEarlierRunAndDoesNotProposeThemAgain) {
  const MeasuredSpace m = small_space();
  const SearchSpace space = m.search_space();
  const auto search = strategy(GetParam(), space, 1);
  std::vector<Observation> records;
  for (ConfigIndex i = 0; i < 10; ++i) records.push_back(m.measure({0, i}));
  search->observe(records);
  EXPECT_EQ(search->rng_counter(), 10u);
  const std::vector<Candidate> rest = search->propose(100);
  EXPECT_EQ(rest.size(), 10u);
  for (const Candidate& c : rest) EXPECT_GE(c.config, 10u);
}

TEST_P(EveryStrategy, BeginsWithEachTemplatesDefault) {
  const MeasuredSpace first = small_space("first"), second = testing::rugged_space(0);
  const SearchSpace space{.parts = {{"first", &first.space, {}}, {"second", &second.space, {}}}};
  const auto search = strategy(GetParam(), space, 1);
  EXPECT_THAT(search->propose(1), ::testing::ElementsAre(Candidate{0, first.space.default_index()}));
  if (GetParam() == "grid") return;
  EXPECT_THAT(search->propose(1), ::testing::ElementsAre(Candidate{1, second.space.default_index()}));
}

TEST(SearchStrategies, AGridGoesInIndexOrderAfterTheDefault) {
  const MeasuredSpace m = testing::rugged_space(0);
  const SearchSpace space = m.search_space();
  const ConfigIndex first = m.space.default_index();
  std::vector<Candidate> expected{{0, first}};
  for (ConfigIndex i = 0; expected.size() < 9; ++i)
    if (i != first) expected.push_back({0, i});
  const auto search = strategy("grid", space, 1);
  EXPECT_EQ(search->propose(1), std::vector<Candidate>(expected.begin(), expected.begin() + 1));
  EXPECT_EQ(search->propose(8), std::vector<Candidate>(expected.begin() + 1, expected.end()));
}

TEST(SearchStrategies, UnknownNameListsTheKnownOnes) {
  const MeasuredSpace m = small_space();
  const SearchSpace space = m.search_space();
  EXPECT_EQ(make_strategy("xgb", space, 0).message(),
            "search: found \"xgb\", expected one of random, grid, genetic, annealing, coordinate-descent, "
            "bayesian, xgb-genetic, "
            "xgb-annealing");
}

// --- a space too large to be ranked whole ---

// One knob of the fastest config after the other, nearby values first. A bound is no time to go on from.
TEST(CoordinateDescent, SweepsTheKnobsOfTheFastestOneByOne) {
  MeasuredSpace m{.name = "sweep", .space = ConfigSpace(), .time_ns = {}};
  static_cast<void>(m.space.choice("a", {1, 2, 3, 4, 5, 6, 7, 8}).try_first(3));
  static_cast<void>(m.space.choice("b", {1, 2, 3, 4, 5, 6}).try_first(2));
  static_cast<void>(m.space.choice("c", {1, 2, 3, 4}).try_first(4));
  ASSERT_TRUE(m.space.seal().is_ok());
  const SearchSpace space = m.search_space();
  const auto search = strategy("coordinate-descent", space, 5);
  const Config fastest = m.space.at(m.space.default_index());
  std::set<ConfigIndex> taken;
  std::vector<std::pair<size_t, int64_t>> swept;  // which knob, how far from the fastest's value
  for (int trial = 0; trial < 60; ++trial) {
    const std::vector<Candidate> one = search->propose(1);
    ASSERT_EQ(one.size(), 1u);
    ASSERT_TRUE(taken.insert(one[0].config).second);
    // The default is the fastest; of the first sweep every result is a bound that looks faster still.
    const bool is_start = trial < 7;
    const Observation seen{
        .candidate = one[0], .ok = true, .time_ns = is_start ? 100.0 + trial : 1.0, .cut = !is_start};
    search->observe({&seen, 1});
    if (is_start) continue;
    const Config c = m.space.at(one[0].config);
    std::vector<std::pair<size_t, int64_t>> differ;
    for (size_t k = 0; k < 3; ++k) {
      const std::string& knob = m.space.knobs()[k].name;
      if (c.at(knob) != fastest.at(knob)) differ.emplace_back(k, std::abs(c.at(knob) - fastest.at(knob)));
    }
    if (differ.size() != 1) break;  // all of its knobs are swept: a new start
    swept.push_back(differ[0]);
  }
  EXPECT_TRUE(std::is_sorted(swept.begin(), swept.end()));
  size_t neighbours = 0;
  for (const ConfigIndex near : m.space.neighbours(m.space.default_index())) neighbours += taken.count(near);
  EXPECT_EQ(neighbours, 7u + 5u + 3u) << "every value of every knob";
  EXPECT_GE(swept.size(), 15u - 6u) << "six starts may have been among them";
}

// The real defaults, as tuner/search/README.md tells them.
TEST(SearchStrategies, DefaultsAreThoseOfThePage) {
  EXPECT_EQ(kDefaultStrategy, "bayesian");
  EXPECT_EQ(BayesianOptions{}.pool, 500u + 200u);
  EXPECT_EQ(BayesianOptions{}.rank_whole, 16384u);
  EXPECT_EQ(ModelGuidedOptions{}.rank_whole, 16384u);
  EXPECT_EQ(ModelGuidedOptions{}.models, 4);
  EXPECT_EQ(ModelGuidedOptions{}.batch, 8u);
  EXPECT_EQ(ModelGuidedOptions{}.program_feature_budget, 16u);
}

// Fits are most of what a search thinks: `bayesian` waits for 16 new results (10 % of many), the trees alone
// for 8.
TEST(ModelGuided, RefitsWhenEnoughResultsAreNew) {
  const MeasuredSpace m = testing::rugged_space(1);
  const SearchSpace space = m.search_space();
  for (const auto& [name, gap] : {std::pair("bayesian", 16), std::pair("xgb-genetic", 8)}) {
    const auto search = strategy(name, space, 3);
    std::vector<int> refits;
    std::string digest;
    for (int trial = 0; trial < 66; ++trial) {
      const std::vector<Candidate> one = search->propose(1);
      ASSERT_EQ(one.size(), 1u);
      if (search->model_digest() != digest) refits.push_back(trial);
      digest = search->model_digest();
      const Observation seen = m.measure(one[0]);
      search->observe({&seen, 1});
    }
    ASSERT_GE(refits.size(), 3u) << name;
    EXPECT_GE(refits[0], 16) << name << ": a random start";
    for (size_t i = 1; i < refits.size(); ++i) EXPECT_EQ(refits[i] - refits[i - 1], gap) << name;
  }
}

// Parents are the 20 fastest: with all of them in one corner of the space, so are nearly all children.
TEST(Genetic, BreedsOfTheTwentyFastest) {
  MeasuredSpace m{.name = "corner", .space = ConfigSpace(), .time_ns = {}};
  std::vector<int64_t> values;
  for (int64_t v = 0; v < 16; ++v) values.push_back(v);
  for (const char* knob : {"a", "b", "c", "d", "e"}) static_cast<void>(m.space.choice(knob, values));
  ASSERT_TRUE(m.space.seal().is_ok());
  const SearchSpace space = m.search_space();
  const auto search = strategy("genetic", space, 9);
  std::mt19937_64 random(1);
  const auto config = [&](int64_t least) {
    std::map<std::string, int64_t> knobs;
    for (const char* knob : {"a", "b", "c", "d", "e"})
      knobs[knob] = least + static_cast<int64_t>(random() % 4);
    return m.space.index_of(Config(knobs)).value();
  };
  std::vector<Observation> results;  // 20 fast ones in one corner between 200 slow ones in the other
  for (int i = 0; i < 220; ++i)
    results.push_back(
        {.candidate = {0, config(i % 11 == 5 ? 12 : 0)}, .ok = true, .time_ns = i % 11 == 5 ? 10.0 : 99.0});
  search->observe(results);
  int near = 0;
  for (const Candidate& c : search->propose(101)) {
    const Config child = m.space.at(c.config);
    int high = 0;
    for (const auto& [name, value] : child.values()) high += value >= 12 ? 1 : 0;
    near += high >= 3 ? 1 : 0;
  }
  EXPECT_GT(near, 85) << "the default, and one of twenty drawn from anywhere, are not";
}

TEST(LargeSpaces, CandidatesAreDrawnFromEverywhereAndAroundEachParent) {
  const MeasuredSpace m = testing::rugged_space(1);
  const SearchSpace space = m.search_space();
  const CandidatePool pool(space, 1);
  const std::vector<Candidate> parents = {{0, 17}, {0, m.space.size() / 2}};
  const RandomSeed seed(3);
  std::mt19937_64 rng(seed);
  const std::vector<Candidate> near = drawn(pool, parents, {.anywhere = 0, .near = 50}, rng);
  EXPECT_TRUE(std::is_sorted(near.begin(), near.end()));
  EXPECT_EQ(std::adjacent_find(near.begin(), near.end()), near.end()) << "each once";
  for (const Candidate& parent : parents) {
    const auto around = [&](int steps) {
      return std::count_if(near.begin(), near.end(),
                           [&](const Candidate& c) { return steps_between(m.space, c, parent) == steps; });
    };
    EXPECT_GE(around(1), 8);
    EXPECT_GE(around(2), 8);
  }
  const std::vector<Candidate> all = drawn(pool, parents, {.anywhere = 300, .near = 50}, rng);
  const auto far = std::count_if(all.begin(), all.end(), [&](const Candidate& c) {
    return steps_between(m.space, c, parents[0]) > 2 && steps_between(m.space, c, parents[1]) > 2;
  });
  EXPECT_GE(far, 150);
}

// --- annealing only ---

struct Acceptance {
  size_t moves = 0, accepted = 0;
  double expected = 0;  // of the accepted
};

// Plays the strategy's three chains where every move is `slower` times as slow as where its chain stands, and
// reads from a chain's next move, one knob from where it then stands, whether it had gone there.
void play_slower_moves(const ConfigSpace& space, uint64_t seed, double slower, Acceptance& seen) {
  constexpr size_t kChains = 3, kStarts = 3, kMoves = 20;
  const SearchSpace searched{.parts = {{"wide", &space, {}}}};
  const auto search = strategy("annealing", searched, seed);
  struct Chain {
    Candidate at, moved;
    double time_ns = 1000;
    bool known = true;  // false once a move could have come from either
  } chains[kChains];
  for (size_t round = 0; round < kStarts + kMoves; ++round) {
    const std::vector<Candidate> batch = search->propose(kChains);
    std::vector<Observation> results;
    for (size_t i = 0; i < kChains; ++i) {
      Chain& chain = chains[i];
      if (round == 0) chain.at = batch[i];
      if (round > kStarts && chain.known) {
        const int from_old = steps_between(space, batch[i], chain.at),
                  from_new = steps_between(space, batch[i], chain.moved);
        EXPECT_TRUE(from_old == 1 || from_new == 1) << "a move changes one knob";
        chain.known = from_old != from_new;
        if (chain.known) {
          ++seen.moves;
          // The temperature begins at 0.25 and falls by 7 % with each result of the chain.
          seen.expected += std::exp(-std::log(slower) / (0.25 * std::pow(0.93, static_cast<double>(round))));
          seen.accepted += from_new == 1 ? 1 : 0;
        }
        if (chain.known && from_new == 1) {
          chain.at = chain.moved;
          chain.time_ns *= slower;
        }
      }
      chain.moved = batch[i];
      const bool begins = round == 0, starting = round < kStarts;
      const double factor = begins ? 1 : starting ? 2 : slower;
      results.push_back({.candidate = batch[i], .ok = true, .time_ns = factor * chain.time_ns});
    }
    search->observe(results);
  }
}

TEST(Annealing, AcceptsSlowerMovesAsOftenAsTheirRatioAndTheTemperatureSay) {
  ConfigSpace space;
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h"})
    static_cast<void>(space.choice(name, {1, 2, 4, 8, 16, 32}).try_first(4));
  ASSERT_TRUE(space.seal().is_ok());
  for (const double slower : {1.02, 1.1, 1.3}) {
    Acceptance seen;
    for (const uint32_t seed : Seeds(/*fixed=*/0, /*rounds=*/150))
      play_slower_moves(space, seed, slower, seen);
    const double moves = static_cast<double>(seen.moves);
    ASSERT_GT(seen.moves, 1000u);
    EXPECT_NEAR(static_cast<double>(seen.accepted) / moves, seen.expected / moves, 0.05) << slower;
  }
}

// --- model-guided only ---

class ModelGuided : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Both, ModelGuided, ::testing::Values("xgb-genetic", "xgb-annealing"),
                         [](const auto& info) {
                           return info.param == "xgb-genetic" ? std::string("genetic")
                                                              : std::string("annealing");
                         });

TEST_P(ModelGuided, TellsHowWellItPredictedTheLastBatchAndWhichModelItUses) {
  const MeasuredSpace m = testing::rugged_space(0);
  const SearchSpace space = m.search_space();
  const auto search = strategy(GetParam(), space, 7);
  EXPECT_EQ(search->status_line(), "");
  EXPECT_EQ(search->model_digest(), "");
  std::set<std::string> digests;
  for (int batch = 0; batch < 6; ++batch) {
    std::vector<Observation> results;
    for (const Candidate& c : search->propose(16)) results.push_back(m.measure(c));
    search->observe(results);
    digests.insert(search->model_digest());
  }
  EXPECT_THAT(search->status_line(),
              ::testing::MatchesRegex("the model ranks new candidates (well|fairly|poorly|no better than "
                                      "chance) .-?[01]\\.[0-9][0-9], of [0-9]+ trials.*"));
  EXPECT_EQ(digests.size(), 6u) << "none for the first batch, then one a refit";
}

TEST_P(ModelGuided, BuildsProgramsOnlyOfThePromisingFew) {
  const MeasuredSpace m = testing::rugged_space(0);
  SearchSpace space = m.search_space();
  size_t built = 0;
  space.parts[0].program_features = [&](const Config& c) {
    ++built;
    return std::vector<float>{static_cast<float>(c.at("mr") * c.at("nr")),
                              static_cast<float>(c.at("kc") * c.at("mc"))};
  };
  const auto search = strategy(GetParam(), space, 7);
  constexpr size_t kRounds = 5;
  for (size_t round = 0; round < kRounds; ++round) {
    std::vector<Observation> results;
    for (const Candidate& c : search->propose(16)) results.push_back(m.measure(c));
    search->observe(results);
  }
  const ModelGuidedOptions options;
  const size_t a_round = options.program_feature_budget + options.batch * (1 + options.children);
  EXPECT_GT(built, 16u);
  EXPECT_LE(built, (kRounds - 1) * a_round);
  EXPECT_FALSE(search->model_digest().empty());
}

// Where the model's best walk is cut short by the runner, the time is only a bound: such a config must not
// count as good.
TEST_P(ModelGuided, CutResultsNeverBecomeTheBest) {
  const MeasuredSpace m = testing::rugged_space(3);
  const SearchSpace space = m.search_space();
  const auto search = strategy(GetParam(), space, 2);
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < 8; ++round) {
    std::vector<Observation> results;
    for (const Candidate& c : search->propose(16)) {
      Observation r = m.measure(c);
      if (r.ok && r.time_ns > 2 * best) {  // given up at twice the best: the true time is not known
        r.time_ns = 2 * best;
        r.cut = true;
      }
      if (r.ok && !r.cut) best = std::min(best, r.time_ns);
      results.push_back(r);
    }
    search->observe(results);
  }
  EXPECT_GT(m.best_ns() / best, 0.7);
}

// What a model-guided search proposes in its first `trials`, with these options.
std::vector<Candidate> proposals(const std::string& name, const MeasuredSpace& m,
                                 const ModelGuidedOptions& options, uint64_t seed, size_t trials) {
  const SearchSpace space = m.search_space();
  const auto search = make_model_guided_search(
      name, space, seed, name == "xgb-genetic" ? walk_genetic : walk_annealing, options);
  std::vector<Candidate> proposed;
  while (proposed.size() < trials) {
    std::vector<Observation> results;
    for (const Candidate& c : search->propose(8)) results.push_back(m.measure(c));
    search->observe(results);
    for (const Observation& r : results) proposed.push_back(r.candidate);
  }
  return proposed;
}

// Mean of best time / time.
double mean_share(const MeasuredSpace& m, std::span<const Candidate> proposed) {
  double sum = 0;
  for (const Candidate& c : proposed) sum += m.best_ns() / m.time_ns[c.config];
  return sum / static_cast<double>(proposed.size());
}

// Without children and random proposals, all that follows the random start comes from the walk.
TEST_P(ModelGuided, WalksOverASpaceTooLargeToBeRankedWhole) {
  const MeasuredSpace m = testing::rugged_space(1);
  const ModelGuidedOptions options{.random_share = 0, .local_share = 0, .rank_whole = 256};
  for (const uint32_t seed : Seeds(/*fixed=*/0, /*rounds=*/3)) {
    const std::vector<Candidate> proposed = proposals(GetParam(), m, options, seed, 64);
    const std::span<const Candidate> all(proposed);
    EXPECT_GT(mean_share(m, all.last(24)), 1.5 * mean_share(m, all.first(options.start)));
  }
}

TEST_P(ModelGuided, EachProposalBelievesTheNextModelOfTheEnsemble) {
  const MeasuredSpace m = testing::rugged_space(0);
  const auto proposed = [&](int models, bool in_turn) {
    return proposals(GetParam(), m, {.in_turn = in_turn, .models = models}, 5, 48);
  };
  EXPECT_NE(proposed(4, true), proposed(4, false));
  EXPECT_EQ(proposed(1, true), proposed(1, false)) << "one model is their mean";
}

}  // namespace
}  // namespace tuner
