// A limit that stands still while the process that waits does.
#include "measure_server/runner/patience.h"

#include <gtest/gtest.h>

namespace tuner {
namespace {

using namespace std::chrono_literals;

const Patience::Clock::time_point kBegin{};

TEST(Patience, IsOverAfterItsLimitWhenItIsAskedAsOftenAsItWants) {
  Patience patience(10s, kBegin);
  auto now = kBegin;
  while (!patience.over(now)) now += std::chrono::milliseconds(patience.poll_ms());
  EXPECT_EQ(now - kBegin, 10s);
}

TEST(Patience, CountsASecondOfAStop) {
  Patience patience(10s, kBegin);
  EXPECT_FALSE(patience.over(kBegin + 9s - 250ms)) << "asked late: all but a second was a stop";
  auto now = kBegin + 1h;
  while (!patience.over(now)) now += std::chrono::milliseconds(patience.poll_ms());
  EXPECT_EQ(now - kBegin, 1h + 8s);
}

TEST(Patience, OfAnUnstoppedButBusyProcessIsTheTimeThatPasses) {
  Patience patience(10s, kBegin);
  int questions = 0;
  for (auto now = kBegin + 1s; !patience.over(now); now += 1s) ++questions;
  EXPECT_EQ(questions, 9) << "a core that others take up to a second lengthens no limit";
}

TEST(Patience, PollsNoLongerThanIsLeftOrThanTheCallerLikes) {
  Patience patience(100ms, kBegin);
  EXPECT_EQ(patience.poll_ms(10ms), 10);
  EXPECT_EQ(patience.poll_ms(), 100);
  EXPECT_FALSE(patience.over(kBegin + 70ms + 1us));
  EXPECT_EQ(patience.poll_ms(), 30) << "rounded up: it is not asked a moment too soon";
  EXPECT_TRUE(patience.over(kBegin + 100ms));
  EXPECT_EQ(patience.poll_ms(), 0);
  EXPECT_TRUE(Patience().over()) << "no limit, no patience";
}

}  // namespace
}  // namespace tuner
