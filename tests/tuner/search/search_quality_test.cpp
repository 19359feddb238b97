// Search works: on rugged spaces whose every time is known, guided search finds more in the same number of
// trials.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/tuner/measured_space.h"
#include "tuner/search/search_strategy.h"

namespace tuner {
namespace {

constexpr int kSeeds = 10;
constexpr size_t kTrials = 128;

// Percent of the optimum after kTrials, by seed.
std::vector<double> percents(const testing::MeasuredSpace& m, const std::string& name) {
  std::vector<double> found;
  double mean = 0;
  std::printf("%-8s %-14s", m.name.c_str(), name.c_str());
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const SearchSpace space = m.search_space();
    Result<std::unique_ptr<SearchStrategy>> search = make_strategy(name, space, seed);
    CHECK(search.is_ok()) << search.message();
    found.push_back(100 * testing::share_of_optimum(m, **search, kTrials).back());
    mean += found.back() / kSeeds;
    std::printf(" %5.1f", found.back());
  }
  std::printf("   mean %5.1f %% of the optimum after %zu trials\n", mean, kTrials);
  return found;
}

int at_least_as_good(const std::vector<double>& a, const std::vector<double>& b) {
  int count = 0;
  for (size_t i = 0; i < a.size(); ++i) count += a[i] >= b[i] ? 1 : 0;
  return count;
}

TEST(SearchQuality, GuidedSearchFindsAtLeastWhatRandomFindsInEightOfTenSeeds) {
  const testing::MeasuredSpace m = testing::rugged_space(1);
  const std::vector<double> random = percents(m, "random");
  for (const char* name : {"genetic", "annealing", "bayesian", "xgb-genetic", "xgb-annealing"})
    EXPECT_GE(at_least_as_good(percents(m, name), random), 8) << name;
}

}  // namespace
}  // namespace tuner
