// Signals that others send: to the runner, the keeper of namespaces and candidates. A candidate is judged by
// what it did itself.
#include <signal.h>

#include <atomic>
#include <optional>

#include "tests/measure_server/hostile_fixture.h"
#include "tests/support/process_tree.h"
#include "tests/support/wait_until.h"

namespace tuner {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using testing::StartsWith;

constexpr int kAsking[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

class OutsideSignals : public HostileTest, public testing::WithParamInterface<Isolation> {
 protected:
  Isolation level() const override { return GetParam(); }

  // Waits for a process of the runner with this name.
  static std::optional<pid_t> find(const std::string& name) {
    std::optional<pid_t> found;
    wait_until(
        seconds(20),
        [&] {
          for (const pid_t pid : children_of(runner->pid()))
            if (name_of_process(pid) == name) found = pid;
          return found.has_value();
        },
        milliseconds(1));
    return found;
  }
  // Runs a candidate, and `meanwhile` once it is there.
  RunReply run_and(const std::string& body, const std::function<void(pid_t candidate)>& meanwhile) {
    const RunRequest q = request(build_kernel(body));
    std::thread other([&] {
      if (const std::optional<pid_t> candidate = find("candidate"))
        meanwhile(*candidate);
      else
        ADD_FAILURE() << "no candidate came";
    });
    const RunReply reply = run(q);
    other.join();
    return reply;
  }
};

INSTANTIATE_TEST_SUITE_P(Level, OutsideSignals,
                         testing::Values(Isolation::kNone, Isolation::kProcess, Isolation::kStrict),
                         [](const auto& info) { return std::string(isolation_name(info.param)); });

// Half a second in which signals arrive; sleep() would end at the first.
constexpr const char* kSlow = R"(
  static int calls;
  if (!calls++) {
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    do clock_gettime(CLOCK_MONOTONIC, &b);
    while ((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 < 500);
  }
  return doubling_right(args);)";

TEST_P(OutsideSignals, WhatAsksAllProcessesOfAJobToEndReachesNeitherRunnerNorCandidate) {
  const RunReply r = run_and(kSlow, [](pid_t candidate) {
    for (const int signal : kAsking) {
      for (const pid_t pid : children_of(runner->pid())) ::kill(pid, signal);
      ::kill(runner->pid(), signal);
      let_pass(milliseconds(20));
    }
    EXPECT_EQ(::kill(candidate, 0), 0) << "the same candidate goes on";
  });
  EXPECT_EQ(r.outcome, Outcome::kOk) << r.message;
}

TEST_P(OutsideSignals, ACandidateThatSomebodyKillsOnceRunsAgain) {
  const RunReply r = run_and(kSlow, [](pid_t candidate) { ::kill(candidate, SIGKILL); });
  EXPECT_EQ(r.outcome, Outcome::kOk) << r.message;
}

// It has made itself deaf to what we do for it.
TEST_P(OutsideSignals, ACandidateWithTheUsualHandlersThatSomebodyTerminatesOnceRunsAgain) {
  const RunReply r = run_and(str("signal(SIGTERM, SIG_DFL);", kSlow), [](pid_t candidate) {
    let_pass(milliseconds(200));
    ::kill(candidate, SIGTERM);
  });
  EXPECT_EQ(r.outcome, Outcome::kOk) << r.message;
}

TEST_P(OutsideSignals, ASignalThatACandidateSendsItselfIsItsOwn) {
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGKILL}) {
    const auto begin = steady_clock::now();
    const RunReply r = run_kernel(str("raise(", signal, "); for (;;) pause();"));
    EXPECT_EQ(r.outcome, Outcome::kCrashed) << r.message;
    EXPECT_THAT(r.message, StartsWith(str("signal ", signal, " (")));
    EXPECT_LT(steady_clock::now() - begin, seconds(10)) << "tried a few times, not for ever";
  }
}

TEST_P(OutsideSignals, AKeeperThatSomebodyKillsIsReplaced) {
  if (level() != Isolation::kStrict) GTEST_SKIP() << "no keeper at this level";
  const std::optional<pid_t> first = find("jail-keeper");
  ASSERT_TRUE(first);
  const RunReply r = run_and(kSlow, [&](pid_t) { ::kill(*first, SIGKILL); });
  EXPECT_EQ(r.outcome, Outcome::kOk) << r.message;
  EXPECT_EQ(r.isolation, "strict");
  const std::optional<pid_t> second = find("jail-keeper");
  ASSERT_TRUE(second);
  EXPECT_NE(*second, *first);
  // And between two candidates.
  ::kill(*second, SIGKILL);
  EXPECT_EQ(run_kernel("return doubling_right(args);").outcome, Outcome::kOk);
}

TEST_P(OutsideSignals, AFinalistThatSomebodyKillsOnceRacesAgain) {
  RaceRequest race;
  race.base = request("");
  race.rounds = 3;
  race.samples = 3;
  for (int i = 0; i < 2; ++i) race.candidates.push_back({build_kernel(str("/*", i, "*/", kSlow)), {}});
  std::thread killer([] {
    if (const std::optional<pid_t> candidate = find("candidate")) {
      let_pass(milliseconds(100));
      ::kill(*candidate, SIGKILL);
    }
  });
  const Result<RaceReply> r = runner->race(race);
  killer.join();
  ASSERT_TRUE(r.is_ok()) << r.message();
  for (const RaceReply::Candidate& c : r->candidates) EXPECT_EQ(c.outcome, Outcome::kOk) << c.message;
}

}  // namespace
}  // namespace tuner
