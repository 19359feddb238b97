// Races in the real runner: finalists timed in turns, failures that cost one of them, and heats until it is
// decided.
#include "measure_server/worker/race.h"

#include <set>

#include "tests/measure_server/candidate_fixture.h"

namespace tuner {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Gt;
using testing::HasSubstr;
using testing::SizeIs;

// A kernel that takes about this long by the CPU's own work, so that a busy machine makes all slower alike.
std::string spinning(int steps) {
  return str("for (volatile int i = 0; i < ", steps, "; ++i); return doubling_right(args);");
}

class RaceTest : public CandidateTest {
 protected:
  RaceRequest race_of(const std::vector<std::string>& kernels) {
    RaceRequest r{.base = request(""), .rounds = 4};
    for (const std::string& body : kernels) r.candidates.push_back({build_kernel(body), {}});
    return r;
  }
  std::vector<RaceEntry> entries_of(const std::vector<std::string>& kernels) {
    std::vector<RaceEntry> entries;
    for (const std::string& body : kernels) {
      RaceEntry& e = entries.emplace_back();
      e.candidate.set_trial_id(str("t", entries.size()));
      e.built.digest = build_kernel(body);
    }
    return entries;
  }
  static Result<RaceReply> heat(const RaceRequest& request) { return runner->race(request); }
};

TEST_F(RaceTest, EveryFinalistHasASampleARoundAndTheSentinelBesideIt) {
  const Result<RaceReply> r = runner->race(race_of({spinning(20'000), spinning(40'000), spinning(40'000)}));
  ASSERT_TRUE(r.is_ok()) << r.message();
  ASSERT_THAT(r->candidates, SizeIs(3));
  for (const RaceReply::Candidate& c : r->candidates) {
    EXPECT_EQ(c.outcome, "ok") << c.message;
    EXPECT_THAT(c.run_ns, SizeIs(4));
    EXPECT_THAT(c.cpu_ns, SizeIs(4));
    EXPECT_THAT(c.sentinel_ns, SizeIs(4));
    EXPECT_THAT(c.run_ns, Each(Gt(0)));
    EXPECT_THAT(c.sentinel_ns, Each(Gt(0)));
    EXPECT_LE(c.max_error, 1);
  }
}

TEST_F(RaceTest, AFinalistThatFailsLeavesTheRaceAndTheOthersGoOn) {
  const Result<RaceReply> r = runner->race(
      race_of({spinning(20'000), "static int calls; if (++calls > 6) abort(); return doubling_right(args);",
               "return 0;"}));
  ASSERT_TRUE(r.is_ok()) << r.message();
  EXPECT_EQ(r->candidates[0].outcome, "ok");
  EXPECT_THAT(r->candidates[0].run_ns, SizeIs(4));
  EXPECT_EQ(r->candidates[1].outcome, "crashed");
  EXPECT_THAT(r->candidates[1].message, HasSubstr("SIGABRT"));
  EXPECT_EQ(r->candidates[2].outcome, "wrong_answer");
  EXPECT_THAT(r->candidates[2].run_ns, SizeIs(0)) << "a wrong kernel has no time";
}

TEST_F(RaceTest, AHangingFinalistEndsAtTheTimeLimit) {
  RaceRequest request = race_of({"for (;;);", spinning(20'000)});
  request.base.run_timeout_s = 1;
  const Result<RaceReply> r = runner->race(request);
  ASSERT_TRUE(r.is_ok()) << r.message();
  EXPECT_EQ(r->candidates[0].outcome, "run_timeout");
}

TEST_F(RaceTest, AMissingArtifactIsTheRunnersTroubleNotTheCandidates) {
  RaceRequest request = race_of({spinning(20'000)});
  request.candidates.push_back({std::string(64, '0'), {}});
  const Result<RaceReply> r = runner->race(request);
  EXPECT_EQ(r.status().code(), StatusCode::kFailed);
  EXPECT_EQ(run_kernel("return doubling_right(args);").outcome, "ok") << "and the runner goes on";
}

TEST_F(RaceTest, HeatsGoOnUntilTheFastestIsCertain) {
  v1::RaceOptions options;
  options.set_processes(8);
  options.set_rounds(3);
  options.set_min_repeat_ms(0.3);
  const std::vector<RaceEntry> entries = entries_of({spinning(60'000), spinning(20'000), spinning(90'000)});
  const Result<v1::RaceResult> r = run_heats(entries, request(""), with_defaults(options), heat);
  ASSERT_TRUE(r.is_ok()) << r.message();
  EXPECT_EQ(r->error(), "");
  EXPECT_EQ(r->winner(), "t2");
  EXPECT_THAT(r->tie_set(), ElementsAre("t2"));
  EXPECT_EQ(r->regret_bound(), 0);
  ASSERT_EQ(r->finalists_size(), 3);
  for (const v1::RaceFinalist& f : r->finalists()) {
    const std::set<int> processes(f.process().begin(), f.process().end());
    EXPECT_GE(processes.size(), 3u) << f.trial_id();
    EXPECT_EQ(f.samples_ns_size(), static_cast<int>(3 * 3 * processes.size()))
        << "three are few: more rounds";
    EXPECT_EQ(f.sentinel_ns_size(), f.samples_ns_size());
  }
  EXPECT_LT(r->finalists(2).samples_ns_size(), r->finalists(1).samples_ns_size());
  EXPECT_LT(r->time_low_ns(), r->time_ns());
  EXPECT_GT(r->time_high_ns(), r->time_ns());
  EXPECT_GT(r->ratio_low(), 0);
}

TEST_F(RaceTest, WithoutAFinalistThatRunsThereIsAReasonInsteadOfAWinner) {
  const Result<v1::RaceResult> r =
      run_heats(entries_of({"abort(); return 0;"}), request(""), with_defaults({}), heat);
  ASSERT_TRUE(r.is_ok()) << r.message();
  EXPECT_THAT(r->error(), HasSubstr("trial t1: crashed"));
  EXPECT_EQ(r->winner(), "");
}

TEST_F(RaceTest, ARunnerThatDiesIsAnErrorForTheCallerToTryAgain) {
  const auto dies = [](const RaceRequest&) -> Result<RaceReply> { return unavailable("the runner died"); };
  EXPECT_EQ(run_heats(entries_of({spinning(1)}), request(""), with_defaults({}), dies).status().code(),
            StatusCode::kUnavailable);
}

}  // namespace
}  // namespace tuner
