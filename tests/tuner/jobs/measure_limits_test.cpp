// B2: what one door lets in no later one refuses. Job file, Submit and runner are asked at each limit and
// just beyond it; a request that a runner refuses costs no worker its place; a lease has a longest time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <span>

#include "measure_server/runner/runner_protocol.h"
#include "tests/tuner/farm_by_hand.h"
#include "tuner/jobs/job_file.h"

namespace tuner {
namespace {

using testing::FarmByHand;
using ::testing::HasSubstr;
using testing::kAnalyticKey;
using testing::kAnalyticTarget;

// As docs/jobs_and_targets.md says them. `beyond`: the nearest value that no door takes.
struct Door {
  const char* name;
  double bound, beyond;
};
constexpr Door kUpper[] = {{"min_repeat_ms", 60'000, 60'000.5},
                           {"repeats", 1'000, 1'001},
                           {"precision", 1, 1.001},
                           {"build_timeout_s", 600, 600.5},
                           {"run_timeout_s", 600, 600.5},
                           {"memory_limit_bytes", 1LL << 40, (1LL << 40) + 1}};
constexpr Door kLower[] = {{"min_repeat_ms", 1e-6, -1},
                           {"repeats", 1, -1},
                           {"build_timeout_s", 1e-6, -1},
                           {"run_timeout_s", 1e-6, -1},
                           {"memory_limit_bytes", 1 << 20, (1 << 20) - 1}};

std::string number(double value) {
  return value == std::floor(value) ? str(static_cast<int64_t>(value)) : str(value);
}

Status by_job_file(const char* name, double value) {
  std::string key = name, text = number(value);
  if (key == "memory_limit_bytes") {
    key = "memory_limit_gib";
    char exact[64];
    std::snprintf(exact, sizeof exact, "%.17g", value / (1 << 30));
    text = exact;
  }
  return parse_job_text(R"([{"op":"matmul","a":[64,64],"b":[64,64],"target":"cpu","measure":{")" + key +
                            "\":" + text + "}}]",
                        "job.json")
      .status();
}

v1::SubmitRequest a_submit() {
  v1::SubmitRequest request;
  request.set_request_id("r");
  v1::TaskSpec* const task = request.add_tasks();
  task->set_workload_key(kAnalyticKey);
  task->set_target(kAnalyticTarget);
  request.set_trials(1);
  request.set_search("random");
  return request;
}

Status by_submit(const char* name, double value) {
  v1::SubmitRequest request = a_submit();
  v1::MeasureOptions& options = *request.mutable_options();
  const auto* const field = options.GetDescriptor()->FindFieldByName(name);
  const google::protobuf::Reflection& set = *options.GetReflection();
  switch (field->cpp_type()) {
    case google::protobuf::FieldDescriptor::CPPTYPE_INT32:
      set.SetInt32(&options, field, static_cast<int32_t>(value));
      break;
    case google::protobuf::FieldDescriptor::CPPTYPE_INT64:
      set.SetInt64(&options, field, static_cast<int64_t>(value));
      break;
    default:
      set.SetDouble(&options, field, value);
  }
  return job_from_proto(request).status();
}

// As a worker asks with such options.
RunRequest run_request(const char* name, double value) {
  RunRequest request;
  request.artifact_dir = "/d", request.digest = std::string(64, 'a');
  const std::string_view n = name;
  if (n == "min_repeat_ms") request.min_repeat_ms = value;
  if (n == "repeats") request.repeats = static_cast<int>(value);
  if (n == "precision") request.precision = value;
  if (n == "run_timeout_s") request.run_timeout_s = value;
  if (n == "memory_limit_bytes") request.memory_limit_bytes = static_cast<int64_t>(value);
  return request;
}
Status by_runner(const char* name, double value) {
  return parse_runner_message(to_json(run_request(name, value))).status();
}
Status by_race(const char* name, double value, int finalists = 1) {
  RaceRequest race{.base = run_request(name, value)};
  race.base.run_timeout_s *= finalists;
  race.candidates.resize(static_cast<size_t>(finalists), {.digest = std::string(64, 'b')});
  return parse_runner_message(to_json(race)).status();
}

TEST(MeasureLimits, B2EveryDoorTakesTheBoundAndNoneOfTheDoorsForJobsWhatLiesBeyond) {
  for (const auto& doors : {std::span<const Door>(kUpper), std::span<const Door>(kLower)})
    for (const Door& d : doors) {
      EXPECT_TRUE(by_job_file(d.name, d.bound).is_ok()) << by_job_file(d.name, d.bound).message();
      EXPECT_TRUE(by_submit(d.name, d.bound).is_ok()) << by_submit(d.name, d.bound).message();
      EXPECT_TRUE(by_runner(d.name, d.bound).is_ok()) << by_runner(d.name, d.bound).message();
      EXPECT_TRUE(by_race(d.name, d.bound).is_ok()) << by_race(d.name, d.bound).message();
      const Status file = by_job_file(d.name, d.beyond), submit = by_submit(d.name, d.beyond);
      EXPECT_EQ(file.code(), StatusCode::kInvalidArgument) << d.name << " of a job file: " << d.beyond;
      EXPECT_EQ(submit.code(), StatusCode::kInvalidArgument) << d.name << " of Submit: " << d.beyond;
      EXPECT_THAT(submit.message(), HasSubstr(str("submit.options.", d.name, ": expected a")));
    }
  EXPECT_THAT(
      by_submit("run_timeout_s", 1e9).message(),
      HasSubstr("submit.options.run_timeout_s: expected a number above 0 and at most 600, found 1e+09"));
  EXPECT_THAT(by_submit("repeats", 1'001).message(),
              HasSubstr("submit.options.repeats: expected an integer from 1 to 1000, found 1001"));
}

TEST(MeasureLimits, B2TheRunnerRefusesWhatLiesBeyondAndLetsAHeatTakeEachFinalistsTime) {
  // The runner builds nothing, and a limit of memory beyond the machine's harms nobody.
  for (const Door& d : kUpper) {
    const std::string_view name = d.name;
    const bool asked = name != "build_timeout_s" && name != "memory_limit_bytes";
    EXPECT_EQ(by_runner(d.name, d.beyond).is_ok(), !asked) << d.name;
  }
  EXPECT_TRUE(by_race("run_timeout_s", 600, 64).is_ok()) << by_race("run_timeout_s", 600, 64).message();
  EXPECT_FALSE(by_race("run_timeout_s", 601, 64).is_ok());
}

TEST(MeasureLimits, AHeatHasSoManyTurnsAndFinalists) {
  const auto asked = [](int rounds, size_t finalists) {
    RaceRequest race{.base = run_request("repeats", 9), .rounds = rounds};
    race.candidates.resize(finalists, {.digest = std::string(64, 'b')});
    return parse_runner_message(to_json(race)).status();
  };
  EXPECT_TRUE(asked(500, 64).is_ok()) << asked(500, 64).message();
  EXPECT_FALSE(asked(501, 64).is_ok());
  EXPECT_FALSE(asked(0, 64).is_ok());
  EXPECT_FALSE(asked(500, 65).is_ok());
  EXPECT_FALSE(asked(500, 0).is_ok());
}

TEST(MeasureLimits, B2JobsOfAnEarlierReleaseAreMeasuredWithinTheLimits) {
  FarmByHand farm;
  const std::string worker = farm.enter("w1");
  const std::string job = farm.submit(8);
  JobRow row = farm.store->job(job).value();
  row.id = "j2", row.request_id = "r2";
  row.options.repeats = 5'000, row.options.run_timeout_s = 1e9, row.options.memory_limit_bytes = 1;
  farm.work(worker);
  ASSERT_TRUE(farm.store->add_job(row).is_ok());
  farm.restart();
  const v1::SyncReply reply = farm.sync(farm.enter("w1"), 1);
  ASSERT_EQ(reply.leases_size(), 1);
  const v1::MeasureOptions& options = reply.leases(0).options();
  EXPECT_EQ(options.repeats(), 1'000);
  EXPECT_EQ(options.run_timeout_s(), 600);
  EXPECT_EQ(options.memory_limit_bytes(), 1 << 20);
}

// Eight trials are refused by the runner again and again, as by one of another release. Another tenant's go
// on.
TEST(MeasureLimits, B2ARefusedRequestEndsItsTrialAndPausesNoWorker) {
  FarmByHand farm;
  const std::string worker = farm.enter("w1");
  const std::string job = farm.submit(8);
  v1::SyncRequest request;
  // Trials with their attempts: a lease may be delivered twice.
  std::set<std::pair<std::string, int>> refused;
  for (int i = 0; i < 400 && !has_ended(farm.state(job)); ++i) {
    farm.clock.now += 10;
    const v1::SyncReply reply = farm.sync(worker, 4, std::exchange(request, {}));
    for (const v1::Lease& lease : reply.leases()) {
      v1::MeasureRecord& record = *request.add_results();
      record = FarmByHand::honest(lease);
      record.clear_run_ns();
      record.clear_cpu_ns();
      record.set_outcome(v1::DEVICE_LOST);
      record.set_message("the runner refuses the request");
      record.set_refused(true);
      refused.emplace(lease.trial_id(), lease.attempt());
    }
    EXPECT_EQ(farm.coordinator->now().workers_paused, 0u) << "after " << refused.size();
  }
  EXPECT_TRUE(has_ended(farm.state(job))) << refused.size() << " refusals and no end";
  EXPECT_LE(refused.size(), 8u * 5) << "a trial is given up after five faults";
  EXPECT_GE(refused.size(), 8u);
  farm.submit(3, "random", "r2");
  EXPECT_EQ(farm.work(worker), 3) << "the worker is as good as before";
}

TEST(MeasureLimits, B2ALeaseHasALongestTime) {
  FarmByHand farm;
  const std::string worker = farm.enter("w1"), other = farm.enter("w2");
  farm.submit(1);
  const v1::SyncReply leased = farm.sync(worker, 1);
  ASSERT_EQ(leased.leases_size(), 1);
  v1::SyncRequest at_it;
  FarmByHand::add_held(leased.leases(0), v1::RUNNING, at_it);
  // Ten seconds to build, ten to run, and what the table adds: no more than a quarter of an hour and a
  // minute.
  bool revoked = false;
  int64_t took_ms = 0;
  for (; took_ms < 3'600'000 && !revoked; took_ms += 1'000) {
    farm.clock.now += 1'000;
    revoked = farm.sync(worker, 1, at_it).revoked_size() > 0;
  }
  EXPECT_TRUE(revoked);
  EXPECT_GT(took_ms, 60'000);
  EXPECT_LE(took_ms, 960'000);
  const v1::SyncReply again = farm.sync(other, 1);
  ASSERT_EQ(again.leases_size(), 1) << "another worker has it next";
  EXPECT_EQ(again.leases(0).trial_id(), leased.leases(0).trial_id());
  EXPECT_EQ(again.leases(0).attempt(), 2);
}

// Behind others of its worker a lease waits an hour, and what it may take itself.
TEST(MeasureLimits, B2ALeaseThatNeverBeginsGoesToAnotherAfterAnHour) {
  FarmByHand farm;
  const std::string worker = farm.enter("w1");
  farm.submit(1);
  const v1::SyncReply leased = farm.sync(worker, 1);
  ASSERT_EQ(leased.leases_size(), 1);
  v1::SyncRequest waits;
  FarmByHand::add_held(leased.leases(0), v1::WAITING, waits);
  int64_t took_s = 0;
  for (bool revoked = false; took_s < 10'000 && !revoked; took_s += 2) {
    farm.clock.now += 2'000;
    revoked = farm.sync(worker, 1, waits).revoked_size() > 0;
  }
  EXPECT_GE(took_s, 3'600);
  EXPECT_LE(took_s, 3'600 + 960);
}

}  // namespace
}  // namespace tuner
