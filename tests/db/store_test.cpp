// The store, whatever the engine: what is written comes back, and what is refused.
#include "db/store.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "db/damage.h"
#include "db/death.h"
#include "db/donor_sample.h"
#include "db/quarantine.h"
#include "tests/db/store_fixture.h"

namespace tuner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class StoreTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
  std::string path_ = folder_.file("t.db");
};

// --- jobs ---

TEST_F(StoreTest, AJobComesBackWhole) {
  const auto store = must_open(path_);
  JobRow job = job_row("j1", {{"v1 a", "cpu"}, {"v1 \"b\"", "llvm -mcpu=x"}});
  job.options = {.min_repeat_ms = 2.5,
                 .repeats = 3,
                 .build_timeout_s = 4,
                 .run_timeout_s = 5,
                 .memory_limit_bytes = 6,
                 .cut_factor = -1};
  ASSERT_OK(store->add_job(job));
  const auto back = store->job("j1");
  ASSERT_TRUE(back.is_ok()) << back.message();
  EXPECT_EQ(back->request_id, "request-j1");
  ASSERT_EQ(back->tasks.size(), 2u);
  EXPECT_EQ(back->tasks[1].workload_key, "v1 \"b\"");
  EXPECT_EQ(back->tasks[1].target, "llvm -mcpu=x");
  EXPECT_EQ(back->trials, 64);
  EXPECT_EQ(back->seed, 0xffffffffffffffffu);
  EXPECT_EQ(back->options.min_repeat_ms, 2.5);
  EXPECT_EQ(back->options.memory_limit_bytes, 6);
  EXPECT_EQ(back->options.cut_factor, -1);
  EXPECT_EQ(back->state, JobState::kQueued);
  EXPECT_EQ(back->submitted_at_us, 1'700'000'000'000'000);
}

TEST_F(StoreTest, TheSameRequestTwiceKeepsTheFirstJob) {
  const auto store = must_open(path_);
  JobRow again = job_row("j2");
  again.request_id = "request-j1";
  ASSERT_OK(store->add_job(job_row("j1")));
  ASSERT_OK(store->add_job(again));
  EXPECT_EQ(store->jobs()->size(), 1u);
  EXPECT_EQ(store->job_by_request("request-j1")->id, "j1");
  EXPECT_EQ(store->job("j2").status().code(), StatusCode::kNotFound);
}

TEST_F(StoreTest, AJobIdIsUsedOnce) {
  const auto store = must_open(path_);
  JobRow other = job_row("j1");
  other.request_id = "another";
  ASSERT_OK(store->add_job(job_row("j1")));
  EXPECT_EQ(store->add_job(other).message(), "job \"j1\" exists already");
}

TEST_F(StoreTest, TheNewestJobsAreReadWithoutTheOthers) {
  const auto store = must_open(path_);
  for (const char* id : {"j1", "j2", "j3"}) ASSERT_OK(store->add_job(job_row(id)));
  const std::vector<JobRow> newest = store->jobs({.newest = 2}).value();
  ASSERT_EQ(newest.size(), 2u);
  EXPECT_EQ(newest[0].id, "j2") << "oldest first, as always";
  EXPECT_EQ(newest[1].id, "j3");
  EXPECT_EQ(store->jobs({.newest = 9})->size(), 3u);
}

TEST_F(StoreTest, FindsTheLatestJobOfTheSameTasksSearchAndSeed) {
  const auto store = must_open(path_);
  ASSERT_OK(store->add_job(job_row("old")));
  ASSERT_OK(store->add_job(job_row("new")));
  ASSERT_OK(store->add_job(job_row("other", {{"v1 else", "cpu one"}})));
  EXPECT_EQ(store->find_job({{"v1 work", "cpu one"}}, "random", 0xffffffffffffffffu)->id, "new");
  EXPECT_EQ(store->find_job({{"v1 work", "cpu one"}}, "grid", 0xffffffffffffffffu).status().code(),
            StatusCode::kNotFound);
  EXPECT_EQ(store->find_job({{"v1 work", "cpu one"}}, "random", 0).status().code(), StatusCode::kNotFound);
  // Other algorithms are another job.
  const std::vector<JobRow::Task> direct = {{"v1 work", "cpu one", "direct"}};
  EXPECT_EQ(store->find_job(direct, "random", 0xffffffffffffffffu).status().code(), StatusCode::kNotFound);
  ASSERT_OK(store->add_job(job_row("direct", direct)));
  EXPECT_EQ(store->find_job(direct, "random", 0xffffffffffffffffu)->tasks[0].algorithms, "direct");
  EXPECT_EQ(store->find_job({{"v1 work", "cpu one"}}, "random", 0xffffffffffffffffu)->id, "new");
}

TEST_F(StoreTest, ExtendingAFinishedJobQueuesItAgainAndNeverLowersItsTrials) {
  const auto store = must_open(path_);
  ASSERT_OK(store->add_job(job_row("j1")));
  ASSERT_OK(store->set_job_state("j1", JobState::kFinished, "done"));
  EXPECT_GT(store->job("j1")->finished_at_us, 0);
  ASSERT_OK(store->extend_job("j1", 10, {}));
  const JobRow job = *store->job("j1");
  EXPECT_EQ(job.trials, 64);
  EXPECT_EQ(job.state, JobState::kQueued);
  EXPECT_EQ(job.finished_at_us, 0);
  ASSERT_OK(store->extend_job("j1", 100, {.below = 0.05, .time_limit_s = 60}));
  EXPECT_EQ(store->job("j1")->trials, 100);
  EXPECT_EQ(store->job("j1")->stop, (StopOptions{.below = 0.05, .time_limit_s = 60}));
}

TEST_F(StoreTest, UseCountsAreKeptWithTheTasksAndMakeAnotherJob) {
  const auto store = must_open(path_);
  JobRow job = job_row("counted", {{"v1 work", "cpu one", "", 7}, {"v1 else", "cpu one", "direct", 2}});
  job.stop = {.below = 0.1, .time_limit_s = 2.5};
  ASSERT_OK(store->add_job(job));
  ASSERT_OK(store->set_job_state("counted", JobState::kRunning, ""));
  const JobRow back = *store->job("counted");
  EXPECT_EQ(back.tasks[0].uses, 7);
  EXPECT_EQ(back.tasks[0].algorithms, "");
  EXPECT_EQ(back.tasks[1].uses, 2);
  EXPECT_EQ(back.tasks[1].algorithms, "direct");
  EXPECT_EQ(back.stop, job.stop);
  EXPECT_EQ(store->find_job(job.tasks, job.search, job.seed)->id, "counted");
  job.tasks[0].uses = 1;
  EXPECT_EQ(store->find_job(job.tasks, job.search, job.seed).status().code(), StatusCode::kNotFound);
}

TEST_F(StoreTest, AnUnknownJobIsNotFoundByName) {
  const auto store = must_open(path_);
  EXPECT_EQ(store->job("nope").message(), "no job \"nope\". `tuner jobs` lists them");
  EXPECT_EQ(store->set_job_state("nope", JobState::kFailed, "").code(), StatusCode::kNotFound);
  EXPECT_EQ(store->add_event("nope", "{}").status().code(), StatusCode::kNotFound);
}

// --- trials ---

TEST_F(StoreTest, TrialsGetIdsInOrderAndComeBackInOrder) {
  const auto store = must_open(path_);
  ASSERT_OK(store->add_job(job_row("j1")));
  const auto ids = add_trials(*store, "j1", {"a=1", "a=2", "a=3"});
  const auto trials = store->trials("j1");
  ASSERT_TRUE(trials.is_ok()) << trials.message();
  ASSERT_EQ(trials->size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const TrialRow& t = (*trials)[i].trial;
    EXPECT_EQ(t.id, ids[i]);
    EXPECT_EQ(t.job_id, "j1");
    EXPECT_EQ(t.config, str("a=", i + 1));
    EXPECT_EQ(t.template_version, 3);
    EXPECT_EQ(t.rng_counter, 0xf000000000000001u);
    EXPECT_EQ(t.model_digest, "m1");
    EXPECT_EQ(t.state, TrialState::kQueued);
    EXPECT_EQ((*trials)[i].task.workload_key, "v1 work");
    EXPECT_FALSE((*trials)[i].record.has_value());
  }
  EXPECT_LT((*trials)[0].trial.seq, (*trials)[1].trial.seq);
}

TEST_F(StoreTest, ABatchOfTrialsIsAddedWholeOrNotAtAll) {
  const auto store = must_open(path_);
  ASSERT_OK(store->add_job(job_row("j1")));
  std::vector<TrialRow> batch{trial_row("j1", "a=1"), trial_row("j1", "a=2", /*task_index=*/7)};
  EXPECT_EQ(store->add_trials(batch).message(), "trial of job j1: task_index 7, the job has 1 tasks");
  EXPECT_TRUE(batch[0].id.empty());
  EXPECT_TRUE(store->trials("j1")->empty());
}

TEST_F(StoreTest, ATrialIsLeasedOnceAndEveryLeaseHasALargerFencingToken) {
  const auto store = must_open(path_);
  ASSERT_OK(store->add_job(job_row("j1")));
  const std::string id = add_trials(*store, "j1", {"a=1"})[0];
  const auto first = store->lease_trials({id}, "w1");
  ASSERT_TRUE(first.is_ok()) << first.message();
  ASSERT_EQ(first->size(), 1u);
  EXPECT_EQ(first->at(0).attempt, 1);
  EXPECT_EQ(first->at(0).job_id, "j1");
  EXPECT_EQ(first->at(0).worker_id, "w1");
  EXPECT_TRUE(store->lease_trials({id}, "w2")->empty());
  EXPECT_EQ(store->requeue_trial(id, /*attempt=*/2).code(), StatusCode::kNotFound);
  ASSERT_OK(store->requeue_trial(id, /*attempt=*/1));
  const auto second = store->lease_trials({id}, "w2");
  ASSERT_TRUE(second.is_ok()) << second.message();
  ASSERT_EQ(second->size(), 1u);
  EXPECT_EQ(second->at(0).attempt, 2);
  EXPECT_GT(second->at(0).fencing, first->at(0).fencing);
}

TEST_F(StoreTest, OneCommitLeasesToManyWorkersAndOpenTrialsAreReadByPages) {
  const auto store = must_open(path_);
  ASSERT_OK(store->add_job(job_row("j1")));
  const std::vector<std::string> ids = add_trials(*store, "j1", {"a=1", "a=2", "a=3", "a=4"});
  const auto leased = store->lease_trials(std::vector<LeaseWish>{{ids[0], "w1"}, {ids[2], "w2"}});
  ASSERT_TRUE(leased.is_ok()) << leased.message();
  ASSERT_EQ(leased->size(), 2u);
  EXPECT_EQ(leased->at(0).worker_id, "w1");
  EXPECT_EQ(leased->at(1).worker_id, "w2");
  ASSERT_OK(store->add_records({ok_record(ids[1], {10})}));
  TrialQuery query{.job = "j1", .limit = 2, .open = true};
  const auto page = store->trials(query);
  ASSERT_TRUE(page.is_ok()) << page.message();
  ASSERT_EQ(page->size(), 2u);
  EXPECT_EQ(page->at(0).trial.id, ids[0]);
  EXPECT_EQ(page->at(1).trial.id, ids[2]) << "a closed one is left out";
  query.after = page->at(1).trial.seq;
  EXPECT_EQ(store->trials(query)->at(0).trial.id, ids[3]);
  EXPECT_EQ(store->requeue_trials({{ids[0], 1}, {ids[2], 7}, {ids[3], 1}}).value(), 1)
      << "another attempt, and one that is not leased, are left alone";
  EXPECT_EQ(store->trial(ids[0])->trial.state, TrialState::kQueued);
}

TEST_F(StoreTest, ATrialRemembersWhichLifeOfWhichWorkerHadEachAttempt) {
  std::string id;
  {
    const auto store = must_open(path_);
    ASSERT_OK(store->add_job(job_row("j1")));
    id = add_trials(*store, "j1", {"a=1"})[0];
    ASSERT_TRUE(store->lease_trials(std::vector<LeaseWish>{{id, "w1", "i1"}}).is_ok());
    ASSERT_OK(store->requeue_trial(id, 1));
    ASSERT_TRUE(store->lease_trials(std::vector<LeaseWish>{{id, "w2", "i7"}}).is_ok());
  }
  const auto store = must_open(path_);
  const std::vector<Grant> grants = store->trial(id)->trial.grants;
  EXPECT_EQ(grants, (std::vector<Grant>{{1, "w1", "i1"}, {2, "w2", "i7"}}));
  EXPECT_TRUE(was_granted(grants, 1, "w1", "i1"));
  EXPECT_FALSE(was_granted(grants, 1, "w1", "i2")) << "another life of that worker";
  EXPECT_FALSE(was_granted(grants, 1, "w2", "i7")) << "another attempt";
  EXPECT_FALSE(was_granted(grants, 3, "w2", "i7"));
  EXPECT_FALSE(was_granted(grants, 1, "w1", "")) << "nobody's life";
  EXPECT_TRUE(was_granted({{4, "w1", ""}}, 4, "w1", "i9")) << "a lease from before lives were written down";
}

TEST_F(StoreTest, OfManyLeasesOfATrialTheLatestAreRemembered) {
  const auto store = must_open(path_);
  ASSERT_OK(store->add_job(job_row("j1")));
  const std::string id = add_trials(*store, "j1", {"a=1"})[0];
  for (int attempt = 1; attempt <= 40; ++attempt) {
    ASSERT_EQ(store->lease_trials(std::vector<LeaseWish>{{id, "w1", "i1"}})->size(), 1u);
    ASSERT_OK(store->requeue_trial(id, attempt));
  }
  const std::vector<Grant> grants = store->trial(id)->trial.grants;
  ASSERT_EQ(grants.size(), kMostGrants);
  EXPECT_EQ(grants.front().attempt, 9);
  EXPECT_EQ(grants.back().attempt, 40);
}

TEST_F(StoreTest, WhatCannotBeIsKeptApartAndReadByItsTrial) {
  {
    const auto store = must_open(path_);
    QuarantineRow row{.lease_id = "t5",
                      .attempt = 2,
                      .worker_id = "w1",
                      .worker_incarnation = "i1",
                      .host = "h",
                      .claimed_ns = 1e-3,
                      .why = "faster than any",
                      .received_at_us = 1'700'000'000'000'000};
    ASSERT_OK(store->add_quarantine(row));
    EXPECT_GT(row.id, 0);
    row.lease_id = "t6";
    ASSERT_OK(store->add_quarantine(row));
    row.lease_id.clear();
    EXPECT_EQ(store->add_quarantine(row).code(), StatusCode::kInvalidArgument);
  }
  const auto store = must_open(path_);
  const auto all = store->quarantine("");
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ(all->at(0).lease_id, "t5") << "oldest first";
  EXPECT_EQ(all->at(1).lease_id, "t6");
  const auto found = store->quarantine("t5");
  ASSERT_TRUE(found.is_ok()) << found.message();
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ(found->at(0).attempt, 2);
  EXPECT_EQ(found->at(0).worker_id, "w1");
  EXPECT_EQ(found->at(0).worker_incarnation, "i1");
  EXPECT_EQ(found->at(0).claimed_ns, 1e-3);
  EXPECT_EQ(found->at(0).why, "faster than any");
  EXPECT_EQ(found->at(0).received_at_us, 1'700'000'000'000'000);
}

// A third are the fastest, the others stand evenly over the rest; what failed comes last.
TEST(DonorSample, AThirdAreTheFastestAndTheRestIsSpreadOverAll) {
  std::vector<RankedRecord> records;
  for (int64_t id = 12; id >= 1; --id)  // 1 is the fastest of ten; 11 was cut, 12 failed
    records.push_back({.failed = id == 12,
                       .cut = id == 11,
                       .time_ns = id == 12   ? 0
                                  : id == 11 ? 1
                                             : 10 * static_cast<double>(id),
                       .record_id = id});
  EXPECT_EQ(donor_sample(records, 6), (std::vector<int64_t>{1, 2, 3, 5, 8, 10}));
  EXPECT_EQ(donor_sample(records, 3), (std::vector<int64_t>{1, 2, 7}));
  EXPECT_EQ(donor_sample(records, 100), (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  EXPECT_TRUE(donor_sample({}, 5).empty());
}

TEST_F(StoreTest, ThePoisonLedgerKeepsItsLinesInOrder) {
  {
    const auto store = must_open(path_);
    std::vector<DeathRow> rows = {{.workload_key = "v1 work",
                                   .target = "cpu one",
                                   .template_name = "toy_x86",
                                   .config = "a=1",
                                   .template_version = 3,
                                   .phase = DeathPhase::kBuilding,
                                   .worker_id = "w1",
                                   .worker_incarnation = "i1",
                                   .alone = true,
                                   .happened_at_us = 17},
                                  {.config = "a=2", .phase = DeathPhase::kSurvived}};
    ASSERT_OK(store->add_deaths(rows));
    EXPECT_LT(rows[0].id, rows[1].id);
  }
  const auto rows = must_open(path_)->deaths();
  ASSERT_TRUE(rows.is_ok()) << rows.message();
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ(rows->at(0).workload_key, "v1 work");
  EXPECT_EQ(rows->at(0).template_version, 3);
  EXPECT_EQ(rows->at(0).phase, DeathPhase::kBuilding);
  EXPECT_EQ(rows->at(0).worker_incarnation, "i1");
  EXPECT_TRUE(rows->at(0).alone);
  EXPECT_EQ(rows->at(0).happened_at_us, 17);
  EXPECT_EQ(rows->at(1).phase, DeathPhase::kSurvived);
}

TEST_F(StoreTest, AJobKeepsItsTenant) {
  JobRow job = job_row("j1");
  job.tenant = "team-a";
  ASSERT_OK(must_open(path_)->add_job(job));
  const auto store = must_open(path_);
  EXPECT_EQ(store->job("j1")->tenant, "team-a");
  ASSERT_OK(store->set_job_state("j1", JobState::kRunning, ""));
  EXPECT_EQ(store->job("j1")->tenant, "team-a");
  // What a tenant used: 30 ms of a device for each record, extra samples too, in seconds.
  for (const char* id : {"j2", "j3"}) {
    JobRow more = job_row(id);
    more.tenant = "team-b";
    ASSERT_OK(store->add_job(more));
  }
  const auto ids = add_trials(*store, "j2", {"a=1", "a=2"});
  ASSERT_OK(store->add_records({ok_record(ids[0], {5}), ok_record(ids[0], {6}), ok_record(ids[1], {7})}));
  const auto usage = store->usage();
  ASSERT_TRUE(usage.is_ok()) << usage.message();
  ASSERT_EQ(usage->size(), 2u);
  EXPECT_EQ(usage->at(0).tenant, "team-a");
  EXPECT_EQ(usage->at(0).trials, 0);
  EXPECT_EQ(usage->at(1).jobs, 2);
  EXPECT_EQ(usage->at(1).trials, 3);
  EXPECT_DOUBLE_EQ(usage->at(1).device_s, 0.09);
}

TEST_F(StoreTest, SeveralTrialsAreLeasedAtOnceAndThoseTakenAlreadyAreLeftOut) {
  const auto store = must_open(path_);
  ASSERT_OK(store->add_job(job_row("j1")));
  const auto ids = add_trials(*store, "j1", {"a=1", "a=2", "a=3", "a=4"});
  ASSERT_EQ(store->lease_trials({ids[1]}, "w1")->size(), 1u);
  ASSERT_OK(store->add_records({ok_record(ids[2], {5})}));
  const auto leased = store->lease_trials({ids[3], ids[1], ids[2], ids[0], "t999"}, "w2");
  ASSERT_TRUE(leased.is_ok()) << leased.message();
  ASSERT_EQ(leased->size(), 2u);
  EXPECT_EQ((*leased)[0].id, ids[3]);
  EXPECT_EQ((*leased)[1].id, ids[0]);
  EXPECT_GT((*leased)[1].fencing, (*leased)[0].fencing);
  for (const TrialRow& row : *leased) {
    EXPECT_EQ(row.job_id, "j1");
    EXPECT_EQ(row.attempt, 1);
    const auto stored = store->trial(row.id);
    EXPECT_EQ(stored->trial.state, TrialState::kLeased);
    EXPECT_EQ(stored->trial.worker_id, "w2");
    EXPECT_EQ(stored->trial.fencing, row.fencing);
  }
  EXPECT_EQ(store->trial(ids[1])->trial.worker_id, "w1");
  EXPECT_EQ(store->lease_trials({ids[0], "x"}, "w").status().code(), store->trial("x").status().code());
  EXPECT_TRUE(store->lease_trials({}, "w")->empty());
}

TEST_F(StoreTest, CancellingClosesOpenTrialsOnly) {
  const auto store = must_open(path_);
  ASSERT_OK(store->add_job(job_row("j1")));
  const auto ids = add_trials(*store, "j1", {"a=1", "a=2", "a=3"});
  ASSERT_EQ(store->lease_trials({ids[1]}, "w")->size(), 1u);
  ASSERT_OK(store->add_records({ok_record(ids[2], {5})}));
  ASSERT_OK(store->cancel_open_trials("j1"));
  EXPECT_EQ(store->trial(ids[0])->trial.state, TrialState::kCancelled);
  EXPECT_EQ(store->trial(ids[1])->trial.state, TrialState::kCancelled);
  EXPECT_EQ(store->trial(ids[2])->trial.state, TrialState::kDone);
  EXPECT_EQ(*store->trials_done("j1"), 1);
}

// People number trials by job, whatever else the database's one counter has counted meanwhile.
TEST_F(StoreTest, ATrialIsNamedByItsPlaceInItsJob) {
  const auto store = must_open(path_);
  ASSERT_OK(store->add_job(job_row("j1", {{"v1 one", "cpu one"}, {"v1 two", "cpu one"}})));
  ASSERT_OK(store->add_job(job_row("j2")));
  const std::vector<std::string> first = add_trials(*store, "j1", {"a=1", "a=2"}, 1);
  const std::vector<std::string> other = add_trials(*store, "j2", {"a=1"});
  const std::vector<std::string> later = add_trials(*store, "j1", {"a=3"}, 0);
  EXPECT_EQ(store->trial(first[0])->trial.name(), "j1.1");
  EXPECT_EQ(store->trial(first[1])->trial.name(), "j1.2");
  EXPECT_EQ(store->trial(later[0])->trial.name(), "j1.3") << "of the job, not of the task";
  EXPECT_EQ(store->trial(other[0])->trial.name(), "j2.1");
  EXPECT_EQ(store->trial("j1.3")->trial.id, later[0]);
  EXPECT_EQ(store->trial("j2.1")->trial.id, other[0]);
  EXPECT_EQ(store->trial("j2.1")->trial.number, 1);
  const auto all = store->trials("j1");
  ASSERT_EQ(all->size(), 3u);
  EXPECT_EQ(all->at(2).trial.name(), "j1.3");
  // Page by page, too; and without being asked for it, no number is counted.
  EXPECT_EQ(store->trials(TrialQuery{.job = "j1", .after = all->at(0).trial.seq, .numbered = true})
                ->at(0)
                .trial.name(),
            "j1.2");
  EXPECT_EQ(store->trials(TrialQuery{.ids = {later[0]}})->at(0).trial.name(), later[0]);
  EXPECT_EQ(store->trial("j1.4").message(), "no trial \"j1.4\": job j1 has 3 trials");
  EXPECT_THAT(store->trial("j9.1").message(), HasSubstr("no job \"j9\""));
  for (const char* name : {"j1.", "j1.0", "j1.-1", "j1.x", ".1", "j1.1 ", "j1.99999999999999999999"})
    EXPECT_FALSE(store->trial(name)) << name;
}

TEST_F(StoreTest, TheNameOfATrialIsThatOfItsAnswer) {
  const auto store = must_open(path_);
  ASSERT_OK(store->add_job(job_row("j1")));
  const std::vector<std::string> ids = add_trials(*store, "j1", {"a=1", "a=2"});
  ASSERT_OK(store->add_records({ok_record(ids[0], {20}), ok_record(ids[1], {10})}));
  EXPECT_EQ(store->best("v1 work", "cpu one")->trial_name, "j1.2");
  EXPECT_EQ(store->best("v1 work", "cpu one", {}, /*counted=*/false)->trial_name, ids[1]);
}

TEST_F(StoreTest, ATrialIdThatIsNoneSaysWhatOneLooksLike) {
  const auto store = must_open(path_);
  for (const char* id : {"", "t", "812", "tx", "t-1", "t1 ", "t99999999999999999999"})
    EXPECT_THAT(store->trial(id).message(),
                HasSubstr("expected its job and its number there, as in j3.17, or t812"))
        << id;
  EXPECT_EQ(store->trial("t5").message(), "no trial \"t5\" in this database");
}

// --- records ---

TEST_F(StoreTest, ARecordComesBackWholeToTheLastBit) {
  const auto store = must_open(path_);
  ASSERT_OK(store->add_job(job_row("j1")));
  const std::string id = add_trials(*store, "j1", {"a=1"})[0];
  MeasureRecord written = ok_record(id, {0.1 + 0.2, 1e-3, 123456789.123456789});
  written.message = "line\twith \"quotes\" and \xff";
  written.attempt = 2;
  written.device_state = "1980 MHz, 41 C, throttled by \"power cap\"";
  ASSERT_OK(store->add_records({written}));
  const auto back = store->trial(id);
  ASSERT_TRUE(back.is_ok()) << back.message();
  ASSERT_TRUE(back->record.has_value());
  const MeasureRecord& r = *back->record;
  EXPECT_EQ(r.run_ns, written.run_ns);
  EXPECT_EQ(r.cpu_ns, written.cpu_ns);
  EXPECT_EQ(r.message, written.message);
  EXPECT_EQ(r.attempt, 2);
  EXPECT_EQ(r.sentinel_before_ns, 100.25);
  EXPECT_EQ(r.sentinel_after_ns, 101.5);
  EXPECT_EQ(r.build_ms, 12.5);
  EXPECT_EQ(r.queue_ms, 0.125);
  EXPECT_EQ(r.artifact_digest, "d1g35t");
  EXPECT_EQ(r.max_error, 0.1);
  EXPECT_EQ(r.peak_gflops, 83.2);
  EXPECT_EQ(r.environment.toolchain, "llvm 22");
  EXPECT_EQ(r.environment.worker_incarnation, "inc1");
  EXPECT_EQ(r.options.repeats, 5);
  EXPECT_EQ(r.options.precision, 0.125);
  EXPECT_EQ(r.device_state, written.device_state);
  EXPECT_EQ(r.finished_at_us, written.finished_at_us);
  EXPECT_EQ(back->trial.state, TrialState::kDone);
}

TEST_F(StoreTest, EveryOutcomeComesBackAsItself) {
  const auto store = must_open(path_);
  ASSERT_OK(store->add_job(job_row("j1")));
  for (int i = 1; i <= 9; ++i) {
    const auto outcome = static_cast<Outcome>(i);
    EXPECT_EQ(outcome_from_name(outcome_name(outcome)), outcome);
    const std::string id = add_trials(*store, "j1", {str("a=", i)})[0];
    MeasureRecord record =
        ok_record(id, outcome == Outcome::kOk ? std::vector<double>{1} : std::vector<double>{});
    record.outcome = outcome;
    ASSERT_OK(store->add_records({record}));
    EXPECT_EQ(store->trial(id)->record->outcome, outcome);
  }
  EXPECT_EQ(outcome_from_name("fine"), std::nullopt);
}

TEST_F(StoreTest, TheSameRecordAgainChangesNothing) {
  const auto store = must_open(path_);
  ASSERT_OK(store->add_job(job_row("j1")));
  const std::string id = add_trials(*store, "j1", {"a=1"})[0];
  for (int i = 0; i < 3; ++i) ASSERT_OK(store->add_records({ok_record(id, {5})}));
  EXPECT_EQ(store->records(id)->size(), 1u);
}

TEST_F(StoreTest, ASecondRecordOfAClosedTrialIsKeptAsAnExtraSample) {
  const auto store = must_open(path_);
  ASSERT_OK(store->add_job(job_row("j1")));
  const std::string id = add_trials(*store, "j1", {"a=1"})[0];
  ASSERT_OK(store->add_records({ok_record(id, {5})}));
  ASSERT_OK(store->add_records({ok_record(id, {4})}));
  EXPECT_EQ(store->records(id)->size(), 2u);
  EXPECT_THAT(store->trial(id)->record->run_ns, ElementsAre(5));
  EXPECT_EQ(store->best("v1 work", "cpu one")->time_ns, 5);
  EXPECT_EQ(store->best("v1 work", "cpu one")->trials, 1);
}

TEST_F(StoreTest, ALateRecordFillsATrialThatIsStillOpen) {
  const auto store = must_open(path_);
  ASSERT_OK(store->add_job(job_row("j1")));
  const std::string id = add_trials(*store, "j1", {"a=1"})[0];
  ASSERT_EQ(store->lease_trials({id}, "w1")->size(), 1u);
  ASSERT_OK(store->requeue_trial(id, 1));
  ASSERT_OK(store->add_records({ok_record(id, {5})}));  // attempt 1, after its lease was given up
  EXPECT_EQ(store->trial(id)->trial.state, TrialState::kDone);
  EXPECT_TRUE(store->lease_trials({id}, "w2")->empty());
}

TEST_F(StoreTest, RecordsAreStoredTogetherOrNotAtAll) {
  const auto store = must_open(path_);
  ASSERT_OK(store->add_job(job_row("j1")));
  const std::string id = add_trials(*store, "j1", {"a=1"})[0];
  EXPECT_EQ(store->add_records({ok_record(id, {5}), ok_record("t999", {5})}).code(), StatusCode::kNotFound);
  EXPECT_FALSE(store->trial(id)->record.has_value());
}

TEST_F(StoreTest, ATimeThatIsNoTimeIsRefused) {
  const auto store = must_open(path_);
  ASSERT_OK(store->add_job(job_row("j1")));
  const std::string id = add_trials(*store, "j1", {"a=1"})[0];
  for (const double bad : {0.0, -1.0, std::nan(""), HUGE_VAL})
    EXPECT_EQ(store->add_records({ok_record(id, {1, bad})}).code(), StatusCode::kInvalidArgument) << bad;
  EXPECT_EQ(store->add_records({ok_record(id, {})}).message(),
            "record of trial " + id + ": outcome ok without a sample");
  MeasureRecord record = ok_record(id, {1});
  record.build_ms = std::nan("");
  EXPECT_THAT(store->add_records({record}).message(), HasSubstr("build_ms is nan"));
}

TEST_F(StoreTest, EveryRecordIsVisitedOldestFirstOverManyPages) {
  const auto store = must_open(path_);
  ASSERT_OK(store->add_job(job_row("j1")));
  ASSERT_OK(store->add_job(job_row("j2")));
  std::vector<std::string> configs, expected;
  for (int i = 0; i < 600; ++i) configs.push_back(str("a=", i));
  std::vector<MeasureRecord> records;
  for (const std::string& id : add_trials(*store, "j1", configs)) {
    if (records.size() == 590) break;  // ten trials stay without a record
    records.push_back(ok_record(id, {7}));
    expected.push_back(id);
  }
  ASSERT_OK(store->add_records(records));
  const std::string of_j2 = add_trials(*store, "j2", {"b=1"})[0];
  ASSERT_OK(store->add_records({ok_record(of_j2, {7})}));
  const auto visited = [&](std::string_view job) {
    std::vector<std::string> ids;
    const Status status = store->for_each_record(
        job, [&](const TrialWithRecord& t) { return ids.push_back(t.trial.id), true; });
    EXPECT_TRUE(status.is_ok()) << status.message();
    return ids;
  };
  EXPECT_EQ(visited("j1"), expected);
  EXPECT_EQ(visited("j2"), std::vector{of_j2});
  expected.push_back(of_j2);
  EXPECT_EQ(visited(""), expected);
  int count = 0;
  ASSERT_OK(store->for_each_record("", [&](const TrialWithRecord&) { return ++count < 3; }));
  EXPECT_EQ(count, 3);
}

TEST_F(StoreTest, RecordsOfATaskAreVisitedOldestFirstOfEveryJob) {
  const auto store = must_open(path_);
  ASSERT_OK(store->add_job(job_row("j1", {{"v1 work", "cpu one"}, {"v1 other", "cpu one"}})));
  ASSERT_OK(store->add_job(job_row("j2", {{"v1 work", "cpu one"}})));
  std::vector<std::string> configs, expected;
  for (int i = 0; i < 300; ++i) configs.push_back(str("a=", i));
  std::vector<MeasureRecord> records;
  for (const std::string& id : add_trials(*store, "j1", configs)) {
    expected.push_back(id);
    records.insert(records.begin(), ok_record(id, {7}));  // stored in another order than proposed
  }
  const std::string other = add_trials(*store, "j1", {"c=1"}, /*task_index=*/1)[0];
  for (const std::string& id : add_trials(*store, "j2", {"b=1", "b=2"})) {
    if (records.size() == 301) break;  // one stays without a record
    records.push_back(ok_record(id, {7}));
    expected.push_back(id);
  }
  records.push_back(ok_record(other, {7}));
  ASSERT_OK(store->add_records(records));
  const auto visited = [&](const JobRow::Task& task) {
    std::vector<std::string> ids;
    const Status status = store->for_each_record_of(
        task, [&](const TrialWithRecord& t) { return ids.push_back(t.trial.id), true; });
    EXPECT_TRUE(status.is_ok()) << status.message();
    return ids;
  };
  EXPECT_EQ(visited({"v1 work", "cpu one"}), expected);
  EXPECT_EQ(visited({"v1 other", "cpu one"}), std::vector{other});
  EXPECT_TRUE(visited({"v1 work", "cpu two"}).empty());
  int count = 0;
  ASSERT_OK(
      store->for_each_record_of({"v1 work", "cpu one"}, [&](const TrialWithRecord&) { return ++count < 3; }));
  EXPECT_EQ(count, 3);
}

// --- events ---

TEST_F(StoreTest, EventsOfAJobResumeAfterANumber) {
  const auto store = must_open(path_);
  ASSERT_OK(store->add_job(job_row("j1")));
  ASSERT_OK(store->add_job(job_row("j2")));
  const int64_t a = *store->add_event("j1", "{\"a\":1}");
  ASSERT_TRUE(store->add_event("j2", "{}").is_ok());
  const int64_t b = *store->add_event("j1", "b");
  EXPECT_THAT(*store->events("j1", 0, 10), ElementsAre(std::pair(a, "{\"a\":1}"), std::pair(b, "b")));
  EXPECT_THAT(*store->events("j1", a, 10), ElementsAre(std::pair(b, "b")));
  EXPECT_THAT(*store->events("j1", 0, 1), ElementsAre(std::pair(a, "{\"a\":1}")));
}

// --- opening ---

TEST_F(StoreTest, AServersUrlIsRefusedAndPathsWithAColonAreNot) {
  const std::string url = "postgresql://tuner@db.example/tuner";
  for (const auto mode : {Store::Mode::kRead, Store::Mode::kWrite}) {
    const auto store = Store::open(url, mode);
    EXPECT_EQ(store.status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(store.message(),
              url + ": databases on a server are not served yet, expected the path of a file");
  }
  EXPECT_EQ(copy_database(path_, url).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(copy_database(url, path_).code(), StatusCode::kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(path_));
  // A scheme has no slash before its colon: here a folder's name ends in one.
  ASSERT_TRUE(std::filesystem::create_directory(folder_.file("old:")));
  for (const char* name : {"a:b.db", "old://c.db"}) {
    const std::string odd = folder_.file(name);
    must_open(odd);
    EXPECT_EQ(must_open(odd, Store::Mode::kRead)->where(), odd);
  }
}

TEST_F(StoreTest, OneFileHasOneWriterAndAnyNumberOfReaders) {
  const auto writer = must_open(path_);
  const auto first = must_open(path_, Store::Mode::kRead), second = must_open(path_, Store::Mode::kRead);
  EXPECT_FALSE(Store::open(path_, Store::Mode::kWrite).is_ok()) << "a second writer";
}

TEST_F(StoreTest, OnlyAFileThatWasADatabaseIsDamaged) {
  must_open(path_);
  EXPECT_FALSE(is_damaged_database(path_));
  EXPECT_FALSE(is_damaged_database("postgresql://tuner@db.example/tuner"));
  std::filesystem::resize_file(path_, 3000);  // its first page is 4096 bytes
  EXPECT_TRUE(is_damaged_database(path_));
  std::ofstream(path_) << "a letter\n";
  EXPECT_FALSE(is_damaged_database(path_));
}

TEST_F(StoreTest, ReadersSeeAWritersRowsWhileItIsOpenAndAfter) {
  auto writer = must_open(path_);
  const auto reader = must_open(path_, Store::Mode::kRead);
  ASSERT_OK(writer->add_job(job_row("j1")));
  EXPECT_EQ(reader->jobs()->size(), 1u);
  writer.reset();
  EXPECT_EQ(reader->jobs()->size(), 1u);
  EXPECT_EQ(must_open(path_, Store::Mode::kRead)->jobs()->size(), 1u);
}

TEST_F(StoreTest, AReaderDoesNotWrite) {
  must_open(path_);
  const auto reader = must_open(path_, Store::Mode::kRead);
  EXPECT_EQ(reader->add_job(job_row("j1")).message(), path_ + ": is open for reading only");
}

// --- learned ---

KernelRow kernel_row(char digit, const std::string& tenant, std::string document) {
  return {.digest = std::string(64, digit), .tenant = tenant, .document = std::move(document)};
}

TEST_F(StoreTest, AKernelIsStoredWithItsJobOnceForEachTenantAndIsHisAlone) {
  const std::string bytes("tuner-kernel 1\n\0\xff text", 22);
  {
    const auto store = must_open(path_);
    ASSERT_OK(store->add_job(job_row("j1"), {kernel_row('a', "red", bytes)}));
    ASSERT_OK(store->add_job(job_row("j2"), {kernel_row('a', "red", "later"), kernel_row('b', "red", "b")}));
    ASSERT_OK(store->add_job(job_row("j3"), {kernel_row('a', "blue", "his own spelling")}));
  }
  const auto store = must_open(path_, Store::Mode::kRead);
  const std::string a(64, 'a'), b(64, 'b');
  EXPECT_EQ(store->kernel(a, "red")->document, bytes) << "the first that he brought";
  EXPECT_EQ(store->kernel(a, "blue")->document, "his own spelling");
  EXPECT_EQ(store->kernel(a)->document, "his own spelling") << "whoever brought it";
  EXPECT_GT(store->kernel(a)->brought_at_us, 0);
  EXPECT_EQ(store->kernel(b, "blue").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(store->kernel(b, "").status().code(), StatusCode::kNotFound)
      << "nobody in particular is no joker";
  EXPECT_EQ(store->kernel(std::string(64, 'c')).status().code(), StatusCode::kNotFound);
  std::vector<std::string> documents;
  ASSERT_OK(store->for_each_kernel([&](const KernelRow& kernel) {
    documents.push_back(kernel.document);
    return true;
  }));
  EXPECT_EQ(documents, (std::vector<std::string>{bytes, "b", "his own spelling"}));
}

TEST_F(StoreTest, AKernelThatIsNoneIsRefusedWithItsJob) {
  const auto store = must_open(path_);
  for (const KernelRow& wrong : {kernel_row('A', "", "x"), kernel_row('a', "", ""),
                                 kernel_row('a', "", std::string(kMostKernelBytes + 1, 'x'))})
    EXPECT_EQ(store->add_job(job_row("j1"), {kernel_row('b', "", "good"), wrong}).code(),
              StatusCode::kInvalidArgument);
  EXPECT_TRUE(store->jobs()->empty());
  EXPECT_EQ(store->kernel(std::string(64, 'b')).status().code(), StatusCode::kNotFound)
      << "stored without a job that names it";
  // A submission that is repeated changes nothing, whatever it brings.
  ASSERT_OK(store->add_job(job_row("j1"), {kernel_row('b', "", "good")}));
  ASSERT_OK(store->add_job(job_row("j1"), {kernel_row('c', "", "more")}));
  EXPECT_EQ(store->kernel(std::string(64, 'c')).status().code(), StatusCode::kNotFound);
}

TEST_F(StoreTest, TheNewestLearnedDocumentOfAKindOperatorAndTargetCounts) {
  {
    const auto store = must_open(path_);
    EXPECT_EQ(store->learned("predictor", "conv2d", "cpu one").status().code(), StatusCode::kNotFound);
    LearnedRow first{.kind = "predictor",
                     .op = "conv2d",
                     .target = "cpu one",
                     .until_record_id = 7,
                     .document = R"({"version":1})"};
    LearnedRow other{.kind = "predictor", .op = "matmul", .target = "cpu one", .document = "{}"};
    LearnedRow newer{.kind = "predictor",
                     .op = "conv2d",
                     .target = "cpu one",
                     .until_record_id = 9,
                     .document = R"({"version":2})",
                     .made_at_us = 5};
    for (LearnedRow* row : {&first, &other, &newer}) ASSERT_OK(store->add_learned(*row));
    EXPECT_GT(first.made_at_us, 0);
    EXPECT_GT(newer.id, first.id);
    LearnedRow nameless{.document = "{}"};
    EXPECT_EQ(store->add_learned(nameless).code(), StatusCode::kInvalidArgument);
  }
  const auto store = must_open(path_, Store::Mode::kRead);  // on disk, and for readers
  const auto found = store->learned("predictor", "conv2d", "cpu one");
  ASSERT_TRUE(found.is_ok()) << found.message();
  EXPECT_EQ(found->document, R"({"version":2})");
  EXPECT_EQ(found->until_record_id, 9);
  EXPECT_EQ(found->made_at_us, 5);
  EXPECT_EQ(store->learned("cover", "conv2d", "cpu one").status().code(), StatusCode::kNotFound);
}

// Another thread may be looking for a source when a store is closed.
TEST_F(StoreTest, WhatLiesBesideAStoreMayUseItToItsEnd) {
  std::string seen;
  set_beside_stores([&](const Store& store) {
    return std::shared_ptr<void>(nullptr, [&](void*) {
      seen = store.where();
      EXPECT_TRUE(store.jobs().is_ok());
    });
  });
  must_open(path_).reset();
  set_beside_stores({});
  EXPECT_EQ(seen, path_);
}

}  // namespace
}  // namespace tuner
