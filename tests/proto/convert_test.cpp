// Messages and our types: what goes out comes back the same, and what a peer may not send is refused by
// field.
#include "proto/convert.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/db/record_values.h"

namespace tuner {
namespace {

using testing::HasSubstr;

MeasureRecord a_record() {
  MeasureRecord r{.trial_id = "t7", .attempt = 2, .outcome = Outcome::kOk, .message = "note"};
  r.run_ns = {1.5, 2.5};
  r.cpu_ns = {1.25, 0};
  r.cut = true;
  r.sentinel_before_ns = 10;
  r.sentinel_after_ns = 11;
  r.build_ms = 1;
  r.run_ms = 2;
  r.queue_ms = 3;
  r.artifact_digest = "abc";
  r.max_error = 0.5;
  r.peak_gflops = 99;
  r.device_state = "1980 MHz, 41 C";
  r.memory_sentinel_before_ns = 300;
  r.memory_sentinel_after_ns = 301;
  r.discarded = 2;
  r.read_gbps = 21.5;
  r.isolation = "strict";
  r.environment = {"cpu", "llvm", 1, "w", "i", "h"};
  r.options = {.min_repeat_ms = 2,
               .repeats = 3,
               .build_timeout_s = 4,
               .run_timeout_s = 5,
               .memory_limit_bytes = 6,
               .cut_factor = -1,
               .precision = 0.25,
               .constants = Constants::kCold};
  r.finished_at_us = 1'700'000'000'123'456;
  return r;
}

v1::MeasureRecord a_message() {
  v1::MeasureRecord m;
  to_proto(a_record(), &m);
  return m;
}

const char kKey[] = "v1 matmul b=1 m=8 n=8 k=8 ta=0 tb=0 bias=0 act=none dtype=float32 const=none";
const char kTarget[] = "llvm -mcpu=haswell -threads=1";

v1::SubmitRequest a_submission() {
  JobRow job{
      .request_id = "r", .tasks = {{kKey, kTarget}}, .trials = 64, .search = "random", .seed = ~uint64_t{0}};
  v1::SubmitRequest m;
  to_proto(job, /*fresh=*/true, &m);
  return m;
}

TEST(Convert, ARecordComesBackTheSame) {
  const auto back = from_proto(a_message());
  ASSERT_TRUE(back.is_ok()) << back.message();
  v1::MeasureRecord again;
  to_proto(*back, &again);
  EXPECT_EQ(again.SerializeAsString(), a_message().SerializeAsString());
  EXPECT_EQ(back->run_ns, a_record().run_ns);
  EXPECT_EQ(back->finished_at_us, a_record().finished_at_us);
  EXPECT_EQ(back->options.cut_factor, -1);
  EXPECT_EQ(back->options.constants, Constants::kCold);
  EXPECT_EQ(back->memory_sentinel_after_ns, 301);
  EXPECT_EQ(back->discarded, 2);
  EXPECT_EQ(back->read_gbps, 21.5);
  EXPECT_EQ(back->isolation, "strict");
  EXPECT_EQ(back->environment.worker_incarnation, "i");
}

TEST(Convert, EveryFieldOfARecordGoesThere) {
  const MeasureRecord record = record_of_distinct_values("t7");
  v1::MeasureRecord message;
  to_proto(record, &message);
  const auto back = from_proto(message);
  ASSERT_TRUE(back.is_ok()) << back.message();
  EXPECT_EQ(back->trial_id, "t7");
  EXPECT_EQ(values_of(*back), values_of(record));
}

// By the names of the messages, which peers of other releases know: what goes there and back by one
// description would not notice two fields that have changed places.
TEST(Convert, ARecordsFieldsStandUnderTheirNamesOnTheWire) {
  const v1::MeasureRecord m = a_message();
  EXPECT_EQ(m.trial_id(), "t7");
  EXPECT_EQ(m.attempt(), 2);
  EXPECT_EQ(m.outcome(), v1::OK);
  EXPECT_EQ(m.message(), "note");
  EXPECT_EQ(m.run_ns(1), 2.5);
  EXPECT_EQ(m.cpu_ns(0), 1.25);
  EXPECT_TRUE(m.cut());
  EXPECT_EQ(m.sentinel_before_ns(), 10);
  EXPECT_EQ(m.sentinel_after_ns(), 11);
  EXPECT_EQ(m.memory_sentinel_before_ns(), 300);
  EXPECT_EQ(m.memory_sentinel_after_ns(), 301);
  EXPECT_EQ(m.build_ms(), 1);
  EXPECT_EQ(m.run_ms(), 2);
  EXPECT_EQ(m.queue_ms(), 3);
  EXPECT_EQ(m.max_error(), 0.5);
  EXPECT_EQ(m.peak_gflops(), 99);
  EXPECT_EQ(m.read_gbps(), 21.5);
  EXPECT_EQ(m.discarded(), 2);
  EXPECT_EQ(m.environment().hardware(), "cpu");
  EXPECT_EQ(m.environment().toolchain(), "llvm");
  EXPECT_EQ(m.environment().worker_id(), "w");
  EXPECT_EQ(m.environment().worker_incarnation(), "i");
  EXPECT_EQ(m.environment().host(), "h");
  EXPECT_EQ(m.options().min_repeat_ms(), 2);
  EXPECT_EQ(m.options().repeats(), 3);
  EXPECT_EQ(m.options().build_timeout_s(), 4);
  EXPECT_EQ(m.options().run_timeout_s(), 5);
  EXPECT_EQ(m.options().memory_limit_bytes(), 6);
  EXPECT_EQ(m.options().precision(), 0.25);
}

// The names of record.proto are written by hand there, so they hold those of base/outcome.cpp to account.
TEST(Convert, OutcomesHaveTheNamesAndNumbersOfTheWire) {
  for (int n = v1::Outcome_MIN + 1; n <= v1::Outcome_MAX; ++n) {
    std::string name = v1::Outcome_Name(static_cast<v1::Outcome>(n));
    for (char& c : name) c = static_cast<char>(std::tolower(c));
    EXPECT_EQ(outcome_from_name(name), static_cast<Outcome>(n)) << name;
    EXPECT_EQ(outcome_name(static_cast<Outcome>(n)), name);
  }
}

// An order to build ends as a trial can, or is not made: build.proto, Built.
TEST(Convert, ABuildHasTheOutcomesOfATrialAndTwoOfItsOwn) {
  for (const char* name : {"ok", "invalid_config", "build_error", "build_timeout"}) {
    const auto outcome = build_outcome_from_name(name);
    ASSERT_TRUE(outcome) << name;
    EXPECT_EQ(build_outcome_name(*outcome), name);
    EXPECT_EQ(trial_outcome(*outcome), outcome_from_name(name)) << name;
  }
  for (const char* name : {"unable", "other_version"}) {
    const auto outcome = build_outcome_from_name(name);
    ASSERT_TRUE(outcome) << name;
    EXPECT_EQ(build_outcome_name(*outcome), name);
    EXPECT_EQ(trial_outcome(*outcome), std::nullopt) << name;
  }
  for (const char* name : {"crashed", "device_lost", "fine", ""})
    EXPECT_EQ(build_outcome_from_name(name), std::nullopt) << name;
}

TEST(Convert, EveryOutcomeAndJobStateComesBackTheSame) {
  for (int i = 1; i <= v1::Outcome_MAX; ++i) {
    const auto outcome = static_cast<Outcome>(i);
    EXPECT_EQ(*from_proto(to_proto(outcome), "outcome"), outcome);
  }
  for (int i = 1; i <= v1::JobState_MAX; ++i) {
    const auto state = static_cast<JobState>(i);
    EXPECT_EQ(*from_proto(to_proto(state), "state"), state);
  }
}

TEST(Convert, AnUnspecifiedOrUnknownOutcomeIsRefused) {
  v1::MeasureRecord m = a_message();
  m.set_outcome(v1::OUTCOME_UNSPECIFIED);
  EXPECT_EQ(from_proto(m).message(), "record.outcome: expected a known outcome, found number 0");
  m.set_outcome(static_cast<v1::Outcome>(77));
  EXPECT_EQ(from_proto(m).message(), "record.outcome: expected a known outcome, found number 77");
  m.set_outcome(static_cast<v1::Outcome>(-1));
  EXPECT_FALSE(from_proto(m).is_ok());
}

TEST(Convert, TimesThatAreNoTimesAreRefusedByPosition) {
  for (const double bad :
       {std::nan(""), HUGE_VAL, -HUGE_VAL, -1.0, 0.0, -0.0, 5e-324, 1e-310, 1e-300, 1e308}) {
    v1::MeasureRecord m = a_message();
    m.set_run_ns(1, bad);
    EXPECT_THAT(from_proto(m).message(),
                HasSubstr("record.run_ns[1]: expected 0.001 to 1e+15 ns a call, found "))
        << bad;
  }
  v1::MeasureRecord m = a_message();
  m.set_cpu_ns(0, std::nan(""));
  EXPECT_THAT(from_proto(m).message(), HasSubstr("record.cpu_ns[0]: "));
  m = a_message();
  m.set_build_ms(-1);
  EXPECT_EQ(from_proto(m).message(), "record.build_ms: expected a finite number >= 0, found -1");
  m = a_message();
  m.set_max_error(std::nan(""));
  EXPECT_EQ(from_proto(m).message(), "record.max_error: expected a number >= 0, found nan");
}

TEST(Convert, TooManySamplesOrResultsAreRefused) {
  v1::MeasureRecord m = a_message();
  while (m.run_ns_size() <= kMaxSamples) m.add_run_ns(1);
  EXPECT_EQ(from_proto(m).message(), "record.run_ns: expected at most 10000 items, found 10001");
  v1::SyncRequest sync;
  for (int i = 0; i < 65; ++i) *sync.add_results() = a_message();
  EXPECT_EQ(results_from_proto(sync).message(), "results: expected at most 64 items, found 65");
}

TEST(Convert, ABadResultOfManyIsNamed) {
  v1::SyncRequest sync;
  for (int i = 0; i < 3; ++i) *sync.add_results() = a_message();
  EXPECT_EQ(results_from_proto(sync)->size(), 3u);
  sync.mutable_results(2)->clear_trial_id();
  EXPECT_EQ(results_from_proto(sync).message(), "results[2].trial_id: expected a value, found nothing");
}

TEST(Convert, AnOkRecordNeedsASample) {
  v1::MeasureRecord m = a_message();
  m.clear_run_ns();
  EXPECT_EQ(from_proto(m).message(), "record.run_ns: expected a sample of an ok outcome, found none");
  m.set_outcome(v1::CRASHED);
  EXPECT_TRUE(from_proto(m).is_ok());
}

TEST(Convert, ATimestampOutsideTheCalendarIsRefused) {
  v1::MeasureRecord m = a_message();
  m.mutable_finished_at()->set_seconds(INT64_MAX);
  EXPECT_THAT(from_proto(m).message(), HasSubstr("record.finished_at.seconds: expected an integer from"));
  m.mutable_finished_at()->set_seconds(0);
  m.mutable_finished_at()->set_nanos(-1);
  EXPECT_THAT(from_proto(m).message(), HasSubstr("record.finished_at.nanos"));
}

TEST(Convert, ATextLargerThanTheLimitIsRefused) {
  v1::MeasureRecord m = a_message();
  m.set_message(std::string(kMaxTextBytes + 1, 'x'));
  EXPECT_EQ(from_proto(m).message(), "record.message: expected at most 65536 bytes, found 65537");
}

TEST(Convert, ZeroOptionsMeanTheDefaults) {
  const auto options = from_proto(v1::MeasureOptions{});
  ASSERT_TRUE(options.is_ok());
  EXPECT_EQ(options->repeats, MeasureOptions{}.repeats);
  EXPECT_EQ(options->min_repeat_ms, MeasureOptions{}.min_repeat_ms);
  EXPECT_EQ(options->cut_factor, MeasureOptions{}.cut_factor);
  EXPECT_EQ(options->precision, 0.02);
  v1::MeasureOptions bad;
  bad.set_repeats(-3);
  EXPECT_EQ(from_proto(bad).message(), "options.repeats: expected an integer from 1 to 10000, found -3");
}

TEST(Convert, NoPrecisionMeansAllSamplesNotTheDefault) {
  v1::MeasureOptions message;
  to_proto(MeasureOptions{.precision = 0}, &message);
  const auto options = from_proto(message);
  ASSERT_TRUE(options.is_ok()) << options.message();
  EXPECT_EQ(options->precision, 0);
  message.set_precision(std::nan(""));
  EXPECT_EQ(from_proto(message).message(), "options.precision: expected a finite number, found nan");
}

TEST(Convert, ASubmissionComesBackAsAJob) {
  const auto job = job_from_proto(a_submission());
  ASSERT_TRUE(job.is_ok()) << job.message();
  EXPECT_EQ(job->request_id, "r");
  EXPECT_EQ(job->tasks[0].workload_key, kKey);
  EXPECT_EQ(job->tasks[0].target, kTarget);
  EXPECT_EQ(job->trials, 64);
  EXPECT_EQ(job->seed, ~uint64_t{0});
}

TEST(Convert, ASubmissionOfSomethingImpossibleIsRefusedByField) {
  v1::SubmitRequest m = a_submission();
  m.mutable_tasks(0)->set_workload_key(
      "v1 matmul b=1 m=0 n=8 k=8 ta=0 tb=0 bias=0 act=none dtype=float32 const=none");
  EXPECT_THAT(job_from_proto(m).message(), HasSubstr("submit.tasks[0].workload_key: "));
  m = a_submission();
  m.mutable_tasks(0)->set_target("toaster");
  EXPECT_THAT(job_from_proto(m).message(), HasSubstr("submit.tasks[0].target: "));
  m = a_submission();
  m.mutable_tasks(0)->set_target("llvm -threads=1 -mcpu=haswell");
  EXPECT_THAT(job_from_proto(m).message(),
              HasSubstr("expected the canonical \"llvm -mcpu=haswell -threads=1\""));
  m = a_submission();
  m.clear_tasks();
  EXPECT_EQ(job_from_proto(m).message(), "submit.tasks: expected at least one, found none");
  m = a_submission();
  m.set_trials(0);
  EXPECT_EQ(job_from_proto(m).message(), "submit.trials: expected an integer from 1 to 10000000, found 0");
  m = a_submission();
  m.clear_request_id();
  EXPECT_EQ(job_from_proto(m).message(), "submit.request_id: expected a value, found nothing");
}

TEST(Convert, ATunedConfigComesBackTheSame) {
  TunedConfig t{.workload_key = kKey,
                .target = kTarget,
                .template_name = "matmul_cpu",
                .config = "a=1",
                .template_version = 2,
                .time_ns = 10,
                .time_low_ns = 9,
                .time_high_ns = 11,
                .peak_gflops = 50,
                .trial_id = "t3",
                .artifact_digest = "d",
                .trial_name = "j1.2",
                .trials = 12,
                .outcomes = {{Outcome::kOk, 10}, {Outcome::kCrashed, 2}}};
  t.environment = {"cpu", "llvm", 1, "w", "i", "h"};
  t.finished_at_us = 1'000'000;
  v1::TunedConfig m;
  to_proto(t, /*flops=*/1000, &m);
  EXPECT_EQ(m.gflops(), 100);
  const auto back = from_proto(m);
  ASSERT_TRUE(back.is_ok()) << back.message();
  EXPECT_EQ(back->config, "a=1");
  EXPECT_EQ(back->time_high_ns, 11);
  EXPECT_EQ(back->outcomes, t.outcomes);
  EXPECT_EQ(back->trial_name, "j1.2");
  m.clear_trial_name();
  EXPECT_EQ(from_proto(m)->trial_name, "t3") << "an older daemon knows ids only";
  m.mutable_outcomes(1)->set_outcome(v1::OUTCOME_UNSPECIFIED);
  EXPECT_THAT(from_proto(m).message(), HasSubstr("tuned.outcomes[1].outcome: "));
}

// Every figure another number, so that none takes another's place on either side.
TEST(Convert, EveryFigureOfATunedConfigKeepsItsPlace) {
  TunedConfig t{.workload_key = kKey,
                .target = kTarget,
                .template_name = "matmul_cpu",
                .config = "a=1",
                .trial_id = "t3"};
  t.template_version = 2;
  t.time_ns = 10, t.time_low_ns = 9, t.time_high_ns = 11;
  t.race_id = 12;
  t.ratio = 20, t.ratio_low = 19, t.ratio_high = 21, t.regret_bound = 0.3;
  t.finalists = 7, t.tied = 3, t.turns = 30, t.discarded = 4;
  t.won_by = WonBy::kStored;
  t.uncertified_why = "too wide";
  t.constants = Constants::kCold;
  t.other_time_ns = 13, t.default_time_ns = 14, t.memory_ns = 15, t.read_gbps = 16, t.peak_gflops = 17;
  t.default_trial_id = "t4";
  v1::TunedConfig m;
  to_proto(t, /*flops=*/1000, &m);
  EXPECT_EQ(m.time_low_ns(), 9);
  EXPECT_EQ(m.time_high_ns(), 11);
  EXPECT_EQ(m.ratio(), 20);
  EXPECT_EQ(m.ratio_low(), 19);
  EXPECT_EQ(m.ratio_high(), 21);
  EXPECT_EQ(m.finalists(), 7);
  EXPECT_EQ(m.tied(), 3);
  EXPECT_EQ(m.turns(), 30);
  EXPECT_EQ(m.discarded(), 4);
  EXPECT_FALSE(m.certified());
  EXPECT_EQ(m.constants(), "cold");
  EXPECT_EQ(m.other_time_ns(), 13);
  EXPECT_EQ(m.default_time_ns(), 14);
  EXPECT_EQ(m.default_trial(), "t4");
  EXPECT_EQ(m.won_by(), "stored");
  const Result<TunedConfig> read = from_proto(m);
  ASSERT_TRUE(read.is_ok()) << read.message();
  const TunedConfig& back = *read;
  EXPECT_EQ(back.template_version, 2);
  EXPECT_EQ(back.time_low_ns, 9);
  EXPECT_EQ(back.race_id, 12);
  EXPECT_EQ(back.ratio_low, 19);
  EXPECT_EQ(back.ratio_high, 21);
  EXPECT_EQ(back.regret_bound, 0.3);
  EXPECT_EQ(back.finalists, 7);
  EXPECT_EQ(back.tied, 3);
  EXPECT_EQ(back.turns, 30);
  EXPECT_EQ(back.discarded, 4);
  EXPECT_EQ(back.won_by, WonBy::kStored);
  EXPECT_FALSE(back.certified);
  EXPECT_EQ(back.uncertified_why, "too wide");
  EXPECT_EQ(back.constants, Constants::kCold);
  EXPECT_EQ(back.other_time_ns, 13);
  EXPECT_EQ(back.default_time_ns, 14);
  EXPECT_EQ(back.memory_ns, 15);
  EXPECT_EQ(back.read_gbps, 16);
  EXPECT_EQ(back.peak_gflops, 17);
  EXPECT_EQ(back.default_trial_id, "t4");
}

TEST(Convert, AnAnswerComesBackWithAllThatItSaysOfItself) {
  Answer a{.kind = AnswerKind::kSameFamily,
           .workload_key = kKey,
           .target = kTarget,
           .template_name = "matmul_cpu"};
  a.template_version = 5;
  a.config = "a=1";
  a.known = true;
  a.predicted = 0.5, a.low = 0.4, a.high = 0.6, a.predicted_default = 0.3;
  a.rests_on = {{"t1", "workload 1", "target 1", 11, 1'000'000, "j1.1"},
                {"t2", "workload 2", "target 2", 22, 2'000'000, "j1.2"}};
  a.learned_shapes = 7, a.learned_records = 8;
  a.stale = true, a.stale_reason = "compiler", a.note = "tune it";
  v1::Answer m;
  to_proto(a, /*flops=*/0, &m);
  EXPECT_EQ(m.kind(), v1::SAME_FAMILY);
  EXPECT_EQ(m.predicted(), 0.5);
  EXPECT_EQ(m.low(), 0.4);
  EXPECT_EQ(m.high(), 0.6);
  EXPECT_EQ(m.predicted_default(), 0.3);
  ASSERT_EQ(m.rests_on_size(), 2);
  EXPECT_EQ(m.rests_on(1).trial_id(), "t2");
  const Result<Answer> back = from_proto(m);
  ASSERT_TRUE(back.is_ok()) << back.message();
  EXPECT_EQ(back->kind, AnswerKind::kSameFamily);
  EXPECT_EQ(back->template_version, 5);
  EXPECT_EQ(back->low, 0.4);
  EXPECT_EQ(back->high, 0.6);
  EXPECT_EQ(back->predicted_default, 0.3);
  ASSERT_EQ(back->rests_on.size(), 2u);
  EXPECT_EQ(back->rests_on[1].workload_key, "workload 2");
  EXPECT_EQ(back->rests_on[1].target, "target 2");
  EXPECT_EQ(back->rests_on[1].time_ns, 22);
  EXPECT_EQ(back->rests_on[1].finished_at_us, 2'000'000);
  EXPECT_EQ(back->rests_on[1].trial_name, "j1.2");
  EXPECT_EQ(back->learned_shapes, 7);
  EXPECT_EQ(back->learned_records, 8);
  EXPECT_TRUE(back->known && back->stale && !back->tuned);
  EXPECT_EQ(back->stale_reason, "compiler");
  EXPECT_EQ(back->note, "tune it");
  m.set_kind(v1::ANSWER_KIND_UNSPECIFIED);
  EXPECT_EQ(from_proto(m).message(), "answer.kind: expected 1 to 5, found 0");
}

TEST(Convert, ASubmissionSaysHowToStopAndToMeasure) {
  JobRow job{.request_id = "r",
             .tasks = {{kKey, kTarget, "winograd", 5, Constants::kCold}},
             .trials = 64,
             .search = "grid"};
  job.stop = {.below = 0.05, .time_limit_s = 90};
  job.priority = 1;
  job.options.repeats = 7;
  v1::SubmitRequest m;
  to_proto(job, /*fresh=*/true, &m);
  EXPECT_TRUE(m.fresh());
  const auto back = job_from_proto(m);
  ASSERT_TRUE(back.is_ok()) << back.message();
  EXPECT_EQ(back->search, "grid");
  EXPECT_EQ(back->stop.below, 0.05);
  EXPECT_EQ(back->stop.time_limit_s, 90);
  EXPECT_EQ(back->priority, 1);
  EXPECT_EQ(back->options.repeats, 7);
  EXPECT_EQ(back->tasks[0].algorithms, "winograd");
  EXPECT_EQ(back->tasks[0].uses, 5);
  EXPECT_EQ(back->tasks[0].constants, Constants::kCold);
  m.mutable_stop()->set_below(5);
  EXPECT_EQ(job_from_proto(m).message(), "submit.stop.below: expected a chance from 0 to 1, found 5");
}

// What one message may carry, in numbers: tests of limits count with them.
TEST(Convert, TheLimitsOfMessagesAreTheseNumbers) {
  EXPECT_EQ(kMaxSamples, 10'000);
  EXPECT_EQ(kMaxResultsPerSync, 64);
  EXPECT_EQ(kMaxRacesPerSync, 16);
  EXPECT_EQ(kMaxFinalists, 64);
  EXPECT_EQ(kMaxBases, 64);
  EXPECT_EQ(kMaxHeldPerSync, 1'024);
  EXPECT_EQ(kMaxTasksPerJob, 4'096);
  EXPECT_EQ(kMaxTextBytes, 65'536u);
}

TEST(Convert, ALeaseComesBackTheSame) {
  TrialRow trial{
      .id = "t5", .template_name = "x", .template_version = 4, .config = "a=1", .attempt = 3, .fencing = 99};
  v1::Lease m;
  to_proto(trial, {kKey, kTarget}, MeasureOptions{}, &m);
  m.set_input_seed(7);
  m.set_best_ns(1.5);
  const auto back = from_proto(m);
  ASSERT_TRUE(back.is_ok()) << back.message();
  EXPECT_EQ(back->trial.id, "t5");
  EXPECT_EQ(back->trial.fencing, 99);
  EXPECT_EQ(back->trial.attempt, 3);
  EXPECT_EQ(back->task.target, kTarget);
  EXPECT_EQ(back->input_seed, 7u);
  EXPECT_EQ(back->best_ns, 1.5);
  m.set_best_ns(std::nan(""));
  EXPECT_THAT(from_proto(m).message(), HasSubstr("lease.best_ns"));
}

TEST(Convert, AJobSummaryComesBackAsAJob) {
  JobRow job{.id = "j1",
             .tasks = {{kKey, kTarget}},
             .trials = 8,
             .search = "grid",
             .seed = 3,
             .state = JobState::kRunning};
  job.submitted_at_us = 5'000'000;
  job.message = "two tasks wait";
  job.tenant = "team-a";
  job.options.repeats = 7;
  job.finished_at_us = 6'000'000;
  job.priority = -1;
  v1::JobSummary m;
  to_proto(job, &m);
  const auto back = from_proto(m);
  ASSERT_TRUE(back.is_ok()) << back.message();
  EXPECT_EQ(back->id, "j1");
  EXPECT_EQ(back->state, JobState::kRunning);
  EXPECT_EQ(back->submitted_at_us, 5'000'000);
  EXPECT_EQ(back->finished_at_us, 6'000'000);
  EXPECT_EQ(back->priority, -1);
  EXPECT_EQ(back->trials, 8);
  EXPECT_EQ(back->search, "grid");
  EXPECT_EQ(back->seed, 3u);
  EXPECT_EQ(back->message, "two tasks wait");
  EXPECT_EQ(back->tenant, "team-a");
  EXPECT_EQ(back->options.repeats, 7);
  m.set_state(v1::JOB_STATE_UNSPECIFIED);
  EXPECT_EQ(from_proto(m).message(), "job.state: expected a known job state, found number 0");
}

v1::RaceResult a_race() {
  v1::RaceResult r;
  r.set_race_id("race");
  v1::RaceFinalist* f = r.add_finalists();
  f->set_trial_id("t1");
  for (int i = 0; i < 3; ++i) {
    f->add_samples_ns(100);
    f->add_sentinel_ns(50);
    f->add_process(i);
    f->add_memory_ns(300);
    f->add_other_ns(200);
    f->add_other_process(i);
  }
  f->set_exact_clock(true);
  r.set_winner("t1");
  r.set_time_ns(100);
  r.set_time_low_ns(98);
  r.set_time_high_ns(102);
  r.set_certified(true);
  r.set_turns(12);
  r.set_discarded(3);
  r.set_disturbed(2);
  r.set_slices(300);
  r.set_retaken(12);
  r.set_default_trial("t1");
  r.set_default_time_ns(100);
  r.set_stored_trial("t1");
  r.set_won_by("stored");
  r.set_other_time_ns(200);
  r.mutable_options()->set_constants("cold");
  r.mutable_environment()->set_harness_abi(3);
  return r;
}

TEST(Convert, WhatARaceSaysBesideItsTimesIsKept) {
  const auto row = from_proto(a_race());
  ASSERT_TRUE(row.is_ok()) << row.message();
  EXPECT_TRUE(row->certified);
  EXPECT_EQ(row->turns, 12);
  EXPECT_EQ(row->discarded, 3);
  EXPECT_EQ(row->disturbed, 2);
  EXPECT_EQ(row->slices, 300);
  EXPECT_EQ(row->retaken, 12);
  EXPECT_EQ(row->default_trial_id, "t1");
  EXPECT_EQ(row->default_time_ns, 100);
  EXPECT_EQ(row->stored_trial_id, "t1");
  EXPECT_EQ(row->won_by, WonBy::kStored);
  EXPECT_EQ(row->other_time_ns, 200);
  EXPECT_EQ(row->options.constants, Constants::kCold);
  EXPECT_EQ(row->finalists[0].memory_ns, std::vector<double>(3, 300));
  EXPECT_EQ(row->finalists[0].other_ns, std::vector<double>(3, 200));
  EXPECT_EQ(row->finalists[0].other_process, (std::vector<int>{0, 1, 2}));
  EXPECT_TRUE(row->finalists[0].exact_clock);
}

TEST(Convert, ARaceComesBackAsItWasSent) {
  v1::RaceResult sent = a_race(), back;
  sent.add_tie_set("t1");
  sent.set_ratio(2);
  sent.set_ratio_low(1.9);
  sent.set_ratio_high(2.1);
  sent.set_regret_bound(0.01);
  to_proto(RaceOptions{.processes = 5, .limit_s = 7, .constants = Constants::kCold}, sent.mutable_options());
  to_proto(Environment{.hardware = "h", .toolchain = "t", .worker_id = "w", .host = "x"},
           sent.mutable_environment());
  to_proto(*from_proto(sent), &back);
  sent.clear_race_id();
  EXPECT_EQ(back.DebugString(), sent.DebugString());
  sent.set_certified(false);
  sent.set_uncertified_why("the machine is too disturbed");
  to_proto(*from_proto(sent), &(back = {}));
  EXPECT_EQ(back.DebugString(), sent.DebugString());
}

// A worker that does not know the word says nothing: its interval tells.
TEST(Convert, ARaceOfAnOlderWorkerIsCertifiedByItsInterval) {
  v1::RaceResult r = a_race();
  r.set_certified(false);
  EXPECT_TRUE(from_proto(r)->certified);
  r.set_time_high_ns(120);
  EXPECT_FALSE(from_proto(r)->certified);
  EXPECT_NE(from_proto(r)->uncertified_why, "");
  r.set_time_high_ns(102);
  r.set_uncertified_why("the machine is too disturbed");
  EXPECT_FALSE(from_proto(r)->certified);
  EXPECT_EQ(from_proto(r)->uncertified_why, "the machine is too disturbed");
}

TEST(Convert, ARaceThatContradictsItselfIsRefused) {
  v1::RaceResult r = a_race();
  r.set_default_trial("t9");
  EXPECT_EQ(from_proto(r).message(), "race.default_trial: expected one of the finalists or none, found t9");
  r = a_race();
  r.set_stored_trial("t9");
  EXPECT_EQ(from_proto(r).message(), "race.stored_trial: expected one of the finalists or none, found t9");
  r = a_race();
  r.set_won_by("luck");
  EXPECT_EQ(from_proto(r).message(),
            "race.won_by: expected fastest, stored, default, smallest or order, found luck");
  r = a_race();
  r.clear_won_by();
  EXPECT_EQ(from_proto(r)->won_by, WonBy::kFastest) << "a worker that does not know the word";
  r = a_race();
  r.mutable_finalists(0)->add_memory_ns(1);
  EXPECT_THAT(from_proto(r).message(), ::testing::HasSubstr("expected a memory sentinel beside each sample"));
  r = a_race();
  r.mutable_options()->set_constants("icy");
  EXPECT_EQ(from_proto(r).message(), "race.options.constants: expected warm or cold, found icy");
}

TEST(Convert, ATasksConstantsComeBackAndOldMessagesMeanWarm) {
  v1::TaskSpec spec;
  to_proto(JobRow::Task{kKey, kTarget, "", 1, Constants::kCold}, &spec);
  EXPECT_EQ(from_proto(spec)->constants, Constants::kCold);
  spec.clear_constants();
  EXPECT_EQ(from_proto(spec)->constants, Constants::kWarm);
  v1::Lease lease;
  to_proto(TrialRow{.id = "t1"}, JobRow::Task{kKey, kTarget, "", 1, Constants::kCold}, {}, &lease);
  EXPECT_EQ(lease.options().constants(), "cold") << "what its task says, whatever the job's options do";
}

}  // namespace
}  // namespace tuner
