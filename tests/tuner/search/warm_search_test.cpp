// A search that knows of similar tasks: it is ahead from the first trials, and a donor that misleads does not
// keep it behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/tuner/measured_space.h"
#include "tuner/search/model_guided.h"
#include "tuner/search/search_strategy.h"
#include "tuner/search/simulation.h"

namespace tuner {
namespace {

using testing::MeasuredSpace;

enum class Donor { kHonest, kReversed };

// `rows` random rows; a reversed donor finds fast what is slow.
PriorTask donor_rows(const MeasuredSpace& m, size_t rows, uint64_t seed, Donor donor) {
  PriorTask prior{.source = m.name, .rows = {}, .weight = 1};
  std::mt19937_64 rng(seed);
  for (size_t i = 0; i < rows; ++i) {
    const ConfigIndex at = m.space.sample(rng);
    const double t = m.time_ns[at];
    if (!std::isfinite(t)) {
      prior.rows.push_back({"rugged", m.space.at(at), false, 0});
      continue;
    }
    prior.rows.push_back({"rugged", m.space.at(at), true, donor == Donor::kHonest ? t : 1e9 / t});
  }
  return prior;
}

SimulationSummary runs(const MeasuredSpace& m, const std::vector<const MeasuredSpace*>& donors, Donor donor,
                       size_t trials, const char* strategy = "bayesian") {
  SimulationSummary summary;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    SearchSpace space = m.search_space();
    space.parts[0].template_name = "rugged";
    for (const MeasuredSpace* d : donors) space.priors.push_back(donor_rows(*d, 200, seed, donor));
    const auto search = make_strategy(strategy, space, seed).value();
    summary.add(simulate(
        *search, [&](const Candidate& c) { return m.measure(c); }, m.best_ns(), trials, 8));
  }
  return summary;
}

TEST(WarmSearch, DonorsOfTheSameTemplatePutItAheadFromTheStart) {
  const MeasuredSpace m = testing::rugged_space(0), a = testing::rugged_space(2),
                      b = testing::rugged_space(4);
  for (const char* strategy : {"bayesian", "xgb-annealing", "xgb-genetic"}) {
    const SimulationSummary cold = runs(m, {}, Donor::kHonest, 48, strategy),
                            warm = runs(m, {&a, &b}, Donor::kHonest, 48, strategy);
    std::printf("%s after 16 and 48 trials: cold %.3f %.3f, warm %.3f %.3f\n", strategy, cold.mean_share(16),
                cold.mean_share(48), warm.mean_share(16), warm.mean_share(48));
    EXPECT_GT(warm.mean_share(16), cold.mean_share(16) + 0.1) << strategy;
    EXPECT_GT(warm.mean_share(48), cold.mean_share(48)) << strategy;
    EXPECT_GT(warm.worst_share(16), cold.worst_share(16)) << strategy;
  }
}

// A job of many tasks knows each task's default before it proposes a batch: no reason to believe less.
TEST(WarmSearch, TheDefaultsTimeAloneDoesNotOverruleTheDonors) {
  const MeasuredSpace m = testing::rugged_space(0), donor = testing::rugged_space(2);
  SearchSpace space = m.search_space();
  space.parts[0].template_name = "rugged";
  space.priors.push_back(donor_rows(donor, 200, 1, Donor::kHonest));
  const auto unseen = make_strategy("bayesian", space, 1).value(),
             seen = make_strategy("bayesian", space, 1).value();
  const std::vector<Candidate> first = unseen->propose(1);
  EXPECT_EQ(seen->propose(1), first);
  const Observation result = m.measure(first[0]);
  seen->observe({&result, 1});
  EXPECT_EQ(seen->propose(16), unseen->propose(16));
}

TEST(WarmSearch, ADonorThatMisleadsLosesItsWeight) {
  const MeasuredSpace m = testing::rugged_space(0), a = testing::rugged_space(2);
  const SimulationSummary cold = runs(m, {}, Donor::kHonest, 128),
                          misled = runs(m, {&a}, Donor::kReversed, 128);
  std::printf("after 64 and 128 trials: cold %.3f %.3f, misled %.3f %.3f\n", cold.mean_share(64),
              cold.mean_share(128), misled.mean_share(64), misled.mean_share(128));
  EXPECT_GT(misled.mean_share(128), cold.mean_share(128) - 0.05);
}

// What it says of its donors after `trials` trials.
std::string opinion(Donor donor, size_t trials, const char* strategy) {
  const MeasuredSpace m = testing::rugged_space(0), a = testing::rugged_space(2);
  SearchSpace space = m.search_space();
  space.parts[0].template_name = "rugged";
  space.priors.push_back(donor_rows(a, 200, 1, donor));
  const auto search = make_strategy(strategy, space, 1).value();
  simulate(
      *search, [&](const Candidate& c) { return m.measure(c); }, m.best_ns(), trials, 8);
  return search->status_line();
}

TEST(WarmSearch, DonorsThatForecastNoBetterThanWhatIsMeasuredAreGivenUp) {
  for (const char* strategy : {"bayesian", "xgb-annealing"}) {
    EXPECT_THAT(opinion(Donor::kReversed, 96, strategy), ::testing::HasSubstr("given up")) << strategy;
    EXPECT_THAT(opinion(Donor::kHonest, 32, strategy), ::testing::Not(::testing::HasSubstr("given up")))
        << strategy;
  }
}

// A resumed job knows results before it first proposes, and a large space is never ranked whole: in neither
// case does what the donors say of a whole space exist when trust in them changes.
TEST(WarmSearch, LosesTrustInDonorsBeforeTheFirstProposalOrInALargeSpace) {
  const MeasuredSpace m = testing::rugged_space(0), a = testing::rugged_space(2);
  SearchSpace space = m.search_space();
  space.parts[0].template_name = "rugged";
  space.priors.push_back(donor_rows(a, 200, 1, Donor::kReversed));
  const auto resumed = make_strategy("xgb-annealing", space, 1).value();
  std::vector<Observation> known;
  std::mt19937_64 rng(3);
  for (int i = 0; i < 64; ++i) known.push_back(m.measure({0, m.space.sample(rng)}));
  resumed->observe(known);
  EXPECT_EQ(resumed->propose(8).size(), 8u);

  const auto large = make_model_guided_search("xgb-annealing", space, 1, walk_annealing, {.rank_whole = 256});
  simulate(
      *large, [&](const Candidate& c) { return m.measure(c); }, m.best_ns(), 96, 8);
  EXPECT_THAT(large->status_line(), ::testing::HasSubstr("given up"));
}

TEST(WarmSearch, SaysWhatItTrustsAndIgnoresRowsOfOtherTemplatesAndKnobs) {
  const MeasuredSpace m = testing::rugged_space(0), a = testing::rugged_space(2);
  SearchSpace space = m.search_space();
  space.priors.push_back(donor_rows(a, 200, 1, Donor::kHonest));
  EXPECT_EQ(make_strategy("bayesian", space, 0).value()->status_line(), "") << "another template";
  space.parts[0].template_name = "rugged";
  const auto search = make_strategy("bayesian", space, 0).value();
  EXPECT_EQ(search->status_line(), "warm start from 1 similar task, trusted 0.80");
  for (PriorTask::Row& row : space.priors[0].rows) row.config = config_from_text("mr=1 other=2").value();
  EXPECT_EQ(make_strategy("bayesian", space, 0).value()->status_line(), "") << "other knobs";
}

}  // namespace
}  // namespace tuner
