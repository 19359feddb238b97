// The daemon's own values as messages, and back.
#include "tuner/daemon/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tuner {
namespace {

using testing::HasSubstr;

const JobRow::Task kTask{.workload_key = "v1 work", .target = "llvm -mcpu=haswell -threads=1"};

TEST(Messages, ATrialsLeaseHasWhatItsWorkerMustKnow) {
  v1::Lease lease;
  to_proto(LeaseTable::Trial{.id = "t7",
                             .job_id = "j1",
                             .work = {.task = kTask,
                                      .options = {.repeats = 5, .constants = Constants::kCold},
                                      .template_name = "matmul_cpu",
                                      .config = "tile_m=8",
                                      .template_version = 3},
                             .attempt = 2,
                             .fencing = 91},
           &lease);
  EXPECT_EQ(lease.trial_id(), "t7");
  EXPECT_EQ(lease.attempt(), 2);
  EXPECT_EQ(lease.fencing(), 91);
  EXPECT_EQ(lease.workload_key(), kTask.workload_key);
  EXPECT_EQ(lease.target(), kTask.target);
  EXPECT_EQ(lease.template_name(), "matmul_cpu");
  EXPECT_EQ(lease.template_version(), 3);
  EXPECT_EQ(lease.config(), "tile_m=8");
  EXPECT_EQ(lease.options().repeats(), 5);
  EXPECT_EQ(lease.options().constants(), "cold");
  EXPECT_EQ(lease.input_seed(), 1u);
  EXPECT_FALSE(lease.has_race());
}

// A remeasurement says itself where constants are to lie, whatever its task's times mean.
TEST(Messages, ARacesLeaseNamesItsFinalistsAndWhereConstantsLie) {
  Work work{.kind = WorkKind::kRace,
            .task = kTask,
            .race = {.processes = 5, .constants = Constants::kCold},
            .finalists = {{.id = "t1", .template_name = "a", .template_version = 2, .config = "x=1"},
                          {.id = "t2", .template_name = "b", .template_version = 4, .config = "y=2"}},
            .default_trial_id = "t2"};
  work.options.constants = work.race.constants;
  v1::Lease lease;
  to_proto(LeaseTable::Trial{.id = "race", .job_id = "j1", .work = work, .attempt = 1, .fencing = 1}, &lease);
  EXPECT_EQ(lease.trial_id(), "race");
  EXPECT_EQ(lease.options().constants(), "cold");
  EXPECT_EQ(lease.race().processes(), 5);
  EXPECT_EQ(lease.race().constants(), "cold");
  EXPECT_EQ(lease.default_trial(), "t2");
  ASSERT_EQ(lease.finalists_size(), 2);
  EXPECT_EQ(lease.finalists(1).trial_id(), "t2");
  EXPECT_EQ(lease.finalists(1).template_name(), "b");
  EXPECT_EQ(lease.finalists(1).template_version(), 4);
  EXPECT_EQ(lease.finalists(1).config(), "y=2");
}

TEST(Messages, WhatARaceIsNotToldStaysTheWorkersDefault) {
  v1::RaceOptions asked;
  asked.set_processes(3);
  const RaceOptions options = from_proto(asked);
  EXPECT_EQ(options.processes, 3);
  EXPECT_EQ(options.rounds, 0);
  EXPECT_EQ(options.limit_s, 0);
  EXPECT_EQ(options.constants, Constants::kWarm);
}

TEST(Messages, AWorkerThatSaysTooLittleIsRefusedWithTheField) {
  v1::RegisterRequest request;
  EXPECT_THAT(from_proto(request).status().message(), HasSubstr("worker_id, incarnation: found"));
  request.set_worker_id("w1");
  request.set_incarnation("1");
  EXPECT_THAT(from_proto(request).status().message(), HasSubstr("worker w1: protocol: found 0, expected 1"));
  request.set_protocol(1);
  EXPECT_THAT(from_proto(request).status().message(), HasSubstr("worker w1: targets: found none"));
  request.add_targets(kTask.target);
  request.set_races(true);
  const Result<Workers::Offer> offer = from_proto(request);
  ASSERT_TRUE(offer.is_ok()) << offer.message();
  EXPECT_EQ(offer->life, (WorkerLife{"w1", "1"}));
  EXPECT_TRUE(offer->races);
}

TEST(Messages, ProgressNamesItsPhasesAndCountsOutcomes) {
  JobReport report;
  report.search = {.task_index = 1, .trials_done = 5, .trials_total = 9, .best_ns = 700};
  report.search.outcomes = {{Outcome::kOk, 4}, {Outcome::kCrashed, 1}};
  report.phases.at(static_cast<size_t>(TrialPhase::kRun)) = {.median_ms = 3, .total_ms = 15};
  v1::Progress progress;
  to_proto(report, &progress);
  EXPECT_EQ(progress.task_index(), 1);
  EXPECT_EQ(progress.trials_done(), 5);
  EXPECT_FALSE(progress.has_gain_chance()) << "not known is not zero";
  ASSERT_EQ(progress.phases_size(), kTrialPhases);
  EXPECT_EQ(progress.phases(2).phase(), "run");
  EXPECT_EQ(progress.phases(2).median_ms(), 3);
  EXPECT_EQ(progress.phases(2).total_ms(), 15);
  ASSERT_EQ(progress.outcomes_size(), 2);
  EXPECT_EQ(progress.outcomes(1).outcome(), v1::CRASHED);
  EXPECT_EQ(progress.outcomes(1).count(), 1);
}

}  // namespace
}  // namespace tuner
