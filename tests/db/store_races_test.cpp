// Proposals and races: kept as given, read in order, and what a race changes in the answer to "which is
// best".
#include <gmock/gmock.h>

#include "db/open_race.h"
#include "db/plausible.h"
#include "tests/db/store_fixture.h"

namespace tuner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class RacesTest : public testing::Test {
 protected:
  void SetUp() override {
    store_ = must_open(path_);
    ASSERT_OK(store_->add_job(job_row("j1", {{"v1 work", "cpu one"}, {"v1 other", "cpu one"}})));
  }
  void measured(const std::string& id, double ns) { ASSERT_OK(store_->add_records({ok_record(id, {ns})})); }
  // Won by the first of `ids`, in which the first two tie.
  RaceRow race_of(const std::vector<std::string>& ids, int task_index = 0) {
    RaceRow race{
        .job_id = "j1", .task_index = task_index, .winner_trial_id = ids[0], .tie_set = {ids[0], ids[1]}};
    for (const std::string& id : ids)
      race.finalists.push_back({id, {100, 101.5, 99}, {50, 50, 51}, {0, 0, 1}});
    race.time_ns = 100, race.time_low_ns = 98, race.time_high_ns = 102;
    race.ratio = 2, race.ratio_low = 1.96, race.ratio_high = 2.04;
    race.regret_bound = 0.005;
    race.options = {.min_repeat_ms = 2, .processes = 7, .rounds = 3, .limit_s = 4};
    race.environment = {"cpu X", "llvm 22", 1, "w1", "", "host1"};
    race.finished_at_us = 1'700'000'002'000'000;
    return race;
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_.file("races.db");
  std::unique_ptr<Store> store_;
};

TEST_F(RacesTest, AProposalAndItsTrialsAreStoredTogetherAndReadInOrder) {
  std::vector<TrialRow> first = {trial_row("j1", "a=1"), trial_row("j1", "a=2")}, none;
  ProposalRow p{.job_id = "j1", .task_index = 0, .asked = 16, .donor_record_id = 3};
  ASSERT_OK(store_->add_trials(first, &p));
  EXPECT_EQ(p.count, 2);
  EXPECT_EQ(p.first_trial_seq, first[0].seq);
  EXPECT_EQ(first[1].seq, first[0].seq + 1);  // consecutive: first and count name them all
  measured(first[0].id, 10);
  ProposalRow exhausted{.job_id = "j1", .asked = 14, .observed_record_id = *store_->last_record_id()};
  ASSERT_OK(store_->add_trials(none, &exhausted));
  EXPECT_EQ(exhausted.first_trial_seq, 0);

  store_.reset();
  const auto rows = must_open(path_, Store::Mode::kRead)->proposals("j1");
  ASSERT_TRUE(rows.is_ok()) << rows.message();
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ((*rows)[0].seq, p.seq);
  EXPECT_EQ((*rows)[0].job_id, "j1");
  EXPECT_EQ((*rows)[0].asked, 16);
  EXPECT_EQ((*rows)[0].count, 2);
  EXPECT_EQ((*rows)[0].first_trial_seq, first[0].seq);
  EXPECT_EQ((*rows)[0].observed_record_id, 0);
  EXPECT_EQ((*rows)[0].donor_record_id, 3);
  EXPECT_EQ((*rows)[1].count, 0);
  EXPECT_EQ((*rows)[1].observed_record_id, exhausted.observed_record_id);
}

TEST_F(RacesTest, AProposalWithATrialOfAnotherTaskIsRefusedWhole) {
  std::vector<TrialRow> trials = {trial_row("j1", "a=1"), trial_row("j1", "b=1", /*task_index=*/1)};
  ProposalRow p{.job_id = "j1", .asked = 2};
  EXPECT_EQ(store_->add_trials(trials, &p).message(),
            "proposal of job j1, task 0: a trial is of job j1, task 1");
  EXPECT_TRUE(store_->trials("j1")->empty());
  EXPECT_TRUE(store_->proposals("j1")->empty());
}

TEST_F(RacesTest, RecordsComeInTheOrderTheyWereStoredEachOnce) {
  const auto ids = add_trials(*store_, "j1", {"a=1", "a=2", "a=3"});
  ASSERT_OK(store_->add_job(job_row("j2")));
  const std::string of_j2 = add_trials(*store_, "j2", {"a=1"})[0];
  measured(ids[2], 30);
  measured(of_j2, 5);
  measured(ids[0], 10);
  ASSERT_OK(
      store_->add_records({ok_record(ids[2], {31})}));  // closed already: an extra sample, never observed
  const auto all = *store_->records_after("j1", 0);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].record.trial_id, ids[2]);
  EXPECT_EQ(all[1].record.trial_id, ids[0]);
  EXPECT_LT(all[0].record_id, all[1].record_id);
  EXPECT_EQ(store_->trial(ids[0])->record_id, all[1].record_id);
  measured(ids[1], 20);
  const auto more = *store_->records_after("j1", all[1].record_id);
  ASSERT_EQ(more.size(), 1u);
  EXPECT_EQ(more[0].record.trial_id, ids[1]);
  EXPECT_EQ(more[0].record.run_ns, std::vector<double>{20});
  EXPECT_EQ(*store_->last_record_id(), more[0].record_id);
}

TEST_F(RacesTest, ARaceIsReadBackAsItWasStored) {
  const auto ids = add_trials(*store_, "j1", {"a=1", "a=2", "a=3"});
  RaceRow race = race_of(ids);
  ASSERT_OK(store_->add_race(race));
  store_.reset();
  const auto races = must_open(path_, Store::Mode::kRead)->races("j1");
  ASSERT_TRUE(races.is_ok()) << races.message();
  ASSERT_EQ(races->size(), 1u);
  const RaceRow& r = races->front();
  EXPECT_EQ(r.id, race.id);
  EXPECT_EQ(r.job_id, "j1");
  EXPECT_EQ(r.winner_trial_id, ids[0]);
  EXPECT_THAT(r.tie_set, ElementsAre(ids[0], ids[1]));
  ASSERT_EQ(r.finalists.size(), 3u);
  EXPECT_EQ(r.finalists[2].trial_id, ids[2]);
  EXPECT_THAT(r.finalists[2].samples_ns, ElementsAre(100, 101.5, 99));
  EXPECT_THAT(r.finalists[2].sentinel_ns, ElementsAre(50, 50, 51));
  EXPECT_THAT(r.finalists[2].process, ElementsAre(0, 0, 1));
  EXPECT_EQ(r.ratio_high, 2.04);
  EXPECT_EQ(r.regret_bound, 0.005);
  EXPECT_EQ(r.options.processes, 7);
  EXPECT_EQ(r.options.limit_s, 4);
  EXPECT_EQ(r.environment.host, "host1");
  EXPECT_EQ(r.finished_at_us, race.finished_at_us);
}

TEST_F(RacesTest, ARaceUnderWayOutlivesTheProcessWithItsLeases) {
  const std::vector<std::string> ids = add_trials(*store_, "j1", {"a=1", "a=2"});
  const OpenRaceRow race{.id = "race j1/1",
                         .job_id = "j1",
                         .finalists = ids,
                         .default_trial_id = ids[1],
                         .stored_trial_id = ids[0],
                         .options = {.min_repeat_ms = 2, .processes = 7, .rounds = 3, .limit_s = 4}};
  ASSERT_OK(store_->open_race(race));
  EXPECT_FALSE(store_->open_race(race)) << "its id must be new";
  EXPECT_EQ(store_->requeue_race("race j1/1", 0).code(), StatusCode::kNotFound) << "not leased";
  const auto leased = store_->lease_race("race j1/1", "w1", "i1");
  ASSERT_TRUE(leased.is_ok()) << leased.message();
  EXPECT_EQ(leased->attempt, 1);
  EXPECT_EQ(store_->lease_race("race j1/1", "w2", "i2").status().code(), StatusCode::kNotFound);

  store_.reset();
  store_ = must_open(path_);
  const auto open = store_->open_races("j1");
  ASSERT_TRUE(open.is_ok()) << open.message();
  ASSERT_EQ(open->size(), 1u);
  const OpenRaceRow& again = open->at(0);
  EXPECT_EQ(again.id, "race j1/1");
  EXPECT_EQ(again.job_id, "j1");
  EXPECT_EQ(again.finalists, ids);
  EXPECT_EQ(again.default_trial_id, ids[1]);
  EXPECT_EQ(again.stored_trial_id, ids[0]);
  EXPECT_EQ(again.options.processes, 7);
  EXPECT_EQ(again.state, TrialState::kLeased);
  EXPECT_EQ(again.worker_id, "w1");
  EXPECT_EQ(again.fencing, leased->fencing);
  ASSERT_OK(store_->requeue_race("race j1/1", 1));
  const auto next = store_->lease_race("race j1/1", "w2", "i2");
  ASSERT_TRUE(next.is_ok()) << next.message();
  EXPECT_EQ(next->attempt, 2);
  EXPECT_GT(next->fencing, leased->fencing) << "tokens grow over a restart, too";
  EXPECT_EQ(next->grants, (std::vector<Grant>{{1, "w1", "i1"}, {2, "w2", "i2"}}));
  EXPECT_EQ(store_->requeue_race("race j1/1", 1).code(), StatusCode::kNotFound) << "w1's lease is not w2's";
  EXPECT_EQ(store_->open_races("j1")->at(0).worker_id, "w2");
  ASSERT_OK(store_->end_race("race j1/1", nullptr, "no worker could run it"));
  EXPECT_EQ(*store_->race_grants("race j1/1"), next->grants) << "also when it has ended: results come late";
  EXPECT_EQ(store_->race_grants("race j9/1").status().code(), StatusCode::kNotFound);
}

TEST_F(RacesTest, ARaceEndsOnceHoweverOftenItsResultComes) {
  const std::vector<std::string> ids = add_trials(*store_, "j1", {"a=1", "a=2"});
  for (const std::string& id : ids) measured(id, 100);
  ASSERT_OK(store_->open_race({.id = "r", .job_id = "j1", .finalists = ids}));
  RaceRow wrong = race_of(ids);
  wrong.winner_trial_id = "t99";
  EXPECT_EQ(store_->end_race("r", &wrong, "").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(store_->open_races("j1")->size(), 1u) << "refused: it is still under way";
  RaceRow first = race_of(ids), second = race_of(ids);
  ASSERT_OK(store_->end_race("r", &first, ""));
  ASSERT_OK(store_->end_race("r", &second, ""));
  EXPECT_GT(first.id, 0);
  EXPECT_EQ(second.id, first.id);
  EXPECT_EQ(store_->races("j1")->size(), 1u);
  EXPECT_TRUE(store_->open_races("j1")->empty());
  EXPECT_EQ(store_->lease_race("r", "w1", "i1").status().code(), StatusCode::kNotFound) << "it has ended";

  ASSERT_OK(store_->open_race({.id = "lost", .job_id = "j1", .finalists = ids}));
  ASSERT_OK(store_->end_race("lost", nullptr, "no worker could run it"));
  EXPECT_EQ(store_->races("j1")->size(), 1u);
  EXPECT_TRUE(store_->open_races("j1")->empty());
  EXPECT_EQ(store_->end_race("never", nullptr, "").code(), StatusCode::kNotFound);
}

TEST_F(RacesTest, ARaceThatContradictsItselfIsRefused) {
  const auto ids = add_trials(*store_, "j1", {"a=1", "a=2", "a=3"});
  RaceRow stranger = race_of({ids[0], ids[1]});
  stranger.winner_trial_id = ids[2];
  EXPECT_THAT(store_->add_race(stranger).message(), HasSubstr("is no finalist"));
  RaceRow tied = race_of({ids[0], ids[1]});
  tied.tie_set.push_back(ids[2]);
  EXPECT_THAT(store_->add_race(tied).message(), HasSubstr("one of its ties is no finalist"));
  RaceRow no_time = race_of(ids);
  no_time.finalists[2].other_ns = {1e20};
  EXPECT_THAT(store_->add_race(no_time).message(), HasSubstr("a time of trial " + ids[2]));
  RaceRow uneven = race_of(ids);
  uneven.finalists[1].process.pop_back();
  EXPECT_THAT(store_->add_race(uneven).message(),
              HasSubstr("has 3 samples, 3 sentinel times and 2 process numbers, expected as many of each"));
  RaceRow infinite = race_of(ids);
  infinite.time_high_ns = 1e308 * 10;
  EXPECT_THAT(store_->add_race(infinite).message(),
              HasSubstr("time_high_ns is inf, expected a finite number"));
  EXPECT_TRUE(store_->races("j1")->empty());
}

TEST_F(RacesTest, ARaceOutranksAllTrialsUntilTheNextRace) {
  const auto ids = add_trials(*store_, "j1", {"a=1", "a=2", "a=3"});
  measured(ids[0], 104), measured(ids[1], 97), measured(ids[2], 300);
  EXPECT_EQ(store_->best("v1 work", "cpu one")->trial_id, ids[1]);  // by one lucky median
  RaceRow race = race_of({ids[0], ids[1]});
  ASSERT_OK(store_->add_race(race));
  const auto best = store_->best("v1 work", "cpu one");
  ASSERT_TRUE(best.is_ok()) << best.message();
  EXPECT_EQ(best->trial_id, ids[0]);
  EXPECT_EQ(best->config, "a=1");
  EXPECT_EQ(best->time_ns, 100);
  EXPECT_EQ(best->time_low_ns, 98);
  EXPECT_EQ(best->ratio_low, 1.96);
  EXPECT_EQ(best->race_id, race.id);
  EXPECT_EQ(best->finalists, 2);
  EXPECT_EQ(best->tied, 2);
  EXPECT_TRUE(best->certified);
  // A later trial that is faster than all of them, of a search that was stopped before its race, is a lucky
  // one until a race has seen it.
  const std::string later = add_trials(*store_, "j1", {"a=4"})[0];
  measured(later, 90);
  EXPECT_EQ(store_->best("v1 work", "cpu one")->trial_id, ids[0]);
  // The next race decides anew, also for the slower.
  RaceRow again = race_of({ids[0], later});
  again.time_ns = 103;
  ASSERT_OK(store_->add_race(again));
  EXPECT_EQ(store_->best("v1 work", "cpu one")->race_id, again.id);
}

// Databases put together: races that know nothing of each other's finalists stand beside each other.
TEST_F(RacesTest, OfRacesThatDidNotMeetTheFasterWinnerCounts) {
  const auto ids = add_trials(*store_, "j1", {"a=1", "a=2", "a=3", "a=4"});
  for (const std::string& id : ids) measured(id, 100);
  RaceRow fast = race_of({ids[0], ids[1]}), slow = race_of({ids[2], ids[3]});
  fast.time_ns = 90, slow.time_ns = 110;
  ASSERT_OK(store_->add_race(fast));
  ASSERT_OK(store_->add_race(slow));
  EXPECT_EQ(store_->best("v1 work", "cpu one")->race_id, fast.id);
  // A race that decided anew what another had decided is decided anew itself: the oldest does not come back.
  RaceRow second = race_of({ids[2], ids[0]}), third = race_of({ids[3], ids[2]});
  second.time_ns = 120, third.time_ns = 125;
  ASSERT_OK(store_->add_race(second));
  ASSERT_OK(store_->add_race(third));
  EXPECT_EQ(store_->best("v1 work", "cpu one")->race_id, third.id);
}

TEST_F(RacesTest, ARaceThatIsNotCertifiedDecidesNothingAndSaysWhy) {
  const auto ids = add_trials(*store_, "j1", {"a=1", "a=2", "a=3"});
  measured(ids[0], 104), measured(ids[1], 97), measured(ids[2], 99);
  RaceRow race = race_of({ids[1], ids[0]});
  race.certified = false;
  race.uncertified_why = "the machine is too disturbed";
  race.tie_set.clear();
  race.turns = 40, race.discarded = 30, race.disturbed = 6, race.slices = 900, race.retaken = 70;
  ASSERT_OK(store_->add_race(race));
  auto best = store_->best("v1 work", "cpu one");
  EXPECT_EQ(best->trial_id, ids[1]) << "the trials' order stands";
  EXPECT_EQ(best->time_ns, 97);
  EXPECT_FALSE(best->certified);
  EXPECT_EQ(best->uncertified_why, "the machine is too disturbed");
  EXPECT_EQ(best->race_id, 0);
  EXPECT_EQ(best->regret_bound, 0);
  const RaceRow stored = store_->races("j1")->front();
  EXPECT_FALSE(stored.certified);
  EXPECT_EQ(stored.uncertified_why, race.uncertified_why);
  EXPECT_EQ(stored.turns, 40);
  EXPECT_EQ(stored.discarded, 30);
  EXPECT_EQ(stored.disturbed, 6);
  EXPECT_EQ(stored.slices, 900);
  EXPECT_EQ(stored.retaken, 70);
  // What was certified before stays so.
  RaceRow calm = race_of({ids[0], ids[1]});
  ASSERT_OK(store_->add_race(calm));
  RaceRow again = race;
  ASSERT_OK(store_->add_race(again));
  best = store_->best("v1 work", "cpu one");
  EXPECT_EQ(best->race_id, calm.id);
  EXPECT_TRUE(best->certified);
}

// The noise of trials changes no answer: where a race certifies nothing, its winner, the answer of before,
// stays until a trial is certainly faster.
TEST_F(RacesTest, WithoutACertificateTheAnswerOfBeforeStaysWhileTrialsOverlap) {
  const auto ids = add_trials(*store_, "j1", {"a=1", "a=2", "a=3"});
  ASSERT_OK(store_->add_records({ok_record(ids[0], {100, 101, 99, 100, 102, 98, 100})}));
  ASSERT_OK(store_->add_records({ok_record(ids[1], {99, 100, 98, 99, 101, 97, 99})}));
  EXPECT_EQ(store_->best("v1 work", "cpu one")->trial_id, ids[1]) << "nothing raced yet";
  RaceRow race = race_of({ids[0], ids[1]});
  race.certified = false;
  race.uncertified_why = "the machine is too disturbed";
  race.tie_set.clear();
  ASSERT_OK(store_->add_race(race));
  EXPECT_EQ(store_->best("v1 work", "cpu one")->trial_id, ids[0]);
  EXPECT_FALSE(store_->best("v1 work", "cpu one")->certified);
  ASSERT_OK(store_->add_records({ok_record(ids[2], {80, 81, 79, 80, 82, 78, 80})}));
  EXPECT_EQ(store_->best("v1 work", "cpu one")->trial_id, ids[2]) << "certainly faster";
}

// Only the interval is too wide: the finalists were compared side by side, and a trial that looks faster lost
// there.
TEST_F(RacesTest, WhoWonACompleteRaceStaysWithoutACertificateBeforeTrialsThatLost) {
  const auto ids = add_trials(*store_, "j1", {"a=1", "a=2", "a=3"});
  measured(ids[0], 104), measured(ids[1], 97), measured(ids[2], 96);
  RaceRow race = race_of({ids[0], ids[1]});
  race.certified = false;
  race.uncertified_why = "the race knows the time only to +- 8 %";
  ASSERT_OK(store_->add_race(race));
  EXPECT_EQ(store_->best("v1 work", "cpu one")->trial_id, ids[2])
      << "it did not race, and is certainly faster";
  RaceRow of_all = race_of({ids[0], ids[1], ids[2]});
  of_all.certified = false;
  of_all.uncertified_why = race.uncertified_why;
  ASSERT_OK(store_->add_race(of_all));
  const auto best = store_->best("v1 work", "cpu one");
  EXPECT_EQ(best->trial_id, ids[0]);
  EXPECT_EQ(best->time_ns, 104) << "its trial's: the race publishes no time";
  EXPECT_FALSE(best->certified);
  EXPECT_EQ(best->race_id, 0);
}

// Winners of ties are not the fastest, so samples of another finalist may all be faster, by as much as a tie
// allows.
TEST_F(RacesTest, AWinnerMayBeSlowerByATie) {
  const auto ids = add_trials(*store_, "j1", {"a=1", "a=2"});
  RaceRow race = race_of(ids);
  for (double& ns : race.finalists[1].samples_ns) ns = 97.6;
  EXPECT_FALSE(why_contradicts_samples(race)) << "99 and more against 97.6";
  for (double& ns : race.finalists[1].samples_ns) ns = 96.5;
  ASSERT_TRUE(why_contradicts_samples(race));
  EXPECT_THAT(*why_contradicts_samples(race), HasSubstr("takes 99 ns and more"));
  // A stored answer stays unless another one is certainly faster: the race says how much faster that one may
  // be.
  race.won_by = WonBy::kStored;
  race.regret_bound = 0.05;
  EXPECT_FALSE(why_contradicts_samples(race));
  for (double& ns : race.finalists[1].samples_ns) ns = 94;
  EXPECT_TRUE(why_contradicts_samples(race)) << "99 and more, and the other one may be faster by 5 %";
  // One that left the race earlier was timed when the machine may have been calmer.
  race.finalists[1].process = {0, 0, 0};
  EXPECT_FALSE(why_contradicts_samples(race));
  race.finalists[1].process = {0, 1, 1};
  EXPECT_TRUE(why_contradicts_samples(race));
}

TEST_F(RacesTest, TheDefaultsTimeAndTheOtherFigureAreKeptBesideTheWinners) {
  const auto ids = add_trials(*store_, "j1", {"a=1", "a=2"});
  measured(ids[0], 104), measured(ids[1], 300);
  RaceRow race = race_of(ids);
  race.default_trial_id = ids[1];
  race.default_time_ns = 290;
  race.other_time_ns = 180;
  race.stored_trial_id = ids[0];
  race.won_by = WonBy::kStored;
  race.finalists[0].memory_ns = {7, 8, 9};
  race.finalists[0].other_ns = {180, 181};
  race.finalists[0].other_process = {0, 1};
  race.finalists[0].exact_clock = true;
  ASSERT_OK(store_->add_race(race));
  const auto best = store_->best("v1 work", "cpu one");
  EXPECT_EQ(best->default_time_ns, 290);
  EXPECT_EQ(best->default_trial_id, ids[1]);
  EXPECT_EQ(best->other_time_ns, 180);
  EXPECT_EQ(best->won_by, WonBy::kStored);
  EXPECT_EQ(best->memory_ns, raced_memory_ns(race.finalists[0]));
  EXPECT_GT(best->memory_ns, 0);
  const RaceRow stored = store_->races("j1")->front();
  EXPECT_EQ(stored.default_trial_id, ids[1]);
  EXPECT_EQ(stored.stored_trial_id, ids[0]);
  EXPECT_EQ(stored.won_by, WonBy::kStored);
  EXPECT_EQ(stored.finalists[0].memory_ns, race.finalists[0].memory_ns);
  EXPECT_EQ(stored.finalists[0].other_ns, race.finalists[0].other_ns);
  EXPECT_EQ(stored.finalists[0].other_process, race.finalists[0].other_process);
  EXPECT_TRUE(stored.finalists[0].exact_clock);
  EXPECT_FALSE(stored.finalists[1].exact_clock);
  const auto plain =
      store_->fastest_of_config({.workload_key = "v1 work", .target = "cpu one"}, "toy_x86", 3, "a=2");
  ASSERT_TRUE(plain.is_ok()) << plain.message();
  EXPECT_EQ(plain->trial.id, ids[1]);
  EXPECT_EQ(store_->fastest_of_config({.workload_key = "v1 work", .target = "cpu one"}, "toy_x86", 3, "a=9")
                .status()
                .code(),
            StatusCode::kNotFound);
}

// Times with cold constants are of another kind: trials, races and answers of each are apart.
TEST_F(RacesTest, ColdTimesNeverAnswerAWarmQuestionNorWarmOnesACold) {
  const auto warm = add_trials(*store_, "j1", {"a=1"});
  measured(warm[0], 100);
  JobRow job = job_row("j2");
  job.tasks[0].constants = Constants::kCold;
  job.options.constants = Constants::kCold;
  ASSERT_OK(store_->add_job(job));
  const auto cold = add_trials(*store_, "j2", {"a=1", "a=2"});
  measured(cold[0], 60), measured(cold[1], 50);
  EXPECT_EQ(store_->best("v1 work", "cpu one")->trial_id, warm[0]);
  auto best = store_->best("v1 work", "cpu one", {}, true, Constants::kCold);
  ASSERT_TRUE(best.is_ok()) << best.message();
  EXPECT_EQ(best->trial_id, cold[1]);
  EXPECT_EQ(best->constants, Constants::kCold);
  EXPECT_EQ(best->target, "cpu one");
  EXPECT_EQ(best->trials, 2);
  RaceRow race = race_of({cold[0], cold[1]});
  race.job_id = "j2";
  race.options.constants = Constants::kCold;
  ASSERT_OK(store_->add_race(race));
  EXPECT_EQ(store_->best("v1 work", "cpu one")->race_id, 0);
  EXPECT_EQ(store_->best("v1 work", "cpu one", {}, true, Constants::kCold)->race_id, race.id);
  EXPECT_THAT(store_->tasks().value(), testing::SizeIs(1));
  const auto tasks = store_->tasks(Constants::kCold);
  ASSERT_THAT(*tasks, testing::SizeIs(1));
  EXPECT_EQ(tasks->front().target, "cpu one");
  EXPECT_EQ(store_->job("j2")->tasks[0].constants, Constants::kCold);
  EXPECT_EQ(store_->trial(cold[0])->task.constants, Constants::kCold);
  EXPECT_EQ(store_->find_job(job.tasks, job.search, job.seed)->id, "j2");
  EXPECT_EQ(store_->find_job(job_row("j4").tasks, job.search, job.seed).status().code(),
            StatusCode::kNotFound)
      << "the same task with warm constants was never asked for alone";
}

TEST_F(RacesTest, AWinnerOfAnotherTemplateIsNoAnswerForThoseAskedFor) {
  std::vector<TrialRow> rows = {trial_row("j1", "a=1"), trial_row("j1", "a=2")};
  rows[0].template_name = "other_x86";
  ASSERT_OK(store_->add_trials(rows));
  measured(rows[0].id, 104), measured(rows[1].id, 97);
  RaceRow race = race_of({rows[0].id, rows[1].id});
  ASSERT_OK(store_->add_race(race));
  EXPECT_EQ(store_->best("v1 work", "cpu one")->trial_id, rows[0].id);
  const auto best = store_->best("v1 work", "cpu one", {"toy_x86"});
  EXPECT_EQ(best->trial_id, rows[1].id);
  EXPECT_EQ(best->time_ns, 97);
  EXPECT_EQ(best->race_id, 0);
}

// The winner of long ago, under another compiler, was 97 ns; measured again it takes 120.
TEST_F(RacesTest, WhatWasMeasuredAgainUnderAnotherCompilerCountsAsItWasThen) {
  const auto then = add_trials(*store_, "j1", {"a=1", "a=2", "a=5"});
  measured(then[0], 97), measured(then[1], 99), measured(then[2], 98);
  RaceRow old_race = race_of({then[0], then[1]});
  ASSERT_OK(store_->add_race(old_race));
  const auto measured_now = [&](const std::string& id, double ns) {
    MeasureRecord r = ok_record(id, {ns});
    r.environment.toolchain = "llvm 23";
    ASSERT_OK(store_->add_records({r}));
  };
  ASSERT_OK(store_->add_job(job_row("j2")));
  const auto now = add_trials(*store_, "j2", {"a=1", "a=2", "a=3"});
  measured_now(now[0], 120), measured_now(now[1], 110), measured_now(now[2], 130);
  // Before a race says so, the old answer stands.
  EXPECT_EQ(store_->best("v1 work", "cpu one")->trial_id, then[0]);
  RaceRow race = race_of({now[1], now[0]});
  race.job_id = "j2";
  race.time_ns = 112;
  race.environment.toolchain = "llvm 23";
  ASSERT_OK(store_->add_race(race));
  auto best = store_->best("v1 work", "cpu one");
  ASSERT_TRUE(best.is_ok()) << best.message();
  EXPECT_EQ(best->trial_id, now[1]);
  EXPECT_EQ(best->race_id, race.id);
  EXPECT_EQ(best->time_ns, 112);
  EXPECT_EQ(best->environment.toolchain, "llvm 23");
}

// A new compiler on a machine too disturbed to certify: what was certified under the old one holds no more,
// and the trials of the new one are in their order.
TEST_F(RacesTest, UnderAnotherCompilerARaceThatIsNotCertifiedTakesTheOldCertificateAway) {
  const auto then = add_trials(*store_, "j1", {"a=1", "a=2"});
  measured(then[0], 97), measured(then[1], 99);
  RaceRow old_race = race_of({then[0], then[1]});
  ASSERT_OK(store_->add_race(old_race));
  ASSERT_OK(store_->add_job(job_row("j2")));
  const auto now = add_trials(*store_, "j2", {"a=1", "a=2"});
  for (size_t i = 0; i < now.size(); ++i) {
    MeasureRecord r = ok_record(now[i], {i == 0 ? 120.0 : 110.0});
    r.environment.toolchain = "llvm 23";
    ASSERT_OK(store_->add_records({r}));
  }
  RaceRow race = race_of({now[1], now[0]});
  race.job_id = "j2";
  race.certified = false;
  race.uncertified_why = "the machine is too disturbed";
  race.environment.toolchain = "llvm 23";
  ASSERT_OK(store_->add_race(race));
  const auto best = store_->best("v1 work", "cpu one");
  ASSERT_TRUE(best.is_ok()) << best.message();
  EXPECT_EQ(best->trial_id, now[1]);
  EXPECT_EQ(best->time_ns, 110);
  EXPECT_FALSE(best->certified);
  EXPECT_EQ(best->environment.toolchain, "llvm 23");
}

// Times under another compiler, machine or harness are not compared with those of before.
TEST_F(RacesTest, AnotherMachineOrHarnessTakesTheOldCertificateAwayAndTheSameOneDoesNot) {
  const Environment same = {"cpu X", "llvm 22", 1, "w1", "", "host1"};
  for (const auto& [now, stays] :
       {std::pair(same, true), std::pair(Environment{"cpu Y", "llvm 22", 1}, false),
        std::pair(Environment{"cpu X", "llvm 22", 2}, false)}) {
    store_.reset();
    std::filesystem::remove(path_);
    SetUp();
    const auto ids = add_trials(*store_, "j1", {"a=1", "a=2"});
    measured(ids[0], 97), measured(ids[1], 99);
    RaceRow certified = race_of(ids), later = race_of(ids);
    ASSERT_OK(store_->add_race(certified));
    later.certified = false;
    later.environment = now;
    ASSERT_OK(store_->add_race(later));
    EXPECT_EQ(store_->best("v1 work", "cpu one")->certified, stays) << now.hardware << " " << now.harness_abi;
  }
}

// What was measured after the race of another day is not what that race measured again.
TEST_F(RacesTest, ARecordThatIsNewerThanTheUncertifiedRaceStands) {
  const auto then = add_trials(*store_, "j1", {"a=1", "a=2"});
  for (const std::string& id : then) {
    MeasureRecord r = ok_record(id, {120});
    r.environment.toolchain = "llvm 23";
    ASSERT_OK(store_->add_records({r}));
  }
  RaceRow race = race_of(then);
  race.certified = false;
  race.environment.toolchain = "llvm 23";
  ASSERT_OK(store_->add_race(race));
  ASSERT_OK(store_->add_job(job_row("j2")));
  const std::string now = add_trials(*store_, "j2", {"a=1"})[0];
  measured(now, 97);
  EXPECT_EQ(store_->best("v1 work", "cpu one")->trial_id, now);
}

// A time that was cut short is a bound, and no answer stays for a bound.
TEST_F(RacesTest, AWinnerThatWasCutDoesNotStayTheAnswer) {
  const auto ids = add_trials(*store_, "j1", {"a=1", "a=2"});
  MeasureRecord cut = ok_record(ids[0], {100, 101, 99});
  cut.cut = true;
  ASSERT_OK(store_->add_records({cut, ok_record(ids[1], {99, 101, 100})}));
  RaceRow race = race_of(ids);
  race.certified = false;
  ASSERT_OK(store_->add_race(race));
  EXPECT_EQ(store_->best("v1 work", "cpu one")->trial_id, ids[1]);
}

TEST_F(RacesTest, ARaceThatDidNotMeasureAnOldRaceAgainLeavesItTheAnswer) {
  const auto then = add_trials(*store_, "j1", {"a=1", "a=9"});
  measured(then[0], 97), measured(then[1], 98);
  RaceRow old_race = race_of(then);
  old_race.time_ns = 97;
  ASSERT_OK(store_->add_race(old_race));
  ASSERT_OK(store_->add_job(job_row("j2")));
  const auto now = add_trials(*store_, "j2", {"a=2", "a=3"});
  for (const std::string& id : now) {
    MeasureRecord r = ok_record(id, {110});
    r.environment.toolchain = "llvm 23";
    ASSERT_OK(store_->add_records({r}));
  }
  RaceRow race = race_of({now[0], now[1]});
  race.job_id = "j2";
  race.environment.toolchain = "llvm 23";
  ASSERT_OK(store_->add_race(race));
  EXPECT_EQ(store_->best("v1 work", "cpu one")->trial_id, then[0]);
}

// The same samples as in tests/measure_server/race_statistics_test.cpp, and the same time.
TEST(RacedTime, IsTheMeanOverProcessesOfTheirLowerQuartiles) {
  const RaceFinalist finalist{.trial_id = "t1",
                              .samples_ns = {100, 900, 102, 200, 204, 208},
                              .sentinel_ns = {10, 10, 10, 20, 20, 20},
                              .process = {0, 0, 0, 1, 1, 1}};
  EXPECT_NEAR(raced_time_ns(finalist), std::sqrt(101.0 * 202.0), 1e-9);
  EXPECT_EQ(raced_time_ns({.trial_id = "t2"}), 0);
  EXPECT_EQ(raced_memory_ns(finalist), 0) << "not timed";
}

}  // namespace
}  // namespace tuner
