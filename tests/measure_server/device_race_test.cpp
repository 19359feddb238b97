// Races of GPU candidates in the real runner, on a driver of ours: whose turn it is, in which context, what
// somebody else on the device costs, and what a finalist that fails costs the others.
#include <set>

#include "measure_server/worker/race.h"
#include "tests/measure_server/device_fixture.h"

namespace tuner {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Gt;
using testing::HasSubstr;
using testing::SizeIs;

constexpr double kPulseNs = 70'000;  // of the fake driver, when it is calm

class DeviceRace : public DeviceTest {
 protected:
  static void SetUpTestSuite() {
    names = std::filesystem::temp_directory_path() / str("device_race_", getpid());
    std::filesystem::create_directories(names);
    setenv("TUNER_FAKE_CUDA_TURNS", (names / "turns").c_str(), 1);
    setenv("TUNER_FAKE_CUDA_BUSY", (names / "busy").c_str(), 1);
    DeviceTest::SetUpTestSuite();
  }
  static void TearDownTestSuite() {
    DeviceTest::TearDownTestSuite();
    std::filesystem::remove_all(names);
  }
  void SetUp() override {
    DeviceTest::SetUp();
    std::filesystem::remove(names / "turns");
  }
  void TearDown() override {
    std::filesystem::remove(names / "busy");
    DeviceTest::TearDown();
  }

  // Kernels a, b, c, ... that behave so, in artifacts.
  std::vector<std::string> digests_of(const std::vector<std::string>& behaviours,
                                      Manifest manifest = device_manifest()) {
    std::vector<std::string> digests;
    for (const std::string& behaviour : behaviours) {
      const std::string name(1, static_cast<char>('a' + digests.size()));
      manifest.launches[0].kernel = name;
      const Result<std::string> digest =
          save_artifact({manifest, str("FAKECUBIN\nkernel ", name, " ", behaviour, " n=", kCount, "\n")},
                        (dir_ / "artifacts").string());
      EXPECT_TRUE(digest.is_ok()) << digest.message();
      digests.push_back(digest.is_ok() ? *digest : "");
    }
    return digests;
  }
  RunRequest base() {
    RunRequest r = request("");
    r.min_repeat_ms = 0.1;
    return r;
  }
  RaceRequest race_of(const std::vector<std::string>& behaviours, Manifest manifest = device_manifest()) {
    RaceRequest r{.base = base(), .rounds = 3};
    for (const std::string& digest : digests_of(behaviours, std::move(manifest)))
      r.candidates.push_back({digest, {}});
    return r;
  }
  static RaceReply race(const RaceRequest& request) {
    const Result<RaceReply> r = runner->race(request);
    EXPECT_TRUE(r.is_ok()) << r.message();
    return r.is_ok() ? *r
                     : RaceReply{.candidates = std::vector<RaceReply::Candidate>(request.candidates.size())};
  }
  // Somebody else has half of the device for so many pulses.
  static void be_busy(int pulses) { std::ofstream(names / "busy") << pulses << "\n"; }

  // Whose kernels ran, one after the other.
  static std::string turns() {
    std::ifstream in(names / "turns");
    std::string all;
    for (std::string name; in >> name;) all += name;
    return all;
  }

  inline static std::filesystem::path names;
};

TEST_F(DeviceRace, FinalistsTakeTurnsInAFreshContext) {
  const int before = contexts();
  const RaceReply r = race(race_of({"doubling ns=7000", "doubling ns=2000", "doubling ns=90000"}));
  EXPECT_EQ(contexts(), before + 1) << "one for the heat, not the one that trials had";
  EXPECT_EQ(turns(),
            "abc"  // loaded, run once
            "abc"  // round by round, another one first
            "bca"
            "cab"
            "abc")  // run once more
      << "in one round after the other";
  const double ns[] = {7000, 2000, 90'000};
  for (size_t i = 0; i < 3; ++i) {
    const RaceReply::Candidate& c = r.candidates[i];
    EXPECT_EQ(c.outcome, Outcome::kOk) << c.message;
    EXPECT_THAT(c.run_ns, SizeIs(3 * 3)) << "three samples a turn";
    EXPECT_THAT(c.run_ns, Each(testing::DoubleNear(ns[i], 1)));
    EXPECT_THAT(c.cpu_ns, SizeIs(3 * 3));
    EXPECT_THAT(c.sentinel_ns, SizeIs(3 * 3));
    EXPECT_THAT(c.sentinel_ns, Each(testing::DoubleNear(kPulseNs, 10))) << "pulses stand beside the samples";
    EXPECT_THAT(c.memory_ns, SizeIs(3 * 3));
    EXPECT_THAT(c.memory_ns, Each(Gt(0)));
    EXPECT_THAT(c.other_ns, SizeIs(0));
    EXPECT_EQ(c.turns, 3);
    EXPECT_EQ(c.discarded, 0);
    EXPECT_EQ(c.disturbed, 0);
    EXPECT_NEAR(c.pulse_ns, kPulseNs, 10);
    EXPECT_LE(c.max_error, 1);
  }
  race(race_of({"doubling", "doubling ns=2000"}));
  EXPECT_EQ(contexts(), before + 2) << "each heat has its own";
}

TEST_F(DeviceRace, ATurnBesideSomebodyElseIsTakenAnew) {
  RaceRequest request = race_of({"doubling ns=7000", "doubling ns=2000"});
  request.base.calm_pulse_ns = kPulseNs;
  be_busy(3);
  const RaceReply r = race(request);
  EXPECT_EQ(r.candidates[0].discarded, 1);
  EXPECT_EQ(r.candidates[0].turns, 4);
  EXPECT_EQ(r.candidates[0].disturbed, 0);
  EXPECT_THAT(r.candidates[0].run_ns, SizeIs(3 * 3));
  EXPECT_THAT(r.candidates[0].run_ns, Each(testing::DoubleNear(7000, 1))) << "nothing of him is in it";
  EXPECT_EQ(r.candidates[1].discarded, 0);
}

TEST_F(DeviceRace, BesideSomebodyWhoStaysTurnsCountAndAreSaidToBeDisturbed) {
  RaceRequest request = race_of({"doubling ns=7000"});
  request.base.calm_pulse_ns = kPulseNs;
  be_busy(1'000'000);
  const RaceReply r = race(request);
  EXPECT_EQ(r.candidates[0].outcome, Outcome::kOk);
  EXPECT_EQ(r.candidates[0].disturbed, 3);
  EXPECT_GT(r.candidates[0].discarded, 0);
  EXPECT_THAT(r.candidates[0].run_ns, Each(testing::DoubleNear(14'000, 1)));
  EXPECT_THAT(r.candidates[0].sentinel_ns, Each(testing::DoubleNear(2 * kPulseNs, 10)));
}

TEST_F(DeviceRace, ACopyThatTakesTooLongDisturbsATurnToo) {
  RaceRequest request = race_of({"doubling ns=7000"});
  request.memory_disturbed_above_ns = 1;  // no copy is as fast as that
  EXPECT_EQ(race(request).candidates[0].disturbed, 3);
}

TEST_F(DeviceRace, WhereTheDriverTakesNoPtxTheCopyStandsBesideTheTimes) {
  setenv("TUNER_FAKE_CUDA_NO_PTX", "1", 1);
  const Result<std::unique_ptr<RunnerClient>> other = RunnerClient::start(TUNER_RUNNER_PATH);
  unsetenv("TUNER_FAKE_CUDA_NO_PTX");
  ASSERT_TRUE(other.is_ok()) << other.message();
  const Result<RaceReply> r = (*other)->race(race_of({"doubling ns=7000"}));
  ASSERT_TRUE(r.is_ok()) << r.message();
  const RaceReply::Candidate& c = r->candidates[0];
  EXPECT_EQ(c.outcome, Outcome::kOk) << c.message;
  EXPECT_THAT(c.sentinel_ns, SizeIs(3 * 3));
  EXPECT_EQ(c.sentinel_ns, c.memory_ns);
  EXPECT_EQ(c.pulse_ns, 0);
}

// --- finalists that fail ---

TEST_F(DeviceRace, AWrongAnswerLeavesAndTheOthersStayInTheirContext) {
  const int before = contexts();
  const RaceReply r = race(race_of({"doubling", "wrong", "wrong after=40"}));
  EXPECT_EQ(r.candidates[0].outcome, Outcome::kOk);
  EXPECT_THAT(r.candidates[0].run_ns, SizeIs(3 * 3));
  EXPECT_EQ(r.candidates[1].outcome, Outcome::kWrongAnswer);
  EXPECT_EQ(r.candidates[2].outcome, Outcome::kWrongAnswer) << "seen in its last run";
  EXPECT_THAT(r.candidates[2].run_ns, SizeIs(0)) << "a wrong kernel has no time";
  EXPECT_EQ(contexts(), before + 1);
}

TEST_F(DeviceRace, AfterAFaultTheOthersBeginAnewInAFreshContext) {
  const int before = contexts();
  const RaceReply r = race(race_of({"doubling ns=7000", "illegal_address after=60", "doubling ns=2000"}));
  EXPECT_EQ(r.candidates[1].outcome, Outcome::kCrashed);
  EXPECT_THAT(r.candidates[1].message, HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
  for (const size_t i : {0, 2}) {
    EXPECT_EQ(r.candidates[i].outcome, Outcome::kOk) << r.candidates[i].message;
    EXPECT_THAT(r.candidates[i].run_ns, SizeIs(3 * 3));
  }
  EXPECT_EQ(contexts(), before + 2);
}

TEST_F(DeviceRace, AHangingFinalistEndsAtItsShareOfTheTime) {
  RaceRequest request = race_of({"doubling", "hang after=3"});
  request.base.run_timeout_s = 4;
  const RaceReply r = race(request);
  EXPECT_EQ(r.candidates[0].outcome, Outcome::kOk) << r.candidates[0].message;
  EXPECT_EQ(r.candidates[1].outcome, Outcome::kRunTimeout);
  EXPECT_EQ(r.candidates[1].message, "still running after 2 s while being timed");
}

TEST_F(DeviceRace, WhoseOperandsDoNotFitBesideTheOthersLeaves) {
  Manifest m = device_manifest();
  m.workspaces = {int64_t{90} << 20};  // the device has 256 MiB, of which the bench takes 32
  const RaceReply r = race(race_of({"doubling", "doubling ns=2000", "doubling ns=3000"}, m));
  EXPECT_EQ(r.candidates[0].outcome, Outcome::kOk) << r.candidates[0].message;
  EXPECT_EQ(r.candidates[1].outcome, Outcome::kOk) << r.candidates[1].message;
  EXPECT_EQ(r.candidates[2].outcome, Outcome::kOutOfMemory);
}

TEST_F(DeviceRace, ADeviceThatFailsIsNoVerdict) {
  const Result<RaceReply> r = runner->race(race_of({"doubling", "memory_error"}));
  EXPECT_EQ(r.status().code(), StatusCode::kUnavailable) << r.message();
  EXPECT_THAT(r.message(), HasSubstr("CUDA_ERROR_ECC_UNCORRECTABLE"));
}

TEST_F(DeviceRace, AMissingDataFileIsTheRunnersTrouble) {
  RaceRequest request = race_of({"doubling"});
  request.base.inputs[0].path = (dir_ / "not_there").string();
  const Result<RaceReply> r = runner->race(request);
  EXPECT_EQ(r.status().code(), StatusCode::kFailed);
  EXPECT_THAT(r.message(), HasSubstr("not_there: cannot be read"));
}

// --- heats, with the statistics of CPU races ---

TEST_F(DeviceRace, HeatsInFreshContextsEndInACertifiedWinnerAndItsInterval) {
  std::vector<RaceEntry> entries;
  for (const std::string& digest : digests_of({"doubling ns=2100", "doubling ns=2000", "doubling ns=9000"})) {
    RaceEntry& e = entries.emplace_back();
    e.candidate.set_trial_id(str("t", entries.size()));
    e.built.digest = digest;
  }
  v1::RaceOptions options;
  options.set_min_repeat_ms(0.1);
  const int before = contexts();
  const Result<v1::RaceResult> r = run_heats(entries, {.default_trial = "t3"}, base(), with_defaults(options),
                                             [](const RaceRequest& heat) { return runner->race(heat); });
  ASSERT_TRUE(r.is_ok()) << r.message();
  EXPECT_TRUE(r->certified()) << r->uncertified_why();
  EXPECT_EQ(r->winner(), "t2");
  EXPECT_THAT(r->tie_set(), ElementsAre("t2"));
  EXPECT_NEAR(r->time_ns(), 2000, 1);
  EXPECT_LT(r->time_low_ns(), 2000);
  EXPECT_GT(r->time_high_ns(), 2000);
  EXPECT_NEAR(r->ratio(), 2000 / kPulseNs, 1e-3);
  EXPECT_EQ(r->default_trial(), "t3");
  EXPECT_NEAR(r->default_time_ns(), 9000, 1);
  const std::set<int> heats(r->finalists(1).process().begin(), r->finalists(1).process().end());
  EXPECT_THAT(heats, SizeIs(6)) << "as many as make an interval";
  EXPECT_EQ(contexts(), before + 6) << "each in a context of its own";
}

}  // namespace
}  // namespace tuner
