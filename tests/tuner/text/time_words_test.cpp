// What is said of a time: certified with its interval and gain, or one trial and why not, never both.
#include "tuner/text/time_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <random>
#include <tuple>

#include "compiler_core/base/percent.h"
#include "tuner/text/facts.h"
#include "tuner/text/format.h"

namespace tuner {
namespace {

using testing::HasSubstr;
using testing::Not;

TunedConfig certified(double time_ns, double low_ns, double high_ns) {
  return {
      .time_ns = time_ns, .time_low_ns = low_ns, .time_high_ns = high_ns, .race_id = 7, .certified = true};
}
TunedConfig uncertified(double time_ns, double low_ns, double high_ns, std::string why) {
  return {
      .time_ns = time_ns, .time_low_ns = low_ns, .time_high_ns = high_ns, .uncertified_why = std::move(why)};
}

TEST(TimeWords, ACertifiedTimeHasIntervalHalfWidthAndGain) {
  TunedConfig t = certified(17970, 17600, 18340);
  t.default_time_ns = 48950;
  t.other_time_ns = 58620;
  const TimeWords words = time_words(t);
  EXPECT_EQ(words.time, "17.97 us (95 %: 17.60 .. 18.34 us)");
  EXPECT_EQ(words.certainty, "certified to +- 2.1 %");
  EXPECT_EQ(words.gain, "2.72 times as fast as the default config (48.95 us, in the same race)");
  EXPECT_EQ(words.other, "58.62 us with constants cold");
  EXPECT_NEAR(tuned_json(t, 0)["gain"].get<double>(), 2.724, 0.001);
}

TEST(TimeWords, AnExactTimeStandsAlone) {
  TunedConfig t = certified(17970, 17970, 17970);
  const TimeWords words = time_words(t);
  EXPECT_EQ(words.time, "17.97 us (exact)");
  EXPECT_EQ(words.certainty, "certified: the device's clock is exact");
  t.finalists = 4, t.tied = 1, t.ratio = t.ratio_low = t.ratio_high = 17970;
  EXPECT_EQ(format_race(t),
            "4 finalists, one winner; at most 0.0 % slower than the fastest; by an exact clock");
}

TEST(TimeWords, ACertifiedTimeWithoutTheDefaultInItsRaceClaimsNoGain) {
  const TimeWords words = time_words(certified(17970, 17600, 18340));
  EXPECT_EQ(words.gain, "not known: the default config was not in the race");
}

// The four that the issue quotes.
TEST(TimeWords, AnUncertifiedTimePrintsNoIntervalBesideAnother) {
  const std::string why = "its 95 % interval is +- 8.8 %, wider than 5.0 %, after 27 processes";
  const TimeWords words = time_words(uncertified(7291, 7222, 37290, why));
  EXPECT_EQ(words.time, "7.291 us in one trial");
  EXPECT_EQ(words.certainty, "not certified: " + why);
  const nlohmann::ordered_json j = tuned_json(uncertified(7291, 7222, 37290, why), 0);
  EXPECT_FALSE(j.contains("time_low_ns"));
  EXPECT_FALSE(j.contains("time_high_ns"));
  EXPECT_EQ(j["uncertified_why"], why);
}

TEST(TimeWords, ANarrowTrialBesideAWideRaceIsNoContradictionEither) {
  const TimeWords words = time_words(
      uncertified(38700, 38590, 38830, "the race knows the time of its fastest only to +- 70.5 %"));
  EXPECT_EQ(words.time, "38.70 us in one trial");
  EXPECT_EQ(words.certainty, "not certified: the race knows the time of its fastest only to +- 70.5 %");
  EXPECT_THAT(words.time, Not(HasSubstr("38.59")));
}

TEST(TimeWords, AWidthBeyondTheLimitIsPrintedAsBeyondIt) {
  EXPECT_EQ(percent_beside(0.0502, kCertifiedHalfWidth), "5.02 %");
  EXPECT_EQ(percent_beside(0.05003, kCertifiedHalfWidth), "5.003 %");
  // And one that is not stays on its side.
  EXPECT_EQ(time_words(certified(1000, 950.01, 1050)).certainty, "certified to +- 5.0 %");
}

TEST(TimeWords, AnUncertifiedTimeClaimsNoGain) {
  TunedConfig t = uncertified(7291, 7222, 37290, "the machine is too disturbed");
  t.default_time_ns = 27706;  // 3.80 times as long
  EXPECT_EQ(claimed_gain(t), 0);
  EXPECT_EQ(time_words(t).gain,
            "not claimed, because the time is not certified (default config: 27.71 us in one trial)");
  EXPECT_FALSE(tuned_json(t, 0).contains("gain"));
  EXPECT_EQ(tuned_json(t, 0)["default_time_ns"], 27706);
  t.default_time_ns = 0;
  EXPECT_EQ(time_words(t).gain, "not claimed, because the time is not certified");
}

// A reader who computes the half-width from the interval as it is printed finds the one that is printed.
TEST(TimeWords, HalfWidthAndIntervalAreOfOneRounding) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> log_ns(0, 9), half(0.001, 0.0499);
  for (int i = 0; i < 1000; ++i) {
    const double ns = std::pow(10, log_ns(random)), h = half(random);
    const TimeWords words = time_words(certified(ns, ns * (1 - h), ns * (1 + h)));
    double time = 0, low = 0, high = 0, width = 0;
    char unit[8];
    ASSERT_EQ(std::sscanf(words.time.c_str(), "%lf %2s (95 %%: %lf .. %lf", &time, unit, &low, &high), 4)
        << words.time;
    ASSERT_EQ(std::sscanf(words.certainty.c_str(), "certified to +- %lf", &width), 1) << words.certainty;
    EXPECT_NEAR(width, 100 * (high - low) / 2 / time, 0.11) << words.time << "; " << words.certainty;
  }
}

TEST(FormatTime, FourDigitsInTheUnitThatFits) {
  EXPECT_EQ(format_time(0.5), "0.500 ns");
  EXPECT_EQ(format_time(812), "812.0 ns");
  EXPECT_EQ(format_time(1234), "1.234 us");
  EXPECT_EQ(format_time(56.78e6), "56.78 ms");
  EXPECT_EQ(format_time(2.345e9), "2.345 s");
  EXPECT_EQ(format_time(7.2e12), "7200 s");
  // What rounds up to the next unit is of the next unit.
  EXPECT_EQ(format_time(999.94), "999.9 ns");
  EXPECT_EQ(format_time(999.96), "1.000 us");
  EXPECT_EQ(format_time(999'960), "1.000 ms");
  EXPECT_EQ(format_time(9.9996), "10.00 ns");
  EXPECT_EQ(format_time(99'996), "100.0 us");
  // An interval is in the unit of its time.
  EXPECT_EQ(format_time(1000, 900, 1'200'000), "1.000 us (95 %: 0.900 .. 1200 us)");
}

TEST(FormatRace, SaysHowItWasWonAndWhatItRestsOn) {
  TunedConfig t;
  EXPECT_EQ(format_race(t), "none that decides: the time is that of one trial");
  t.race_id = 4, t.finalists = 9, t.tied = 3, t.won_by = WonBy::kSmallest;
  t.regret_bound = 0.004, t.turns = 310, t.discarded = 12;
  t.ratio = 2.135, t.ratio_low = 2.118, t.ratio_high = 2.152;
  EXPECT_EQ(
      format_race(t),
      "9 finalists, 3 tie: the smallest code won the tie; at most 0.4 % slower than the fastest; 12 of 310 "
      "turns disturbed and taken anew; 2.135 x pulse (95 %: 2.118 .. 2.152)");
  t.finalists = t.tied = 1, t.turns = 0;
  EXPECT_EQ(
      format_race(t),
      "1 finalist, one winner; at most 0.4 % slower than the fastest; 2.135 x pulse (95 %: 2.118 .. 2.152)");
  const std::tuple<WonBy, int, const char*> ties[] = {{WonBy::kStored, 2, "the stored answer stays"},
                                                      {WonBy::kStored, 1, "the stored answer won"},
                                                      {WonBy::kDefault, 2, "the default config won the tie"},
                                                      {WonBy::kOrder, 2, "the first by name won the tie"},
                                                      {WonBy::kFastest, 2, "the fastest won"},
                                                      {WonBy::kFastest, 1, ""}};
  for (const auto& [won_by, tied, says] : ties) {
    t.won_by = won_by, t.tied = tied;
    EXPECT_EQ(format_tie(t), says);
  }
}

TEST(FormatDay, IsInUtcWithMicrosecondsForPrograms) {
  EXPECT_EQ(format_utc(1'700'000'000'123'456), "2023-11-14 22:13:20 UTC");
  EXPECT_EQ(iso_utc(1'700'000'000'123'456), "2023-11-14T22:13:20.123456Z");
  EXPECT_EQ(format_utc(0), "-");
  EXPECT_EQ(iso_utc(0), "");
  EXPECT_EQ(format_outcomes({{Outcome::kOk, 118}, {Outcome::kBuildError, 6}}), "118 ok, 6 build_error");
  EXPECT_EQ(format_outcomes({}), "none");
}

TEST(TunedJson, NamesTheOtherTimeByItsConstantsAndTheTrialByItsName) {
  TunedConfig t = certified(100, 99, 101);
  t.other_time_ns = 250, t.trial_id = "t812", t.trial_name = "j3.17";
  nlohmann::ordered_json j = tuned_json(t, 0);
  EXPECT_EQ(j["constants"], "warm");
  EXPECT_EQ(j["cold_time_ns"], 250);
  EXPECT_FALSE(j.contains("warm_time_ns"));
  EXPECT_EQ(j["half_width"], 0.01);
  EXPECT_EQ(j["trial"], "j3.17");
  t.constants = Constants::kCold, t.trial_name = "";
  j = tuned_json(t, 0);
  EXPECT_EQ(j["constants"], "cold");
  EXPECT_EQ(j["warm_time_ns"], 250);
  EXPECT_EQ(j["trial"], "t812");
}

constexpr char kPadded[] =
    "v1 conv2d n=1 ic=64 ih=14 iw=14 oc=64 kh=3 kw=3 stride=1,1 pad=1,1,1,1 dil=1,1 groups=1 bias=0 act=none "
    "dtype=float32 layout=NCHW const=weight";
constexpr char kPlain[] =
    "v1 matmul b=1 m=128 n=128 k=128 ta=0 tb=0 bias=0 act=none dtype=float32 const=none";

Workload workload_of(const char* key) { return workload_from_key(key).value(); }

// 804.2 GFLOP/s of a peak of 272.3 was called 267.8 %, because the share leaves out the products with
// padding.
TEST(SpeedText, SharesAreThoseOfThePrintedNumbers) {
  const TunedConfig t{.target = "llvm -mcpu=znver5 -threads=1",
                      .template_name = "conv2d_winograd5_cpu",
                      .time_ns = 17970,
                      .read_gbps = 250,
                      .peak_gflops = 272.3};
  double speed = 0, without = 0, share = 0, peak = 0;
  const std::string padded = format_speed(workload_of(kPadded), t);
  ASSERT_EQ(std::sscanf(padded.c_str(),
                        "%lf GFLOP/s, %lf without padding (%lf %% of the vector unit's peak of %lf)", &speed,
                        &without, &share, &peak),
            4)
      << padded;
  EXPECT_NEAR(speed, 804.2, 0.1);
  EXPECT_LT(without, speed);
  EXPECT_NEAR(share, 100 * without / peak, 0.051) << padded;
  double times = 0, bound_us = 0;
  const std::string roofline = format_roofline(workload_of(kPadded), t);
  ASSERT_EQ(std::sscanf(roofline.c_str(), "%lfx the roofline of direct sums (%lf us)", &times, &bound_us), 2)
      << roofline;
  EXPECT_NEAR(times, bound_us / 17.97, 0.006) << roofline;

  TunedConfig direct = t;
  direct.template_name = "matmul_cpu";
  const std::string plain = format_speed(workload_of(kPlain), direct);
  ASSERT_EQ(std::sscanf(plain.c_str(), "%lf GFLOP/s (%lf %% of the vector unit's peak of %lf)", &speed,
                        &share, &peak),
            3)
      << plain;
  EXPECT_NEAR(share, 100 * speed / peak, 0.051) << plain;
  const std::string bound = format_roofline(workload_of(kPlain), direct);
  ASSERT_EQ(std::sscanf(bound.c_str(), "%lf %% of the roofline (%lf us)", &share, &bound_us), 2) << bound;
  EXPECT_NEAR(share, 100 * bound_us / 17.97, 0.6) << bound;

  const nlohmann::ordered_json j = tuned_json(
      [&] {
        TunedConfig named = t;
        named.workload_key = kPadded;
        return named;
      }(),
      workload_of(kPadded).flops());
  EXPECT_NEAR(j["percent_of_peak"].get<double>(),
              100 * j["gflops_without_padding"].get<double>() / j["peak_gflops"].get<double>(), 1e-9);
}

}  // namespace
}  // namespace tuner
