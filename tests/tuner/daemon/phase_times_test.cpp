#include "tuner/daemon/tables/phase_times.h"

#include <gtest/gtest.h>

namespace tuner {
namespace {

TEST(PhaseTimes, MediansAndTotalsAreOfOnePhaseEach) {
  PhaseTimes times;
  for (const double ms : {5.0, 1.0, 9.0}) times.add(TrialPhase::kBuild, ms);
  times.add(TrialPhase::kRun, 20);
  EXPECT_DOUBLE_EQ(times.median_ms(TrialPhase::kBuild), 5);
  EXPECT_DOUBLE_EQ(times.total_ms(TrialPhase::kBuild), 15);
  EXPECT_DOUBLE_EQ(times.median_ms(TrialPhase::kRun), 20);
  EXPECT_DOUBLE_EQ(times.median_ms(TrialPhase::kCheck), 0);
}

TEST(PhaseTimes, WhatABatchTookIsSharedByItsTrials) {
  PhaseTimes times;
  times.add(TrialPhase::kPropose, 32, 16);
  times.add(TrialPhase::kPropose, 100, 1);
  times.add(TrialPhase::kPropose, 7, 0);  // nothing was proposed
  EXPECT_DOUBLE_EQ(times.median_ms(TrialPhase::kPropose), 2);
  EXPECT_DOUBLE_EQ(times.total_ms(TrialPhase::kPropose), 132);
}

TEST(PhaseTimes, TheMedianForgetsWhatIsLongPast) {
  PhaseTimes times;
  for (int i = 0; i < 400; ++i) times.add(TrialPhase::kStore, 50);
  for (int i = 0; i < 1000; ++i) times.add(TrialPhase::kStore, 1);
  EXPECT_DOUBLE_EQ(times.median_ms(TrialPhase::kStore), 1);
}

}  // namespace
}  // namespace tuner
