// Which job is thought about next.
#include "tuner/daemon/turns.h"

#include <gtest/gtest.h>

namespace tuner {
namespace {

TEST(Turns, GoToWhoHasWaitedLongest) {
  Turns turns;
  turns.wake("j2");
  turns.wake("j1");
  turns.wake("j2");  // waits already
  EXPECT_EQ(turns.begin(), "j2");
  EXPECT_EQ(turns.begin(), "j1");
  EXPECT_EQ(turns.begin(), std::nullopt);
}

TEST(Turns, AJobIsThoughtAboutByOneThreadAtATimeAndAgainIfItWasWokenMeanwhile) {
  Turns turns;
  turns.wake("j1");
  ASSERT_EQ(turns.begin(), "j1");
  turns.wake("j1");
  turns.wake("j1");
  EXPECT_FALSE(turns.some_wait());
  EXPECT_EQ(turns.begin(), std::nullopt) << "another thread thinks about it";
  turns.end("j1");
  EXPECT_EQ(turns.begin(), "j1");
  turns.end("j1");
  EXPECT_EQ(turns.begin(), std::nullopt) << "once, however often it was woken";
}

TEST(Turns, AJobThatIsWokenAllTheTimeLeavesTheOthersTheirs) {
  Turns turns;
  turns.wake("busy");
  turns.wake("quiet");
  ASSERT_EQ(turns.begin(), "busy");
  turns.wake("busy");
  turns.end("busy");
  EXPECT_EQ(turns.begin(), "quiet");
}

}  // namespace
}  // namespace tuner
