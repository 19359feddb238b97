// When a duel ends, and what it claims, with heats that are made up.
#include "tuner/judge/duel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace tuner {
namespace {

using testing::HasSubstr;

// Times of a kernel that takes 100 us and a rival that takes 150, each process off by what `noise` says.
struct MadeUpHeats {
  std::function<double(int process)> noise = [](int) { return 1.0; };
  std::function<bool(int heat)> disturbed = [](int) { return false; };
  double retaken_share = 0;  // of the slices
  int heats = 0;
  std::vector<std::string> firsts;

  Result<RaceReply> operator()(const RaceRequest& request) {
    RaceReply reply;
    for (const RaceRequest::Candidate& c : request.candidates) {
      RaceReply::Candidate& one = reply.candidates.emplace_back();
      const double ns = c.digest == "kernel" ? 100e3 : 150e3 * noise(heats);
      one.outcome = Outcome::kOk;
      one.run_ns.assign(9, ns);
      one.turns = 3;
      one.disturbed = disturbed(heats) ? 3 : 0;
      one.pulse_ns = 2000;
      one.slices = 1000;
      one.retaken = static_cast<int>(1000 * retaken_share);
    }
    firsts.push_back(request.candidates[0].digest);
    ++heats;
    return reply;
  }
};

Result<DuelResult> duel(MadeUpHeats& heats, const DuelOptions& options = {}) {
  return run_duel({}, {"kernel", {}}, {"rival", {}}, options, std::ref(heats));
}

TEST(Duel, SixAlikeProcessesAreEnough) {
  MadeUpHeats heats;
  const Result<DuelResult> r = duel(heats);
  ASSERT_TRUE(r.is_ok()) << r.message();
  EXPECT_EQ(r->missing, "");
  EXPECT_EQ(r->processes, 6);
  EXPECT_NEAR(r->ratio.value, 1.5, 1e-9);
  EXPECT_NEAR(r->ratio.low, 1.5, 1e-9);
  EXPECT_EQ(r->time_ns, 100e3);
  EXPECT_EQ(r->rival_time_ns, 150e3);
  // Each begins as often as the other.
  EXPECT_EQ(std::ranges::count(heats.firsts, "kernel"), 3);
}

TEST(Duel, NoiseWidensTheIntervalAndLengthensTheDuel) {
  MadeUpHeats heats{.noise = [](int process) { return process % 2 == 0 ? 0.99 : 1.01; }};
  const Result<DuelResult> r = duel(heats);
  ASSERT_TRUE(r.is_ok());
  EXPECT_GT(r->processes, 6);
  EXPECT_EQ(r->missing, "") << r->ratio.low << " " << r->ratio.high;
  EXPECT_LT(r->ratio.low, 1.5 * 0.99);
  EXPECT_GT(r->ratio.high, 1.5 * 1.01);
}

TEST(Duel, WhatIsTooWideIsNotCertified) {
  MadeUpHeats heats{.noise = [](int process) { return process % 2 == 0 ? 0.8 : 1.2; }};
  const Result<DuelResult> r = duel(heats);
  ASSERT_TRUE(r.is_ok());
  EXPECT_EQ(heats.heats, DuelOptions().most);
  EXPECT_THAT(r->missing, HasSubstr("times differ from process to process on a calm machine: after 27 "
                                    "processes the ratio is known only to +- "));
  EXPECT_THAT(r->missing, HasSubstr("This kernel took 100.0 us to 100.0 us, the other 120.0 us to 180.0 us"));
}

// Whom neighbours disturbed is told so, by disturbed turns or by slices that had to be taken anew.
TEST(Duel, ABusyMachineIsTheReasonOnlyWhereItWasBusy) {
  const auto noise = [](int process) { return process % 2 == 0 ? 0.8 : 1.2; };
  for (const double share : {0.01, 0.03}) {
    MadeUpHeats heats{.noise = noise, .retaken_share = share};
    const Result<DuelResult> r = duel(heats);
    ASSERT_TRUE(r.is_ok());
    EXPECT_THAT(r->missing, HasSubstr(share < 0.02 ? "on a calm machine" : "the machine is too busy"));
  }
  MadeUpHeats spoilt{.noise = noise, .disturbed = [](int heat) { return heat == 2; }};
  const Result<DuelResult> r = duel(spoilt);
  ASSERT_TRUE(r.is_ok());
  EXPECT_THAT(r->missing, HasSubstr("the machine is too busy: after 27 processes"));
  EXPECT_THAT(r->missing, HasSubstr("This kernel took 100.0 us to 100.0 us, the other 120.0 us to 180.0 us"));
}

TEST(Duel, DisturbedHeatsAreRunAgainAndSixOfThemEndIt) {
  MadeUpHeats once{.disturbed = [](int heat) { return heat == 2; }};
  const Result<DuelResult> good = duel(once);
  ASSERT_TRUE(good.is_ok());
  EXPECT_EQ(once.heats, 7);
  EXPECT_EQ(good->processes, 6);
  EXPECT_EQ(good->missing, "");
  MadeUpHeats always{.disturbed = [](int) { return true; }};
  const Result<DuelResult> bad = duel(always);
  ASSERT_TRUE(bad.is_ok());
  EXPECT_EQ(always.heats, 6);
  EXPECT_THAT(bad->missing, HasSubstr("the machine is too busy"));
}

TEST(Duel, TimeIsUpAfterTheLimit) {
  MadeUpHeats heats{.noise = [](int process) { return process % 2 == 0 ? 0.8 : 1.2; }};
  const Result<DuelResult> r = duel(heats, {.limit = std::chrono::milliseconds(-1)});
  ASSERT_TRUE(r.is_ok());
  EXPECT_EQ(heats.heats, 1);
  EXPECT_NE(r->missing, "");
}

TEST(Duel, WhoFailsIsNamed) {
  for (const bool of_rival : {false, true}) {
    const Result<DuelResult> r =
        run_duel({}, {"kernel", {}}, {"rival", {}}, {}, [&](const RaceRequest& request) -> Result<RaceReply> {
          MadeUpHeats heats;
          Result<RaceReply> reply = heats(request);
          for (size_t i = 0; i < 2; ++i)
            if ((request.candidates[i].digest == "rival") == of_rival) {
              reply->candidates[i].outcome = Outcome::kWrongAnswer;
              reply->candidates[i].message = "c[1] is 2";
            }
          return reply;
        });
    ASSERT_TRUE(r.is_ok());
    EXPECT_EQ(r->failed.message, "c[1] is 2");
    EXPECT_EQ(r->rival_failed, of_rival);
  }
}

// A process that somebody stopped between two readings of its clocks is no cheat; one whose times are wrong
// again soon is.
TEST(Duel, ADoubtHasToComeAgainTwiceSoon) {
  for (const bool of_rival : {false, true})
    for (const auto& round : {std::pair<std::vector<int>, bool>{{2}, false},
                              {{2, 3}, false},
                              {{0, 3, 5}, false},
                              {{0, 1, 2}, true},
                              {{2, 4, 6}, true}}) {
      const std::vector<int>& doubted = round.first;
      const bool fails = round.second;
      MadeUpHeats heats;
      const Result<DuelResult> r = run_duel(
          {}, {"kernel", {}}, {"rival", {}}, {}, [&](const RaceRequest& request) -> Result<RaceReply> {
            const bool now = std::ranges::find(doubted, heats.heats) != doubted.end();
            Result<RaceReply> reply = heats(request);
            for (size_t i = 0; i < 2; ++i)
              if (now && (request.candidates[i].digest == "rival") == of_rival) {
                reply->candidates[i] = {
                    .outcome = Outcome::kCrashed, .message = "its clock", .doubted = true};
              }
            return reply;
          });
      ASSERT_TRUE(r.is_ok()) << r.message();
      EXPECT_EQ(r->failed.outcome == Outcome::kCrashed, fails);
      if (fails) {
        EXPECT_EQ(r->rival_failed, of_rival);
        EXPECT_EQ(r->failed.message, "its clock");
        EXPECT_EQ(heats.heats, doubted.back() + 1);
      } else {
        EXPECT_EQ(r->missing, "");
        EXPECT_EQ(r->processes, 6) << "what is doubted does not count";
        EXPECT_EQ(heats.heats, 6 + std::ssize(doubted));
        EXPECT_NEAR(r->ratio.value, 1.5, 1e-9);
      }
    }
}

TEST(Duel, TheRatioIsOfPairs) {
  // Both become slower together: the ratio does not.
  const Spread s = ratio_of_pairs({100, 200, 100, 200, 100}, {150, 300, 150, 300, 150});
  EXPECT_NEAR(s.value, 1.5, 1e-9);
  EXPECT_NEAR(s.half_width(), 0, 1e-9);
  EXPECT_EQ(ratio_of_pairs({}, {}).value, 0);
  EXPECT_TRUE(std::isinf(ratio_of_pairs({100}, {150}).high));
}

}  // namespace
}  // namespace tuner
