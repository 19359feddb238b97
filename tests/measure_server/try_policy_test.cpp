// How often a measurement is tried again, when, and how patiently it then waits: told what came of each try.
#include "measure_server/worker/try_policy.h"

#include <gtest/gtest.h>

#include <vector>

#include "measure_server/runner/device_lock.h"

namespace tuner {
namespace {

using Verdict = TryPolicy::Verdict;
using std::chrono::seconds;

// Nine samples of 100 ns, of which so many were disturbed.
RunReply timed(int disturbed = 0) {
  RunReply reply;
  reply.outcome = Outcome::kOk;
  reply.run_ns = std::vector<double>(9, 100.0);
  reply.disturbed = disturbed;
  return reply;
}

Result<RunReply> failed_with(StatusCode code, const std::string& why = "why") { return Status(code, why); }

Verdict after(TryPolicy& tries, const Result<RunReply>& reply) { return tries.after(reply, false, 0); }

// Tries until the policy has none left; returns how many there were.
int tries_of(TryPolicy& tries, StatusCode code) {
  int n = 0;
  for (; tries.may_try() && n < 100; ++n) EXPECT_EQ(after(tries, failed_with(code)), Verdict::kFailed);
  return n;
}

TEST(TryPolicy, WhatTheRunnerAnsweredStands) {
  TryPolicy tries(/*on_device=*/false, 0);
  EXPECT_TRUE(tries.may_try());
  EXPECT_EQ(after(tries, timed()), Verdict::kStands);
  RunReply crashed;
  crashed.outcome = Outcome::kCrashed;
  crashed.disturbed = 9;
  EXPECT_EQ(after(tries, crashed), Verdict::kStands);
  EXPECT_EQ(tries.discarded(), 0);
}

TEST(TryPolicy, WhatWouldEndTheSameWayStands) {
  for (const bool on_device : {false, true}) {
    TryPolicy tries(on_device, 0);
    EXPECT_EQ(after(tries, failed_with(StatusCode::kAborted)), Verdict::kStands) << "revoked";
    EXPECT_EQ(after(tries, failed_with(StatusCode::kInvalidArgument)), Verdict::kStands) << "refused";
    EXPECT_EQ(after(tries, failed_with(StatusCode::kUnavailable, str(kDeviceBusy, "by another"))),
              Verdict::kStands);
  }
}

TEST(TryPolicy, AFailureThatSaysNothingOfTheCandidateIsTriedThreeTimesAndFourOnADevice) {
  TryPolicy on_cpu(false, 0), on_device(true, 0);
  EXPECT_EQ(tries_of(on_cpu, StatusCode::kUnavailable), 3);
  EXPECT_EQ(tries_of(on_device, StatusCode::kUnavailable), 4);
}

TEST(TryPolicy, DataThatIsNotThereTakesATry) {
  TryPolicy tries(false, 0);
  tries.failed_before_run();
  tries.failed_before_run();
  EXPECT_TRUE(tries.may_try());
  tries.failed_before_run();
  EXPECT_FALSE(tries.may_try());
}

TEST(TryPolicy, ASickDeviceIsAskedAgainAfterTwoFourAndEightSeconds) {
  TryPolicy tries(true, 0);
  EXPECT_EQ(tries.wait(), seconds(0));
  for (const int wait_s : {2, 4, 8}) {
    after(tries, failed_with(StatusCode::kUnavailable));
    EXPECT_EQ(tries.wait(), seconds(wait_s));
  }
}

TEST(TryPolicy, NothingElseWaits) {
  TryPolicy on_cpu(false, 0), on_device(true, 0);
  after(on_cpu, failed_with(StatusCode::kUnavailable));
  EXPECT_EQ(on_cpu.wait(), seconds(0)) << "a runner that died is back at once";
  after(on_device, failed_with(StatusCode::kInternal));
  EXPECT_EQ(on_device.wait(), seconds(0));
  after(on_device, failed_with(StatusCode::kUnavailable));
  after(on_device, failed_with(StatusCode::kInternal));
  EXPECT_EQ(on_device.wait(), seconds(0)) << "the device answered";
}

TEST(TryPolicy, ARunThatStayedDisturbedIsThrownAwayOnce) {
  TryPolicy tries(false, 0);
  EXPECT_EQ(after(tries, timed(5)), Verdict::kDisturbed) << "most of nine samples";
  EXPECT_EQ(tries.discarded(), 1);
  EXPECT_TRUE(tries.may_try());
  EXPECT_EQ(after(tries, timed(5)), Verdict::kStands);
  EXPECT_EQ(tries.discarded(), 1);
  EXPECT_EQ(tries.disturbed_in_a_row(), 2);
}

TEST(TryPolicy, ARunIsDisturbedByMostOfItsSamplesOrByTheMemoryBesideIt) {
  TryPolicy few(false, 0), memory(false, 0);
  EXPECT_EQ(after(few, timed(4)), Verdict::kStands);
  EXPECT_EQ(memory.after(timed(0), /*memory_disturbed=*/true, 0), Verdict::kDisturbed);
}

TEST(TryPolicy, ARunOnADeviceIsNotThrownAway) {
  TryPolicy tries(true, 0);
  EXPECT_EQ(tries.after(timed(9), true, 0), Verdict::kStands);
  EXPECT_EQ(tries.disturbed_in_a_row(), 0);
}

TEST(TryPolicy, ARunThatIsSlowerThanTheBestInAnyCaseStands) {
  TryPolicy against_best(false, 0), cut(false, 0);
  EXPECT_EQ(against_best.after(timed(9), false, /*best_ns=*/10), Verdict::kStands) << "ten times as slow";
  RunReply stopped = timed(9);
  stopped.cut = true;
  EXPECT_EQ(after(cut, stopped), Verdict::kStands);
}

TEST(TryPolicy, AFailureDoesNotUseUpTheTryOfADisturbedRun) {
  TryPolicy tries(false, 0);
  EXPECT_EQ(after(tries, failed_with(StatusCode::kUnavailable)), Verdict::kFailed);
  EXPECT_EQ(after(tries, timed(9)), Verdict::kDisturbed);
  EXPECT_EQ(tries_of(tries, StatusCode::kUnavailable), 2);
}

// Six measurements in a row were disturbed, each of them in its last try.
TEST(TryPolicy, OnAMachineThatStaysDisturbedRunsStandAndDoNotWait) {
  TryPolicy sixth(false, 5), seventh(false, 6), after_seven(false, 7);
  EXPECT_EQ(after(sixth, timed(9)), Verdict::kDisturbed);
  EXPECT_EQ(after(seventh, timed(9)), Verdict::kStands);
  EXPECT_EQ(sixth.patience_ms(50), 50);
  EXPECT_EQ(after_seven.patience_ms(50), 10);
  EXPECT_EQ(after_seven.patience_ms(3), 3) << "never more than was asked";
}

TEST(TryPolicy, OneCalmRunEndsTheRow) {
  TryPolicy tries(false, 20);
  after(tries, timed(0));
  EXPECT_EQ(tries.disturbed_in_a_row(), 0);
  EXPECT_EQ(tries.patience_ms(50), 50);
  EXPECT_EQ(after(tries, timed(9)), Verdict::kDisturbed);
}

}  // namespace
}  // namespace tuner
