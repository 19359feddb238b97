// Races as the daemon keeps them: begun, with a worker, ended once, told once.
#include "tuner/daemon/tables/races.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tuner {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int64_t kWaitMs = 30'000;
const Races::Served kNobody = [](const Needs&) { return false; };

class RacesTest : public testing::Test {
 protected:
  void begin(const std::string& id, const std::string& job = "j1", int task = 0) {
    races.begin(id, {.job_id = job, .task_index = task, .needs = {.target = "cpu"}, .limit_s = 20}, now);
  }
  Races races{kWaitMs};
  int64_t now = 1'000;
};

RaceRow certified_win() { return {.winner_trial_id = "t7", .certified = true}; }

TEST_F(RacesTest, AWonRaceIsTakenOnce) {
  begin("r1");
  races.leased("r1", now + 5);
  EXPECT_EQ(races.open_races(), 1u);
  races.won("r1", certified_win());
  EXPECT_EQ(races.open_races(), 0u);
  EXPECT_EQ(races.under_way("r1"), nullptr);
  EXPECT_THAT(races.of_job("j1"), SizeIs(1)) << "its end has not been told";
  const std::vector<Races::Race> ended = races.take_ended("j1");
  ASSERT_THAT(ended, SizeIs(1));
  EXPECT_EQ(ended[0].begun_ms, now + 5);
  EXPECT_EQ(ended[0].error, "");
  EXPECT_EQ(ended[0].uncertified_why, "");
  EXPECT_THAT(races.take_ended("j1"), IsEmpty());
  EXPECT_THAT(races.of_job("j1"), IsEmpty());
}

TEST_F(RacesTest, AnUncertifiedWinnerSaysWhy) {
  begin("r1");
  races.won("r1", {.winner_trial_id = "t7", .certified = false, .uncertified_why = "too disturbed"});
  EXPECT_EQ(races.take_ended("j1").at(0).uncertified_why, "too disturbed");
}

TEST_F(RacesTest, TheFirstEndStands) {
  begin("r1");
  races.failed("r1", "poison");
  races.won("r1", certified_win());
  EXPECT_FALSE(races.take_course("r1", {.finalists = 3}));
  EXPECT_EQ(races.take_ended("j1").at(0).error, "poison");
  races.won("r1", certified_win());  // a late result of a race that is gone
  EXPECT_EQ(races.find("r1"), nullptr);
}

TEST_F(RacesTest, ARaceThatNobodyServesWaitsItsTimeAndIsGivenUp) {
  begin("r1");
  now += kWaitMs;
  EXPECT_THAT(races.give_up_unserved("j1", kNobody, now), IsEmpty());
  EXPECT_THAT(races.give_up_unserved("j1", kNobody, now + 1), ElementsAre("r1"));
  EXPECT_EQ(races.take_ended("j1").at(0).error, "the workers that could have run it have gone");
}

TEST_F(RacesTest, EachTimeSomebodyServesItItsWaitBeginsAnew) {
  begin("r1");
  begin("r2", "j2");
  now += kWaitMs;
  const auto served = [](const Needs& needs) { return needs.target == "cpu"; };
  EXPECT_THAT(races.give_up_unserved("j1", served, now), IsEmpty());
  EXPECT_THAT(races.give_up_unserved("j1", kNobody, now + kWaitMs), IsEmpty());
  EXPECT_THAT(races.give_up_unserved("j1", kNobody, now + kWaitMs + 1), ElementsAre("r1"));
  EXPECT_NE(races.under_way("r2"), nullptr) << "each job looks after its own";
}

TEST_F(RacesTest, AnEndedRaceIsNotGivenUpAsWell) {
  begin("r1");
  races.won("r1", certified_win());
  EXPECT_THAT(races.give_up_unserved("j1", kNobody, now + 2 * kWaitMs), IsEmpty());
  EXPECT_EQ(races.take_ended("j1").at(0).error, "");
}

TEST_F(RacesTest, ItsCourseIsTheLatestThatItsWorkerTold) {
  begin("r1");
  EXPECT_TRUE(races.take_course("r1", {.finalists = 5, .racing = 4, .processes = 1}));
  EXPECT_TRUE(races.take_course("r1", {.finalists = 5, .racing = 2, .processes = 3}));
  EXPECT_EQ(races.under_way("r1")->course.racing, 2);
  EXPECT_FALSE(races.take_course("r9", {})) << "nobody has asked for that one";
}

TEST_F(RacesTest, ALostRaceCountsFromItsLatestLease) {
  begin("r1");
  EXPECT_EQ(races.find("r1")->begun_ms, std::nullopt);
  races.leased("r1", now + 10);
  races.leased("r1", now + 500);  // the first worker was lost
  EXPECT_EQ(races.find("r1")->begun_ms, now + 500);
}

TEST_F(RacesTest, OnlyARemeasurementKeepsItsResultForWhoWaits) {
  begin("r1", "j1");
  begin("again", "");
  races.won("r1", certified_win());
  races.won("again", certified_win());
  EXPECT_EQ(races.find("r1")->result, std::nullopt) << "the store has it";
  ASSERT_TRUE(races.find("again")->result);
  EXPECT_EQ(races.find("again")->result->winner_trial_id, "t7");
  races.forget("again");
  EXPECT_EQ(races.find("again"), nullptr);
}

TEST_F(RacesTest, OfAForgottenJobAreGoneWithIt) {
  begin("r1", "j1", 0);
  begin("r2", "j1", 1);
  begin("r3", "j2");
  races.failed("r2", "why");
  races.forget_job("j1");
  EXPECT_THAT(races.of_job("j1"), IsEmpty());
  EXPECT_THAT(races.take_ended("j1"), IsEmpty());
  EXPECT_THAT(races.of_job("j2"), SizeIs(1));
}

TEST(RaceIds, TheSameRaceAtAnotherTimeIsAnother) {
  EXPECT_EQ(Races::id_of("race j1/2", 77), "race j1/2 @77");
  EXPECT_NE(Races::id_of("race j1/2", 77), Races::id_of("race j1/2", 78));
}

}  // namespace
}  // namespace tuner
