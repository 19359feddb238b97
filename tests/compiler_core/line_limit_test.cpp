// A line that repeats in a loop: said at once, then now and then with the number of those left out.
#include "compiler_core/base/line_limit.h"

#include <gtest/gtest.h>

namespace tuner {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(LineLimit, TheFirstLineIsSaidAtOnceAndLaterOnesCountThoseLeftOut) {
  LineLimit limit;
  const LineLimit::Clock::time_point begin{seconds(1'000)};
  EXPECT_EQ(limit.say(begin), "");
  EXPECT_EQ(limit.say(begin), std::nullopt);
  EXPECT_EQ(limit.say(begin + seconds(29)), std::nullopt);
  EXPECT_EQ(limit.say(begin + seconds(30)), " (and 2 lines like it before)");
  EXPECT_EQ(limit.say(begin + seconds(31)), std::nullopt);
  EXPECT_EQ(limit.say(begin + seconds(90)), " (and 1 line like it before)");
  EXPECT_EQ(limit.say(begin + seconds(150)), "");
}

TEST(LineLimit, AMinuteOfALoopIsThreeLines) {
  LineLimit limit;
  int said = 0;
  for (int ms = 0; ms <= 60'000; ++ms)
    if (limit.say(LineLimit::Clock::time_point{milliseconds(ms)})) ++said;
  EXPECT_EQ(said, 3) << "at 0, 30 and 60 s; 36,288 lines came of a full disk before";
}

}  // namespace
}  // namespace tuner
