// The sentinel's calm level: found from what it comes down to, kept over restarts, let go of when the machine
// changed.
#include "measure_server/worker/calm_level.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "tests/support/temporary_folder.h"

namespace tuner {
namespace {

TEST(CalmLevel, NothingIsDisturbedBeforeTheLevelIsKnown) {
  CalmLevel level("", "cpu X", 1.10);
  for (int i = 0; i < 7; ++i) level.observe(100);
  EXPECT_EQ(level.ns(), 0);
  EXPECT_FALSE(level.disturbed(1000));
  level.observe(100);
  EXPECT_EQ(level.ns(), 100);
  EXPECT_FALSE(level.disturbed(109));
  EXPECT_TRUE(level.disturbed(111));
}

TEST(CalmLevel, BurstsDoNotRaiseItAndOneLuckySentinelDoesNotLowerIt) {
  CalmLevel level("", "cpu X", 1.10);
  for (int i = 0; i < 20; ++i) level.observe(100);
  for (int i = 0; i < 40; ++i) level.observe(140);  // a neighbour
  EXPECT_TRUE(level.disturbed(140));
  level.observe(50);
  EXPECT_GT(level.ns(), 95);
}

TEST(CalmLevel, AMachineThatBecameSlowerForGoodIsBelievedAfterMinutesAndANeighbourIsNot) {
  CalmLevel level("", "cpu X", 1.10);
  CalmLevel::Clock::time_point now{};
  for (int i = 0; i < 20; ++i) level.observe(100, now);
  // However many sentinels there are in a second: a race takes hundreds.
  for (int i = 0; i < 60 * 500; ++i) level.observe(130, now += std::chrono::milliseconds(2));
  EXPECT_TRUE(level.disturbed(130)) << "after a minute";
  double minutes = 1;
  for (; level.disturbed(130) && minutes < 1000; minutes += 1.0 / 60)
    level.observe(130, now += std::chrono::seconds(1));
  EXPECT_GT(minutes, 10);
  EXPECT_LT(minutes, 30);
}

TEST(CalmLevel, TimeInWhichNothingIsMeasuredDoesNotRaiseIt) {
  CalmLevel level("", "cpu X", 1.10);
  CalmLevel::Clock::time_point now{};
  for (int i = 0; i < 20; ++i) level.observe(100, now);
  level.observe(130, now += std::chrono::hours(24));
  EXPECT_TRUE(level.disturbed(130));
}

TEST(CalmLevel, WhatCountsAsDisturbedIsTheCallersToSay) {
  CalmLevel level("", "cpu X", /*disturbed=*/1.25);
  for (int i = 0; i < 8; ++i) level.observe(100);
  EXPECT_FALSE(level.disturbed(124));
  EXPECT_TRUE(level.disturbed(126));
}

TEST(CalmLevel, IsKeptForTheNextStartOnTheSameHardware) {
  const TemporaryFolder folder;
  const std::string path = folder.file("calm_sentinel");
  {
    CalmLevel level(path, "cpu X", 1.10);
    for (int i = 0; i < 8; ++i) level.observe(123.5);
  }
  EXPECT_EQ(CalmLevel(path, "cpu X", 1.10).ns(), 123.5);
  EXPECT_EQ(CalmLevel(path, "cpu Y", 1.10).ns(), 0);
  namespace fs = std::filesystem;
  fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::minutes(29));
  EXPECT_EQ(CalmLevel(path, "cpu X", 1.10).ns(), 123.5);
  fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::minutes(31));
  EXPECT_EQ(CalmLevel(path, "cpu X", 1.10).ns(), 0) << "neighbours of then are no measure";
}

}  // namespace
}  // namespace tuner
