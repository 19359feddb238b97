// Times as text, both ways: ours, what other tools and people write, and what is no time.
#include "compiler_core/base/clock.h"

#include <gtest/gtest.h>

namespace tuner {
namespace {

constexpr int64_t kSecond = 1'000'000, kHour = 3600 * kSecond, kDay = 24 * kHour;
constexpr int64_t kBirthday = 20'777 * kDay;  // 2026-11-20: 56 years of 365 days, 14 leap days, 323 days

TEST(TimeText, IsTheSameTimeBothWays) {
  EXPECT_EQ(time_text(kBirthday + 21 * kHour + 608 * kSecond + 123'456), "2026-11-20T21:10:08.123456Z");
  EXPECT_EQ(time_text(0), "");
  EXPECT_EQ(time_text(1), "1970-01-01T00:00:00.000001Z");
  EXPECT_EQ(time_text(-1), "1969-12-31T23:59:59.999999Z");
  for (const int64_t us : {int64_t{0}, int64_t{1}, 59 * kDay, kBirthday - 1, wall_time_us()})
    EXPECT_EQ(time_from_text(time_text(us)), us) << time_text(us);
}

TEST(TimeText, ReadsWhatOthersWrite) {
  EXPECT_EQ(time_from_text("2026-11-20"), kBirthday);
  EXPECT_EQ(time_from_text("2026-11-20T01:30"), kBirthday + kHour * 3 / 2);
  EXPECT_EQ(time_from_text("2026-11-20 01:30:01"), kBirthday + kHour * 3 / 2 + kSecond);
  EXPECT_EQ(time_from_text("2026-11-20T00:00:00.5"), kBirthday + kSecond / 2);
  EXPECT_EQ(time_from_text("2026-11-20T00:00:00.1234567891Z"), kBirthday + 123'456);
  EXPECT_EQ(time_from_text("2026-11-20T02:00:00+01:30"), kBirthday + kHour / 2);
  EXPECT_EQ(time_from_text("2026-11-20T02:00:00-0130"), kBirthday + kHour * 7 / 2);
  EXPECT_EQ(time_from_text("2024-02-29"), 19'782 * kDay) << "a leap day";
  EXPECT_EQ(time_from_text("2016-12-31T23:59:60Z"), time_from_text("2017-01-01T00:00:00Z"))
      << "a leap second";
}

TEST(TimeText, RefusesWhatIsNoTime) {
  for (const char* text : {"today",
                           "2026",
                           "2026-11",
                           "2026-11-2",
                           "2026-13-01",
                           "2026-00-01",
                           "2026-02-30",
                           "2025-02-29",
                           "1969-12-31",
                           "2026-11-20T",
                           "2026-11-20T24:00",
                           "2026-11-20T12",
                           "2026-11-20T12:60",
                           "2026-11-20T12:00:61",
                           "2026-11-20T12:00:00.",
                           "2026-11-20T12:00:00+1",
                           "2026-11-20T12:00:00Zx",
                           "2026-11-20x",
                           " 2026-11-20",
                           "1970-01-01T00:00:00+01:00"})
    EXPECT_EQ(time_from_text(text), std::nullopt) << text;
}

TEST(SteadyTimes, CountFromAndToNow) {
  const SteadyTime hour_ago = seconds_from_now(-3600);
  EXPECT_GE(seconds_since(hour_ago), 3600);
  EXPECT_GE(ms_since(hour_ago), 3'600'000);
  EXPECT_LT(seconds_since(seconds_from_now(3600)), 0);
}

}  // namespace
}  // namespace tuner
