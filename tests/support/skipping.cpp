// Cases for tests/deploy/skipped_cases_test.py, which asks for some of them by --gtest_filter.
#include <gtest/gtest.h>

namespace {

TEST(Device, IsNotHere) { GTEST_SKIP() << "no device \x1b[31m here:\n  looked at /dev/none"; }
TEST(Device, SaysNothing) { GTEST_SKIP(); }
TEST(Package, IsNotHere) { GTEST_SKIP() << "no zsh here: deploy/install.sh --shells"; }
TEST(Plain, Runs) { EXPECT_EQ(1 + 1, 2); }
TEST(Plain, FailsAndSkips) {
  ADD_FAILURE() << "failed first";
  GTEST_SKIP() << "and then skipped";
}

class InSetUp : public ::testing::TestWithParam<int> {
  void SetUp() override { GTEST_SKIP() << "told in SetUp"; }
};
TEST_P(InSetUp, IsNotHere) { FAIL() << "the body of a skipped case ran"; }
INSTANTIATE_TEST_SUITE_P(Each, InSetUp, ::testing::Range(0, 5));

}  // namespace
