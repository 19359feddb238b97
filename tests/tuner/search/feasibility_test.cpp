// Hidden constraints: what fails is learnt and avoided, but not for ever.
#include "tuner/search/feasibility.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "tests/tuner/measured_space.h"
#include "tuner/search/bayesian.h"

namespace tuner {
namespace {

using testing::MeasuredSpace;

// Two columns, 0..15 each; what has a + b > 20 fails.
struct Grid {
  FeatureMatrix rows{.columns = 2, .values = {}};
  std::vector<float> worked;
  explicit Grid(int step) {
    for (int a = 0; a < 16; a += step)
      for (int b = 0; b < 16; b += step) {
        rows.values.insert(rows.values.end(), {static_cast<float>(a), static_cast<float>(b)});
        worked.push_back(a + b > 20 ? 0.0f : 1.0f);
      }
  }
};

TEST(Feasibility, SaysNothingBeforeItHasSeenThreeFailuresAndThreeThatWorked) {
  Feasibility feasibility(1, 8);
  const Grid grid(1);
  const FeatureMatrix few{.columns = 2, .values = {0, 0, 1, 1, 2, 2, 15, 15, 14, 14}};
  feasibility.fit(few, std::vector<float>{1, 1, 1, 0, 0});
  EXPECT_FALSE(feasibility.knows());
  EXPECT_EQ(feasibility.factors(grid.rows), std::vector<float>(256, 1.0f));
  EXPECT_EQ(feasibility.digest(), "");
  feasibility.fit(grid.rows, std::vector<float>(256, 0.0f));
  EXPECT_FALSE(feasibility.knows()) << "where everything fails there is nothing to tell apart";
}

TEST(Feasibility, LearnsARegionThatFailsAndNeverCallsItImpossible) {
  const Grid seen(3), all(1);
  Feasibility feasibility(1, 8);
  feasibility.fit(seen.rows, seen.worked);
  ASSERT_TRUE(feasibility.knows());
  const std::vector<float> factors = feasibility.factors(all.rows);
  double mean[2] = {}, count[2] = {};
  for (size_t i = 0; i < factors.size(); ++i) {
    EXPECT_GT(factors[i], 0);
    EXPECT_LE(factors[i], 1);
    mean[static_cast<size_t>(all.worked[i])] += factors[i];
    count[static_cast<size_t>(all.worked[i])] += 1;
  }
  EXPECT_LT(mean[0] / count[0], 0.3);
  EXPECT_GT(mean[1] / count[1], 0.6);
  // A failed region that works after all (the compiler was mended) is believed again.
  feasibility.fit(seen.rows, std::vector<float>(seen.worked.size(), 1.0f));
  EXPECT_EQ(feasibility.factors(all.rows), std::vector<float>(256, 1.0f));
}

struct Failing {
  double early = 0, late = 0, share = 0;  // of the first 64 trials, of the other 128; best / best found
};

Failing search_of(const MeasuredSpace& m, double caution) {
  constexpr int kSeeds = 4;
  Failing found;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    BayesianOptions options;
    options.caution = caution;
    const SearchSpace space = m.search_space();
    const auto search = make_bayesian_search(space, seed, options);
    double best = std::numeric_limits<double>::infinity();
    for (int trial = 0; trial < 192; trial += 8) {
      std::vector<Observation> results;
      for (const Candidate& c : search->propose(8)) {
        results.push_back(m.measure(c));
        if (results.back().ok)
          best = std::min(best, results.back().time_ns);
        else
          (trial < 64 ? found.early : found.late) += 1;
      }
      search->observe(results);
    }
    found.share += m.best_ns() / best / kSeeds;
  }
  found.early /= 64.0 * kSeeds;
  found.late /= 128.0 * kSeeds;
  return found;
}

TEST(Feasibility, AProposalFailsMuchLessOftenThanAConfigOfTheSpace) {
  double drawn = 0, early = 0, late = 0;
  for (const uint64_t variant : {3u, 5u}) {
    const MeasuredSpace m = testing::failing_space(variant);
    const auto fails =
        std::count_if(m.time_ns.begin(), m.time_ns.end(), [](double t) { return !std::isfinite(t); });
    const double share = static_cast<double>(fails) / static_cast<double>(m.time_ns.size());
    const Failing with = search_of(m, BayesianOptions().caution);
    std::printf(
        "%s: %.0f %% of the configs fail; of the first 64 proposals %.0f %%, of the others %.0f %%; best "
        "%.1f %%\n",
        m.name.c_str(), 100 * share, 100 * with.early, 100 * with.late, 100 * with.share);
    EXPECT_GT(with.late, 0) << "never tried again";
    EXPECT_GT(with.share, 0.9) << m.name;
    drawn += share / 2;
    early += with.early / 2;
    late += with.late / 2;
  }
  EXPECT_LT(early, 0.8 * drawn) << "16 of these are drawn at random";
  EXPECT_LT(late, 0.65 * drawn);
}

}  // namespace
}  // namespace tuner
