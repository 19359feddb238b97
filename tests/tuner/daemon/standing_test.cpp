// How far a worker is trusted: strikes for what cannot be, and the pace of its machine.
#include "tuner/daemon/tables/standing.h"

#include <gmock/gmock.h>

namespace tuner {
namespace {

using testing::HasSubstr;
constexpr int64_t kMinute = 60'000;

TEST(Standing, TwoImpossibleResultsAreForgivenAndTheThirdSetsAside) {
  Standing s;
  EXPECT_EQ(s.strike(0, "a"), 0);
  EXPECT_EQ(s.strike(1, "b"), 0);
  EXPECT_EQ(s.pause_ms(1, true), 0);
  EXPECT_FALSE(s.on_trial(true));
  EXPECT_EQ(s.strike(2, "a call of 0.001 ns"), 10 * kMinute);
  EXPECT_EQ(s.pause_ms(2, true), 10 * kMinute);
  EXPECT_EQ(s.pause_ms(2, false), kMinute / 2) << "the only worker of its kind";
  EXPECT_THAT(s.why(3, false), HasSubstr("3 results that cannot be; the last: a call of 0.001 ns"));
  EXPECT_EQ(s.pause_ms(2 + 10 * kMinute, true), 0);
  EXPECT_TRUE(s.on_trial(false)) << "then one lease at a time";
  EXPECT_EQ(s.strike(11 * kMinute, "again"), 20 * kMinute);
  for (int i = 0; i < 40; ++i) s.strike(12 * kMinute, "again");
  EXPECT_EQ(s.pause_ms(12 * kMinute, true), 24 * 60 * kMinute) << "a day at most";
}

// Ordinary noise: somebody on the core's other thread, now and then a trial that is far out.
TEST(Standing, NoiseIsNoDrift) {
  Standing s;
  s.enter("cpu", 100, 0, 0);
  for (int i = 0; i < 1'000; ++i)
    EXPECT_EQ(s.observe(i % 5 == 0 ? 900 : 100 + 70 * (i % 2), i), Standing::News::kNone) << i;
  for (int i = 0; i < 1'000; ++i) EXPECT_EQ(s.observe(170, 1'000 + i), Standing::News::kNone);
  EXPECT_FALSE(s.slower());
}

TEST(Standing, AMachineAtHalfItsSpeedIsSetAsideUntilItIsCalm) {
  Standing s;
  s.enter("cpu", 100, 0, 0);
  Standing::News news = Standing::News::kNone;
  int trials = 0;
  while (news == Standing::News::kNone && trials < 100) news = s.observe(200, ++trials);
  EXPECT_EQ(news, Standing::News::kSlower);
  EXPECT_EQ(trials, 16);
  EXPECT_EQ(s.pause_ms(16, /*others=*/true), 20'000);
  EXPECT_THAT(s.why(16, true), HasSubstr("fixed work takes 200 % of its calm time"));
  EXPECT_EQ(s.pause_ms(16, /*others=*/false), 0) << "the only worker goes on";
  EXPECT_EQ(s.why(16, false), "");
  EXPECT_TRUE(s.on_trial(true));
  EXPECT_FALSE(s.on_trial(false));
  EXPECT_EQ(s.observe(200, 21'000), Standing::News::kNone);
  EXPECT_EQ(s.pause_ms(21'000, true), 20'000) << "it was tried, and is still slow";
  for (int i = 0; i < 2; ++i) EXPECT_EQ(s.observe(101, 42'000 + i), Standing::News::kNone);
  EXPECT_EQ(s.observe(101, 42'004), Standing::News::kCalm) << "in the median of four";
  EXPECT_FALSE(s.slower());
  EXPECT_EQ(s.pause_ms(42'004, true), 0);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(s.observe(101, 43'000 + i), Standing::News::kNone) << i;
}

TEST(Standing, AMachineThatStaysSlowerIsBelievedAfterTenMinutes) {
  Standing s;
  s.enter("cpu", 100, 0, 0);
  for (int i = 0; i < 16; ++i) s.observe(250, i);
  ASSERT_TRUE(s.slower());
  EXPECT_EQ(s.observe(250, 9 * kMinute), Standing::News::kNone);
  EXPECT_EQ(s.observe(250, 11 * kMinute), Standing::News::kNewPace);
  EXPECT_EQ(s.level_ns(), 250);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(s.observe(260, 12 * kMinute + i), Standing::News::kNone);
}

TEST(Standing, TheLevelIsLearnedWhereAWorkerDoesNotTellIt) {
  Standing s;
  s.enter("cpu", 0, 0, 0);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(s.observe(100, i), Standing::News::kNone);
  EXPECT_EQ(s.level_ns(), 100);
  Standing::News news = Standing::News::kNone;
  for (int i = 0; i < 16 && news == Standing::News::kNone; ++i) news = s.observe(300, 100 + i);
  EXPECT_EQ(news, Standing::News::kSlower);
  EXPECT_EQ(s.observe(0, 1'000), Standing::News::kNone) << "not timed";
}

TEST(Standing, ARestartDoesNotHideThatAMachineIsSlowerButAnotherMachineIsAnother) {
  Standing s;
  s.enter("cpu", 100, 0, 0);
  s.enter("cpu", 300, 0, 0);
  EXPECT_EQ(s.level_ns(), 100) << "it measured itself when it was slow";
  for (int i = 0; i < 16; ++i) s.observe(300, i);
  EXPECT_TRUE(s.slower());
  s.enter("cpu", 300, 0, 0);
  EXPECT_TRUE(s.slower()) << "it starts again to be forgotten";
  s.enter("another cpu", 300, 0, 0);
  EXPECT_FALSE(s.slower());
  EXPECT_EQ(s.level_ns(), 300);
}

TEST(Standing, APeakThatHasFallenTellsThatTheMachineIsSlowerUntilItsSentinelsAreCalm) {
  Standing s;
  EXPECT_FALSE(s.enter("cpu", 100, 180, 0));
  EXPECT_FALSE(s.enter("cpu", 100, 110, 1)) << "a neighbour at that moment";
  EXPECT_TRUE(s.enter("cpu", 100, 60, 2));
  EXPECT_TRUE(s.slower());
  EXPECT_THAT(s.why(2, true), HasSubstr("fixed work takes 300 % of its calm time"));
  for (int i = 0; i < 4; ++i) s.observe(105, 21'000 + i);
  EXPECT_FALSE(s.slower());
  Standing unknown;
  unknown.enter("cpu", 0, 180, 0);
  EXPECT_FALSE(unknown.enter("cpu", 0, 10, 1)) << "nothing could show that it is calm again";
  EXPECT_FALSE(s.enter("another cpu", 100, 10, 3));
}

}  // namespace
}  // namespace tuner
