// The daemon's own values as messages, and back.
#include "tuner/daemon/edge/messages.h"

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
            .default_trial_id = "t2",
            .stored_trial_id = "t1"};
  work.options.constants = work.race.constants;
  v1::Lease lease;
  to_proto(LeaseTable::Trial{.id = "race", .job_id = "j1", .work = work, .attempt = 1, .fencing = 1}, &lease);
  EXPECT_EQ(lease.trial_id(), "race");
  EXPECT_EQ(lease.options().constants(), "cold");
  EXPECT_EQ(lease.race().processes(), 5);
  EXPECT_EQ(lease.race().constants(), "cold");
  EXPECT_EQ(lease.default_trial(), "t2");
  EXPECT_EQ(lease.stored_trial(), "t1");
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

// Every figure another number: none takes another's place.
TEST(Messages, WhatAWorkerSaysOfItselfIsTakenWordForWord) {
  v1::RegisterRequest request;
  request.set_worker_id("w1");
  request.set_incarnation("life");
  request.set_protocol(1);
  request.add_targets("cuda -arch=sm_80");
  request.add_targets(kTask.target);
  request.add_cpu_features("avx2");
  request.set_max_threads(6);
  request.set_kind(v1::RUNNER);
  request.set_cuda_driver(12'040);
  request.set_peak_gflops(11);
  request.set_read_gbps(22);
  request.set_sentinel_ns(33);
  request.set_memory_sentinel_ns(44);
  request.mutable_environment()->set_host("h");
  request.mutable_environment()->set_hardware("cpu X");
  v1::TemplateVersion* const t = request.add_templates();
  t->set_name("matmul_cpu");
  t->set_version(7);
  const Result<Workers::Offer> offer = from_proto(request);
  ASSERT_TRUE(offer.is_ok()) << offer.message();
  EXPECT_EQ(offer->targets, (std::vector<std::string>{"cuda -arch=sm_80", kTask.target}));
  EXPECT_EQ(offer->features, std::vector<std::string>{"avx2"});
  EXPECT_EQ(offer->max_threads, 6);
  EXPECT_FALSE(offer->races);
  EXPECT_EQ(offer->kind, WorkerKind::kRunner);
  EXPECT_EQ(offer->cuda_driver, 12'040);
  EXPECT_EQ(offer->peak_gflops, 11);
  EXPECT_EQ(offer->read_gbps, 22);
  EXPECT_EQ(offer->sentinel_ns, 33);
  EXPECT_EQ(offer->memory_sentinel_ns, 44);
  EXPECT_EQ(offer->host, "h");
  EXPECT_EQ(offer->hardware, "cpu X");
  EXPECT_EQ(offer->templates, (std::map<std::string, int>{{"matmul_cpu", 7}}));
  request.set_kind(v1::BUILDER);
  EXPECT_THAT(from_proto(request).message(), HasSubstr("a builder: found 2 targets, 0 compilers"));
}

TEST(Messages, TheListOfWorkersTellsAllThatIsKnownOfOne) {
  const Workers::Entry entry{.offer = {.life = {"w1", "1"},
                                       .host = "h",
                                       .targets = {"a", "b"},
                                       .kind = WorkerKind::kBuilder,
                                       .compilers = {{"llvm", "22"}}},
                             .trials_done = 3,
                             .silent_ms = 4'500,
                             .unfit = "no room",
                             .paused_ms = 6'500,
                             .paused_why = "it fails",
                             .quarantined = 7,
                             .here = false};
  v1::WorkerSummary out;
  to_proto(entry, /*leases=*/2, &out);
  EXPECT_EQ(out.worker_id(), "w1");
  EXPECT_EQ(out.host(), "h");
  EXPECT_EQ(out.targets_size(), 2);
  EXPECT_EQ(out.targets(1), "b");
  EXPECT_EQ(out.leases(), 2);
  EXPECT_EQ(out.trials_done(), 3);
  EXPECT_EQ(out.silent_s(), 4.5);
  EXPECT_EQ(out.unfit(), "no room");
  EXPECT_EQ(out.paused_s(), 6.5);
  EXPECT_EQ(out.paused_why(), "it fails");
  EXPECT_EQ(out.quarantined(), 7);
  EXPECT_TRUE(out.away());
  EXPECT_EQ(out.kind(), v1::BUILDER);
  ASSERT_EQ(out.compiles_for_size(), 1);
  EXPECT_EQ(out.compiles_for(0), "llvm");
}

TEST(Messages, ProgressTellsEachFigureUnderItsName) {
  JobReport report;
  report.search = {
      .task_index = 1, .trials_done = 2, .trials_total = 3, .best_ns = 4, .peak_gflops = 5, .default_ns = 6};
  report.search.search_status = "status";
  report.search.best_config = "config";
  report.search.best_template = "template";
  report.search.gain_chance = 0.7;
  report.best_gflops = 8;
  report.trials_per_second = 9;
  report.eta_s = 10;
  v1::Progress out;
  to_proto(report, &out);
  EXPECT_EQ(out.trials_total(), 3);
  EXPECT_EQ(out.best_ns(), 4);
  EXPECT_EQ(out.peak_gflops(), 5);
  EXPECT_EQ(out.default_ns(), 6);
  EXPECT_EQ(out.search_status(), "status");
  EXPECT_EQ(out.best_config(), "config");
  EXPECT_EQ(out.best_template(), "template");
  EXPECT_EQ(out.gain_chance(), 0.7);
  EXPECT_EQ(out.best_gflops(), 8);
  EXPECT_EQ(out.trials_per_second(), 9);
  EXPECT_EQ(out.eta_s(), 10);
}

// What a lease that is held says of its phase: only who builds or runs is at work, and only who runs may kill
// by running.
TEST(Messages, AHeldLeaseSaysWhetherItIsWorkedAt) {
  google::protobuf::RepeatedPtrField<v1::HeldLease> held;
  for (const v1::LeasePhase phase : {v1::WAITING, v1::BUILDING, v1::RUNNING}) {
    v1::HeldLease* const h = held.Add();
    h->set_trial_id("t");
    h->set_attempt(2);
    h->set_fencing(3);
    h->set_phase(phase);
  }
  const std::vector<LeaseTable::Held> read = held_of(held);
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(read[0].attempt, 2);
  EXPECT_EQ(read[0].fencing, 3);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(read[i].at_work, i > 0) << i;
    EXPECT_EQ(read[i].running, i == 2) << i;
  }
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
