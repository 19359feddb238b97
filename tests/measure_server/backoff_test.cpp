// Pauses between tries: the limit doubles, the pause lies anywhere below it.
#include "measure_server/worker/backoff.h"
#include "tests/random_seed.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace tuner {
namespace {

TEST(Backoff, TheLimitDoublesFrom100MsTo10S) {
  double drawn = 0.999999;
  Backoff backoff({}, [&] { return drawn; });
  std::vector<int64_t> pauses;
  for (int i = 0; i < 10; ++i) pauses.push_back(backoff.next_ms());
  EXPECT_EQ(pauses, (std::vector<int64_t>{100, 200, 400, 800, 1'600, 3'200, 6'400, 10'000, 10'000, 10'000}));
  backoff.reset();
  EXPECT_EQ(backoff.next_ms(), 100);
  drawn = 0;
  EXPECT_EQ(backoff.next_ms(), 1) << "never none at all";
}

TEST(Backoff, PausesSpreadOverTheWholeRange) {
  for (const uint32_t seed : Seeds(/*fixed=*/1, /*rounds=*/5)) {
    std::mt19937_64 rng(seed);
    std::uniform_real_distribution<double> fraction(0, 1);
    Backoff backoff({.start_ms = 1'000, .cap_ms = 1'000}, [&] { return fraction(rng); });
    int low = 0, high = 0;
    for (int i = 0; i < 1'000; ++i) {
      const int64_t pause = backoff.next_ms();
      ASSERT_GE(pause, 1);
      ASSERT_LE(pause, 1'000);
      low += pause <= 250 ? 1 : 0;
      high += pause > 750 ? 1 : 0;
    }
    EXPECT_GT(low, 150) << "of about 250";
    EXPECT_GT(high, 150) << "of about 250";
  }
}

}  // namespace
}  // namespace tuner
