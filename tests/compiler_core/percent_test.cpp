// A share as text shows on which side of its limit it lies.
#include "compiler_core/base/percent.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>

namespace tuner {
namespace {

TEST(Percent, OneDecimalIsEnoughFarFromTheLimit) {
  EXPECT_EQ(percent_beside(0.0206, 0.05), "2.1 %");
  EXPECT_EQ(percent_beside(0.088, 0.05), "8.8 %");
  EXPECT_EQ(percent_beside(0.705, 0.05), "70.5 %");
  EXPECT_EQ(percent_beside(0.05, 0.05), "5.0 %");
}

TEST(Percent, WhatIsAboveTheLimitIsNeverPrintedAsTheLimit) {
  EXPECT_EQ(percent_beside(0.0502, 0.05), "5.02 %");
  EXPECT_EQ(percent_beside(0.05003, 0.05), "5.003 %");
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> excess(-6, 0);
  for (int i = 0; i < 1000; ++i) {
    const double off = std::pow(10, excess(random));
    EXPECT_GT(std::atof(percent_beside(0.05 * (1 + off), 0.05).c_str()), 5.0) << off;
    EXPECT_LE(std::atof(percent_beside(0.05 * (1 - off), 0.05).c_str()), 5.0) << off;
  }
}

}  // namespace
}  // namespace tuner
