// How the fastest way of a library is found in a bounded time: what is timed, what is checked, what is told.
// With ways and a clock that are made up.
#include "tests/bench/gpu/peer_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tuner {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Ways "a", "b", ...: how long each takes, and what is wrong with it.
struct MadeUp {
  double ns = 1000;
  bool is_refused = false, is_wrong = false, is_not_made = false;
};

class PeerSearch : public testing::Test, public WaySource {
 protected:
  void add(MadeUp way) { ways_.push_back(way); }
  Result<std::vector<Finalist>> run(const SearchOptions& options = {}) {
    report_ = {};
    const SearchHooks hooks{
        .now_s = [this] { return clock_s_; },
        .time = [this](const PeerWay& way) -> Result<double> {
          const MadeUp& m = ways_[way.name[0] - 'a'];
          clock_s_ += time_s_;
          timed_ += way.name;
          if (device_fails_) return unavailable("the device is gone");
          return m.is_refused ? Result<double>(failed("status 13")) : m.ns;
        },
        .check = [this](const PeerWay& way) -> Result<double> {
          clock_s_ += check_s_;
          checked_ += way.name;
          return ways_[way.name[0] - 'a'].is_wrong ? Result<double>(failed("wrong answer")) : 0.5;
        }};
    return search(*this, options, hooks, report_);
  }
  static std::string names(const Result<std::vector<Finalist>>& found) {
    std::string all;
    for (const Finalist& f : *found) all += f.way.name;
    return all;
  }

  std::optional<Result<PeerWay>> next(const std::function<bool()>& over) override {
    if (place_ == ways_.size()) return std::nullopt;
    const size_t place = place_++;
    clock_s_ += make_s_;
    if (gives_up_ && over()) return std::nullopt;
    if (ways_[place].is_not_made) return Result<PeerWay>(failed("not made"));
    return PeerWay{.name = std::string(1, static_cast<char>('a' + place))};
  }
  Facts offered() const override { return {{"heuristic", static_cast<int64_t>(ways_.size())}}; }
  std::string refusal() const override { return "there is nothing"; }

  std::vector<MadeUp> ways_;
  size_t place_ = 0;
  double clock_s_ = 100, make_s_ = 0, time_s_ = 0, check_s_ = 0;
  bool device_fails_ = false, gives_up_ = false;
  std::string timed_, checked_;
  SearchReport report_;
};

TEST_F(PeerSearch, OfAllWaysTheFastestThatAreRightAreGiven) {
  add({.ns = 900});
  add({.ns = 100, .is_wrong = true});
  add({.ns = 700});
  add({.is_refused = true});
  add({.ns = 800});
  const auto found = run({.finalists = 2});
  EXPECT_EQ(names(found), "ce");
  EXPECT_EQ(timed_, "abcde") << "each once, in their order";
  EXPECT_EQ(checked_, "bce") << "the fastest first, and no more than are wanted";
  EXPECT_EQ((*found)[0].quick_ns, 700);
  EXPECT_EQ((*found)[0].max_error, 0.5);
  EXPECT_EQ(report_.tried, 5);
  EXPECT_EQ(report_.refused, 1);
  EXPECT_EQ(report_.wrong, 1);
  EXPECT_TRUE(report_.is_whole);
  EXPECT_EQ(report_.why, "b: wrong answer") << "which says more than that d was refused";
  EXPECT_THAT(report_.offered, ElementsAre(Fact{"heuristic", int64_t{5}}));
  ASSERT_EQ(report_.finalists.size(), 2u);
  EXPECT_EQ(report_.finalists[1].name, "e");
}

TEST_F(PeerSearch, WhatCannotWinIsNotChecked) {
  for (const double ns : {100.0, 149.0, 151.0}) add({.ns = ns});
  EXPECT_EQ(names(run()), "ab");
  EXPECT_EQ(checked_, "ab");
}

TEST_F(PeerSearch, WhenItsTimeIsOverTheRestIsLeftAndTold) {
  for (int i = 0; i < 20; ++i) add({.ns = 1000.0 - i});
  time_s_ = 1;
  const auto found = run({.seconds = 10});
  EXPECT_EQ(timed_, "abcdef") << "six of ten seconds are for timing";
  EXPECT_EQ(names(found), "fedcb");
  EXPECT_FALSE(report_.is_whole);
  EXPECT_EQ(report_.seconds, 6);
}

TEST_F(PeerSearch, MakingWaysTakesTimeToo) {
  for (int i = 0; i < 20; ++i) add({});
  make_s_ = 2;
  ASSERT_TRUE(run({.seconds = 10}).is_ok());
  EXPECT_EQ(timed_, "abc");
  EXPECT_FALSE(report_.is_whole);
}

// A source may look long for a way that there is not.
TEST_F(PeerSearch, ASourceThatFindsNoneInTimeHasMore) {
  for (int i = 0; i < 20; ++i) add({});
  make_s_ = 2, gives_up_ = true;
  ASSERT_TRUE(run({.seconds = 10}).is_ok());
  EXPECT_EQ(timed_, "ab");
  EXPECT_FALSE(report_.is_whole);
}

TEST_F(PeerSearch, CheckingEndsWithTheTimeAsSoonAsOneIsRight) {
  for (int i = 0; i < 5; ++i) add({});
  check_s_ = 6;
  EXPECT_EQ(names(run({.seconds = 10})), "ab");
  EXPECT_EQ(checked_, "ab");
}

// A library that would win may offer what is wrong first.
TEST_F(PeerSearch, WhereNothingIsRightYetItGetsThreeTimesTheTimeAndNoMore) {
  for (int i = 0; i < 8; ++i) add({.is_wrong = true});
  check_s_ = 6;
  EXPECT_THAT(*run({.seconds = 10}), IsEmpty());
  EXPECT_EQ(checked_, "abcde") << "30 seconds";
  ways_.clear(), place_ = 0, timed_.clear();
  for (int i = 0; i < 8; ++i) add({.is_refused = true});
  time_s_ = 10;
  ASSERT_TRUE(run({.seconds = 10}).is_ok());
  EXPECT_EQ(timed_, "abc");
}

TEST_F(PeerSearch, WaysThatAreOfferedAndNotMadeAreRefused) {
  add({.is_not_made = true});
  add({});
  EXPECT_EQ(names(run()), "b");
  EXPECT_EQ(report_.refused, 1);
  EXPECT_EQ(report_.why, "not made");
}

TEST_F(PeerSearch, ALibraryWithoutAnyWaySaysWhy) {
  EXPECT_THAT(*run(), IsEmpty());
  EXPECT_EQ(report_.why, "there is nothing");
  EXPECT_EQ(report_.tried, 0);
}

TEST_F(PeerSearch, SoManyWaysAtMostAreTried) {
  for (int i = 0; i < 8; ++i) add({});
  ASSERT_TRUE(run({.most = 3}).is_ok());
  EXPECT_EQ(timed_, "abc");
}

TEST_F(PeerSearch, ADeviceThatFailsEndsIt) {
  add({});
  add({});
  device_fails_ = true;
  const auto found = run();
  EXPECT_EQ(found.status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(timed_, "a");
}

}  // namespace
}  // namespace tuner
