// The sets of inputs that a judged kernel meets.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "tuner/judge/judge_data.h"

namespace tuner {
namespace {

std::string floats(const std::function<float(int)>& of) {
  std::string bytes(4 * 1000, '\0');
  for (int i = 0; i < 1000; ++i) {
    const float x = of(i);
    std::memcpy(&bytes[4 * i], &x, 4);
  }
  return bytes;
}
float at(const std::string& bytes, int i) {
  float x;
  std::memcpy(&x, &bytes[4 * i], 4);
  return x;
}

class JudgeInputs : public testing::Test {
 protected:
  const std::vector<std::string> first_ = {floats([](int i) { return std::sin(i); }),
                                           floats([](int i) { return i; })};
  const std::vector<std::string> second_ = {floats([](int i) { return std::cos(i); }), first_[1]};
  const std::vector<std::vector<std::string>> sets_ =
      judge_inputs(first_, second_, {DType::kFloat32, DType::kFloat32}, 7);
  int differing(size_t set) const {
    int n = 0;
    for (int i = 0; i < 1000; ++i) n += at(sets_[set][0], i) != at(first_[0], i) ? 1 : 0;
    return n;
  }
};

TEST_F(JudgeInputs, OneIsNewOneDiffersInOneElementOneInSome) {
  ASSERT_EQ(sets_.size(), 6u);
  EXPECT_EQ(sets_[0], first_);
  EXPECT_EQ(sets_[1], second_);
  EXPECT_EQ(differing(2), 1);
  EXPECT_EQ(differing(3), 1);
  EXPECT_NE(sets_[2], sets_[3]);
  EXPECT_EQ(differing(4), 15);
  for (const size_t set : {2, 3, 4})
    for (int i = 0; i < 1000; ++i) {
      const float x = at(sets_[set][0], i);
      EXPECT_TRUE(x == at(first_[0], i) || x == at(second_[0], i));
    }
}

TEST_F(JudgeInputs, TheLastOneLiesAtTheEndsOfTheRange) {
  float least = 1, greatest = -1;
  for (int i = 0; i < 1000; ++i)
    least = std::min(least, at(first_[0], i)), greatest = std::max(greatest, at(first_[0], i));
  int at_ends = 0;
  for (int i = 0; i < 1000; ++i)
    at_ends += at(sets_[5][0], i) == least || at(sets_[5][0], i) == greatest ? 1 : 0;
  EXPECT_GT(at_ends, 500);
  EXPECT_LT(at_ends, 800);
}

TEST_F(JudgeInputs, WhatNoSeedChangesStays) {
  for (const auto& set : sets_) EXPECT_EQ(set[1], first_[1]);
  EXPECT_EQ(judge_inputs({first_[1]}, {first_[1]}, {DType::kFloat32}, 7).size(), 1u);
}

}  // namespace
}  // namespace tuner
