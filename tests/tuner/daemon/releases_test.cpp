// Workers of another release: they get nothing that they cannot build, nobody is blamed for it, all else goes
// on, and people are told once.
#include "tuner/daemon/edge/releases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/tuner/daemon/farm_room.h"
#include "tests/tuner/farm_by_hand.h"
#include "tuner/client/worker_list.h"
#include "tuner/daemon/rooms/farm_releases.h"

namespace tuner {
namespace {

using ::testing::ElementsAre;
using testing::FarmByHand;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

const std::vector<TemplateVersion> kOwn = {{"plain", 1}, {"tiled", 4}}, kOld = {{"plain", 1}, {"tiled", 3}};
const std::string kOldLine =
    "gets no trials of tiled (found version 3, expected version 4). Update the worker: run the daemon's "
    "release of "
    "measure_server there";

class Releases : public ::testing::Test {
 protected:
  std::string enter(const std::string& worker, const std::vector<TemplateVersion>& has, bool races = false,
                    const std::string& life = "1") {
    v1::RegisterRequest hello = farm.hello(worker, life, races);
    for (const TemplateVersion& t : has) {
      v1::TemplateVersion* const out = hello.add_templates();
      out->set_name(t.name);
      out->set_version(t.version);
    }
    return farm.enter(hello);
  }
  std::vector<v1::Lease> leases(const std::string& session, int slots) {
    const v1::SyncReply reply = farm.sync(session, slots);
    return {reply.leases().begin(), reply.leases().end()};
  }
  // The worker has `tiled` in version 3 only, and finds that out now.
  static void add_given_back(const v1::Lease& lease, v1::SyncRequest& request) {
    FarmByHand::add_held(lease, v1::WAITING, request);
    *request.add_returned() = request.held(request.held_size() - 1);
    request.mutable_held()->RemoveLast();
    v1::TemplateVersion* const found = request.mutable_returned(request.returned_size() - 1)->mutable_found();
    found->set_name("tiled");
    found->set_version(3);
  }
  // Lines of the job's events that have the text.
  std::vector<std::string> told(const std::string& job, const std::string& text) const {
    std::vector<std::string> lines;
    const auto events = farm.store->events(job, 0, 10'000).value();
    for (const auto& [seq, json] : events)
      if (json.find(text) != std::string::npos) lines.push_back(json);
    return lines;
  }
  v1::WorkerSummary shown(const std::string& worker) const {
    v1::ListWorkersReply list;
    EXPECT_TRUE(farm.coordinator->list_workers(&list).is_ok());
    for (const v1::WorkerSummary& w : list.workers())
      if (w.worker_id() == worker) return w;
    ADD_FAILURE() << worker << " is not listed";
    return {};
  }
  // Trials of the template with a record.
  std::vector<TrialWithRecord> measured(const std::string& job, const std::string& template_name) const {
    std::vector<TrialWithRecord> all = farm.trials(job);
    std::erase_if(
        all, [&](const TrialWithRecord& t) { return !t.record || t.trial.template_name != template_name; });
    return all;
  }

  FarmByHand farm{6, kOwn};
};

TEST_F(Releases, AWorkerGetsNothingOfATemplateThatItHasInAnotherVersionAndAllOfTheOthers) {
  const std::string old = enter("old", kOld), current = enter("new", kOwn);
  const std::string job = farm.submit(32);
  for (int i = 0; i < 20; ++i) {
    v1::SyncRequest results;
    for (const v1::Lease& lease : leases(old, 4)) {
      EXPECT_EQ(lease.template_name(), "plain");
      *results.add_results() = FarmByHand::honest(lease);
    }
    farm.sync(old, 0, results);
    farm.work(current, 2);
    farm.pass(250);
  }
  farm.work(current);
  EXPECT_EQ(farm.state(job), JobState::kFinished);
  EXPECT_THAT(measured(job, "tiled"), Not(IsEmpty()));
  EXPECT_THAT(measured(job, "plain"), Not(IsEmpty()));
  for (const TrialWithRecord& t : farm.trials(job)) {
    EXPECT_EQ(t.trial.attempt, 1) << "nothing was lost on the way";
    if (t.trial.template_name == "tiled") {
      EXPECT_EQ(t.trial.worker_id, "new");
    }
  }
  EXPECT_GT(shown("old").trials_done(), 0);
  EXPECT_EQ(shown("old").paused_s(), 0);
}

TEST_F(Releases, TheJobAndTheListOfWorkersSayWhichWorkerLacksWhatAndWhatToDo) {
  const std::string old = enter("old", kOld);
  enter("none", {{"plain", 1}});
  enter("newer", {{"plain", 1}, {"tiled", 5}});
  enter("same", kOwn);
  const std::string job = farm.submit(8);
  farm.pass(2'000);
  EXPECT_THAT(told(job, "worker old " + kOldLine), SizeIs(1));
  EXPECT_THAT(
      told(job, "worker none gets no trials of tiled (found none, expected version 4). Update the worker"),
      SizeIs(1));
  EXPECT_THAT(
      told(job,
           "worker newer gets no trials of tiled (found version 5, expected version 4). The worker is "
           "newer than the daemon: update the daemon"),
      SizeIs(1));
  EXPECT_THAT(told(job, "worker same"), IsEmpty());
  EXPECT_EQ(shown("old").other_release(), kOldLine);
  EXPECT_EQ(shown("same").other_release(), "");
  v1::ListWorkersReply list;
  *list.add_workers() = shown("old");
  EXPECT_THAT(workers_text(list, 0), HasSubstr("\n  " + kOldLine + "\n"));
  EXPECT_THAT(workers_json(list), HasSubstr("\"other_release\": \"gets no trials of tiled"));

  enter("old", kOld, false, "2");
  farm.pass(2'000);
  EXPECT_THAT(told(job, "worker old "), SizeIs(1)) << "once, however often it registers";
  enter("old", kOwn, false, "3");
  EXPECT_EQ(shown("old").other_release(), "") << "it is updated";
}

TEST_F(Releases, ManyWorkersOfAnotherReleaseAreNotALineEach) {
  for (int i = 0; i < 9; ++i) enter(str("old", i), kOld);
  const std::string job = farm.submit(8);
  farm.pass(2'000);
  EXPECT_THAT(told(job, kOldLine), SizeIs(3));
  EXPECT_THAT(told(job, "6 more workers are of another release; `tuner workers` tells"), SizeIs(1));
}

TEST_F(Releases, AWorkerThatFindsOutLaterGivesTheTrialBackAndGetsNoMoreOfIt) {
  const std::string late = enter("late", {});  // it does not say what it has
  const std::string job = farm.submit(24);
  v1::SyncRequest answer;
  int given_back = 0;
  for (const v1::Lease& lease : leases(late, 24))
    if (lease.template_name() == "tiled")
      add_given_back(lease, answer), ++given_back;
    else
      *answer.add_results() = FarmByHand::honest(lease);
  ASSERT_GE(given_back, 5) << "so many failures in a row would open its breaker";
  EXPECT_EQ(farm.sync(late, 0, answer).acks_size(), answer.returned_size() + answer.results_size());
  for (int i = 0; i < 4; ++i) {
    v1::SyncRequest results;
    for (const v1::Lease& lease : leases(late, 24)) {
      EXPECT_EQ(lease.template_name(), "plain");
      *results.add_results() = FarmByHand::honest(lease);
    }
    farm.sync(late, 0, results);
    farm.pass(500);
  }
  EXPECT_EQ(shown("late").paused_s(), 0);
  EXPECT_EQ(shown("late").other_release(), kOldLine);
  EXPECT_THAT(told(job, "worker late " + kOldLine), SizeIs(1));
  EXPECT_THAT(told(job, "re-queued"), IsEmpty()) << "one line for all of them";

  farm.work(enter("new", kOwn));
  EXPECT_EQ(farm.state(job), JobState::kFinished);
  for (const TrialWithRecord& t : measured(job, "tiled")) {
    EXPECT_NE(t.record->outcome, Outcome::kDeviceLost) << "the trial is not to blame";
    EXPECT_EQ(t.trial.worker_id, "new");
  }
}

TEST_F(Releases, WhatAWorkerFoundOutStaysOverASessionOfTheSameLife) {
  const std::string late = enter("late", {});
  farm.submit(24);
  v1::SyncRequest answer;
  for (const v1::Lease& lease : leases(late, 24))
    if (lease.template_name() == "tiled") add_given_back(lease, answer);
  farm.sync(late, 0, answer);
  const std::string again = enter("late", {});
  for (const v1::Lease& lease : leases(again, 24)) EXPECT_EQ(lease.template_name(), "plain");
  std::set<std::string> names;
  for (const v1::Lease& lease : leases(enter("late", {}, false, "2"), 24))
    names.insert(lease.template_name());
  EXPECT_THAT(names, ElementsAre("plain", "tiled")) << "a new life may be of a new release";
}

TEST_F(Releases, WhereNobodyHasATemplateTheJobSaysSoOnceAndTheOthersGoOn) {
  const std::string old = enter("old", kOld);
  const std::string job = farm.submit(200);
  farm.work(old);
  const size_t tiled = std::ranges::count_if(
      farm.trials(job), [](const TrialWithRecord& t) { return t.trial.template_name == "tiled"; });
  EXPECT_EQ(measured(job, "plain").size() + tiled, 200u) << "what waits does not stop the others";
  ASSERT_GT(tiled, 20u);
  EXPECT_THAT(told(job, "no worker here"), IsEmpty()) << "it has hardly waited";
  farm.pass(20'000);
  EXPECT_THAT(
      told(job,
           "no worker here has template tiled in version 4 (old: version 3). Its trials wait; update a "
           "worker: run the daemon's release of measure_server there"),
      SizeIs(1));
  EXPECT_EQ(farm.state(job), JobState::kRunning);
  farm.work(enter("new", kOwn));
  EXPECT_EQ(farm.state(job), JobState::kFinished);
  EXPECT_EQ(measured(job, "tiled").size(), tiled);
}

TEST_F(Releases, AnOldWorkerThatSaysNothingIsGivenEverythingAsBefore) {
  const std::string mute = enter("mute", {});
  const std::string job = farm.submit(16);
  EXPECT_EQ(farm.work(mute), 16);
  EXPECT_EQ(farm.state(job), JobState::kFinished);
  EXPECT_EQ(shown("mute").other_release(), "");
  EXPECT_THAT(told(job, "gets no trials"), IsEmpty());
}

TEST_F(Releases, GivenBackForAnyOtherReasonATrialMayComeAgain) {
  const std::string worker = enter("w", kOwn);
  farm.submit(4);
  const v1::SyncReply first = farm.sync(worker, 4);
  ASSERT_EQ(first.leases_size(), 4);
  v1::SyncRequest request;
  for (const v1::Lease& lease : first.leases()) {
    FarmByHand::add_held(lease, v1::WAITING, request);
    *request.add_returned() = request.held(request.held_size() - 1);
  }
  request.clear_held();
  // Not the lease's template, or the version it wants.
  request.mutable_returned(0)->mutable_found()->set_name("another");
  request.mutable_returned(1)->mutable_found()->set_name(first.leases(1).template_name());
  request.mutable_returned(1)->mutable_found()->set_version(first.leases(1).template_version());
  EXPECT_EQ(farm.sync(worker, 4, request).leases_size(), 4);
  EXPECT_EQ(shown("w").other_release(), "");
}

TEST_F(Releases, ARaceGoesToAWorkerThatHasTheTemplatesOfAllFinalists) {
  const std::string old = enter("old", kOld, /*races=*/true), current = enter("new", kOwn, /*races=*/true);
  const std::string job = farm.submit(40);
  farm.work(current, 40);
  farm.pass(500);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(farm.sync(old, 4).leases_size(), 0);
  const v1::SyncReply reply = farm.sync(current, 4);
  ASSERT_EQ(reply.leases_size(), 1);
  std::set<std::string> raced;
  for (const v1::RaceCandidate& f : reply.leases(0).finalists()) raced.insert(f.template_name());
  EXPECT_THAT(raced, ElementsAre("plain", "tiled")) << "both templates have the same times";
}

TEST_F(Releases, WithoutSuchAWorkerTheTaskSaysThatItIsNotRaced) {
  enter("old", kOld, /*races=*/true);
  const std::string job = farm.submit(40);
  farm.work(enter("new", kOwn));
  farm.pass(500);
  EXPECT_THAT(told(job, "not raced: no worker here has the templates of all finalists"), SizeIs(1));
  EXPECT_EQ(farm.state(job), JobState::kFinished);
}

TEST_F(Releases, MeasuringAgainWhatNobodyHasFailsAtOnceWithTheReason) {
  const std::string job = farm.submit(16);
  farm.work(enter("new", kOwn));
  const TrialRow measured_once = measured(job, "tiled").at(0).trial;
  const std::string trial = measured_once.id;
  farm.pass(20'000);  // it is away
  enter("old", kOld, /*races=*/true);
  v1::RerunRequest rerun;
  rerun.set_trial_id(trial);
  v1::MeasureRecord record;
  const std::string why =
      "trial " + measured_once.name() + ": no worker here has template tiled in version 4 (old: version 3)";
  EXPECT_EQ(farm.coordinator->rerun(rerun, &record, [] { return false; }).message(), why);
  v1::RemeasureRequest remeasure;
  remeasure.set_trial_id(trial);
  v1::RaceResult race;
  EXPECT_EQ(farm.coordinator->remeasure(remeasure, &race, [] { return false; }).message(), why);
}

TEST_F(Releases, TrialsOfAnEarlierReleaseThatNobodyHasAnyMoreAreGivenUp) {
  const std::string job = farm.submit(16);
  const size_t tiled = std::ranges::count_if(
      farm.trials(job), [](const TrialWithRecord& t) { return t.trial.template_name == "tiled"; });
  ASSERT_GT(tiled, 0u);
  farm.restart({{"plain", 1}, {"tiled", 5}});
  const std::string worker = enter("w", {{"plain", 1}, {"tiled", 5}});
  farm.work(worker);
  farm.pass(20'000);
  farm.work(worker);
  EXPECT_EQ(farm.state(job), JobState::kFinished);
  size_t given_up = 0;
  for (const TrialWithRecord& t : measured(job, "tiled"))
    if (t.record->outcome == Outcome::kDeviceLost && t.trial.template_version == 4) ++given_up;
  EXPECT_EQ(given_up, tiled);
  EXPECT_THAT(told(job,
                   "given up: no worker here has template tiled in version 4 (w: version 5), nor has this "
                   "daemon's release"),
              SizeIs(1));
  EXPECT_THAT(told(job, "gets no trials"), IsEmpty()) << "the worker is of the daemon's release";
}

TEST_F(Releases, ARegistrationWithUnusableTemplatesIsRefused) {
  const auto refused = [&](const std::string& name, int version) {
    v1::RegisterRequest hello = farm.hello("w", "1", false);
    hello.add_templates()->set_name(name);
    hello.mutable_templates(0)->set_version(version);
    v1::RegisterReply reply;
    return farm.coordinator->register_worker(hello, &reply).message();
  };
  EXPECT_THAT(refused("tiled", 0), HasSubstr("template tiled: version: found 0, expected 1 to"));
  EXPECT_THAT(refused("", 1), HasSubstr("templates.name: found \"\""));
  EXPECT_THAT(refused("a b", 1), HasSubstr("templates.name: found \"a b\""));
  EXPECT_EQ(refused("tiled", 1), "");
}

TEST(ReleasesText, ALongListOfLacksIsCut) {
  std::vector<Lack> lacks;
  for (int i = 0; i < 10; ++i) lacks.push_back({{str("t", i), 2}, 1});
  const std::string text = lacks_text(lacks);
  EXPECT_THAT(text,
              HasSubstr("t7 (found version 1, expected version 2) and 2 more templates. Update the worker"));
  EXPECT_THAT(text, Not(HasSubstr("t8")));
}

TEST(ReleasesText, AReleaseHasEachOfItsTemplatesInOneVersion) {
  std::set<std::string> names;
  for (const TemplateVersion& own : own_templates()) {
    EXPECT_GE(own.version, 1) << own.name;
    EXPECT_TRUE(names.insert(own.name).second) << own.name;
  }
  EXPECT_TRUE(names.contains("matmul_cpu"));
}

// What jobs are told, of a farm's state alone: one worker, and trials of job j1 that wait.
class ReleasesOfAFarm : public testing::EmptyFarm {
 protected:
  ReleasesOfAFarm() : EmptyFarm({.no_worker_hint_ms = 5'000, .templates = kOwn}) {
    const Locked farm(farm_);
    EXPECT_TRUE(farm->workers.enter("session",
                                    {.life = {"old", "1"},
                                     .targets = {testing::kAnalyticTarget},
                                     .templates = {{"plain", 1}, {"tiled", 3}}},
                                    clock_.now));
  }
  void queue(const std::string& id, const TemplateVersion& needs) {
    const Work work{.task = {testing::kAnalyticKey, testing::kAnalyticTarget},
                    .template_name = needs.name,
                    .template_version = needs.version};
    Locked(farm_)->leases.enqueue({.id = id, .job_id = "j1", .work = work});
  }
  void pass(int64_t ms) {  // the worker is heard of
    clock_.now += ms;
    EXPECT_TRUE(Locked(farm_)->workers.begin_sync("session", 0, clock_.now));
  }
  static Needs of(const TemplateVersion& wanted) {
    return {.target = testing::kAnalyticTarget, .templates = {wanted}};
  }
  std::vector<std::string> lines() {
    lost_.clear();
    return unbuildable_to_tell(*Locked(farm_), "j1", options_, clock_.now, told_, lost_);
  }
  ReleasesTold told_;
  std::vector<LeaseTable::Loss> lost_;
};

TEST_F(ReleasesOfAFarm, OnlyWhatAWorkerWouldMeasureButForItsTemplatesIsBuiltByNobody) {
  const Locked farm(farm_);
  EXPECT_TRUE(nobody_builds(*farm, of({"tiled", 4}), clock_.now));
  EXPECT_FALSE(nobody_builds(*farm, of({"plain", 1}), clock_.now)) << "old has it";
  const Needs elsewhere{.target = "cuda -arch=sm_90a", .templates = {{"tiled", 4}}};
  EXPECT_FALSE(nobody_builds(*farm, elsewhere, clock_.now)) << "no worker is there at all";
  EXPECT_EQ(why_unbuildable(*farm, of({"plain", 1}), clock_.now), "");
}

TEST_F(ReleasesOfAFarm, WhatWaitsForAnUpdateIsToldOnceAfterAWhileAndAgainWhenItHasBeenBuiltMeanwhile) {
  queue("t1", {"plain", 1});
  queue("t2", {"tiled", 4});
  EXPECT_THAT(lines(), IsEmpty()) << "it has hardly waited";
  pass(4'999);
  EXPECT_THAT(lines(), IsEmpty());
  pass(1);
  EXPECT_THAT(lines(),
              ElementsAre(HasSubstr("template tiled in version 4 (old: version 3). Its trials wait")));
  EXPECT_THAT(lines(), IsEmpty()) << "told";
  EXPECT_THAT(lost_, IsEmpty());
  Locked(farm_)->leases.close("t2");
  EXPECT_THAT(lines(), IsEmpty());
  queue("t3", {"tiled", 4});
  EXPECT_THAT(lines(), IsEmpty());
  pass(5'000);
  EXPECT_THAT(lines(), SizeIs(1));
}

TEST_F(ReleasesOfAFarm, WhatTheDaemonHasNotEitherIsLostAndNamesItsTrials) {
  queue("t1", {"tiled", 2});
  queue("t2", {"tiled", 2});
  EXPECT_THAT(lines(), IsEmpty());
  pass(5'000);
  EXPECT_THAT(lines(), ElementsAre(HasSubstr("2 trials are given up: no worker here has template tiled")));
  ASSERT_THAT(lost_, SizeIs(2));
  EXPECT_EQ(lost_[0].trial_id + lost_[1].trial_id, "t1t2");
  EXPECT_THAT(lines(), IsEmpty());
  EXPECT_THAT(lost_, SizeIs(2)) << "the disk refused it: it comes again";
}

TEST_F(ReleasesOfAFarm, AWorkerThatLacksWhatAJobUsesIsALineOnce) {
  const std::set<Needs> needs{of({"plain", 1}), of({"tiled", 4}), of({"tiled", 2})};
  const auto lacks = [&] { return lacks_to_tell(*Locked(farm_), needs, kOwn, clock_.now, told_); };
  EXPECT_THAT(lacks(), ElementsAre("worker old " + kOldLine))
      << "not of version 2, which is of nobody's release";
  EXPECT_THAT(lacks(), IsEmpty());
  ASSERT_TRUE(Locked(farm_)->workers.note_lacks("session", {"plain", 1}, 0));
  EXPECT_THAT(lacks(), ElementsAre(HasSubstr("plain (found none, expected version 1)")));
}

}  // namespace
}  // namespace tuner
