// What a lease asks of the runner, and what of the runner's reply reaches a record: with the numbers of
// proto/record.proto.
#include "measure_server/worker/run_facts.h"

#include <gmock/gmock.h>

#include <limits>

#include "measure_server/worker/run_request.h"

namespace tuner {
namespace {

TEST(RunFacts, ANumberMarkedAsOfTheRunIsSetByItsName) {
  v1::MeasureRecord record;
  EXPECT_THAT(add_facts({{"page_faults", 1700}}, record), testing::IsEmpty());
  EXPECT_EQ(record.page_faults(), 1700);
}

TEST(RunFacts, NothingElseOfARecordIsSetWhateverACandidateSays) {
  v1::MeasureRecord record;
  record.set_peak_gflops(80);
  const std::string before = record.SerializeAsString();
  EXPECT_THAT(
      add_facts({{"peak_gflops", 1e9}, {"outcome", 1}, {"message", 0}, {"", 1}, {"faults", 3}}, record),
      testing::UnorderedElementsAre("peak_gflops", "outcome", "message", "", "faults"));
  EXPECT_EQ(record.SerializeAsString(), before);
}

WorkerCore::Built a_built() {
  WorkerCore::Built built;
  built.digest = "d1g3st";
  return built;
}

TEST(RunRequest, WhatALeaseDoesNotSayIsAsRecordProtoSays) {
  const RunRequest r = request_for(a_built());
  EXPECT_EQ(r.digest, "d1g3st");
  EXPECT_EQ(r.min_repeat_ms, 1);
  EXPECT_EQ(r.repeats, 9);
  EXPECT_EQ(r.precision, 0.02);
  EXPECT_EQ(r.run_timeout_s, 10);
  EXPECT_EQ(r.memory_limit_bytes, int64_t{4} << 30);
  EXPECT_EQ(r.patience_ms, 50) << "measure_server/README.md";
  EXPECT_FALSE(r.cold_constants);
  EXPECT_EQ(r.cut_above_ns, 0) << "nothing is known to be fast";
  EXPECT_EQ(r.slow_above_ns, 0);
}

TEST(RunRequest, WhatALeaseSaysIsAsked) {
  WorkerCore::Built built = a_built();
  v1::MeasureOptions& options = *built.lease.mutable_options();
  options.set_min_repeat_ms(2.5);
  options.set_repeats(31);
  options.set_run_timeout_s(7);
  options.set_memory_limit_bytes(5 << 20);
  options.set_constants("cold");
  options.set_precision(0.25);
  const RunRequest r = request_for(built);
  EXPECT_EQ(r.min_repeat_ms, 2.5);
  EXPECT_EQ(r.repeats, 31);
  EXPECT_EQ(r.run_timeout_s, 7);
  EXPECT_EQ(r.memory_limit_bytes, 5 << 20);
  EXPECT_TRUE(r.cold_constants);
  EXPECT_EQ(r.precision, 0.25);
  options.set_constants("warm");
  options.set_precision(-1);
  EXPECT_FALSE(request_for(built).cold_constants);
  EXPECT_EQ(request_for(built).precision, 0) << "all samples are taken";
}

TEST(RunRequest, ACandidateIsCutAboveTwiceTheBestOrWhatTheLeaseNames) {
  WorkerCore::Built built = a_built();
  built.best_ns = 1'000;
  EXPECT_EQ(request_for(built).cut_above_ns, 2'000);
  EXPECT_DOUBLE_EQ(request_for(built).slow_above_ns, 1'100);
  built.lease.mutable_options()->set_cut_factor(5);
  EXPECT_EQ(request_for(built).cut_above_ns, 5'000);
  built.lease.mutable_options()->set_cut_factor(-1);
  EXPECT_EQ(request_for(built).cut_above_ns, 0) << "never";
  EXPECT_EQ(request_for(built).slow_above_ns, 0);
}

TEST(RunRequest, AHeatMayTakeTheTimeOfAllItsFinalists) {
  v1::Lease lease;
  EXPECT_EQ(heat_request_for(lease, 3).run_timeout_s, 30);
  EXPECT_EQ(heat_request_for(lease, 3).memory_limit_bytes, int64_t{4} << 30);
  lease.mutable_options()->set_run_timeout_s(4);
  lease.mutable_options()->set_memory_limit_bytes(7 << 20);
  EXPECT_EQ(heat_request_for(lease, 6).run_timeout_s, 24);
  EXPECT_EQ(heat_request_for(lease, 6).memory_limit_bytes, 7 << 20) << "of each process";
}

// The answers that are kept back travel with their own inputs: without them an answer that was kept is not
// found.
TEST(RunRequest, EverySetOfInputsAndAnswersIsHandedOn) {
  BuildReply data;
  data.inputs = {{"a", "/a"}, {"b", "/b"}};
  data.references = {{"out", "/out"}, {"sum", "/sum"}};
  data.others = {{.inputs = {{"a", "/a2"}}, .references = {{"out", "/out2"}, {"sum", "/sum2"}}, .seed = 5},
                 {.inputs = {{"a", "/a3"}, {"b", "/b3"}}, .references = {{"out", "/out3"}}, .seed = 6}};
  RunRequest r;
  r.others.resize(7);  // of an earlier try
  take_data(data, r);
  const auto text = [](const std::vector<RunRequest::Data>& files) {
    std::string all;
    for (const RunRequest::Data& f : files) all += f.arg + "=" + f.path + " ";
    return all;
  };
  EXPECT_EQ(text(r.inputs), "a=/a b=/b ");
  EXPECT_EQ(text(r.references), "out=/out sum=/sum ");
  ASSERT_EQ(r.others.size(), 2u);
  EXPECT_EQ(text(r.others[0].inputs), "a=/a2 ");
  EXPECT_EQ(text(r.others[0].references), "out=/out2 sum=/sum2 ");
  EXPECT_EQ(text(r.others[1].inputs), "a=/a3 b=/b3 ");
  EXPECT_EQ(text(r.others[1].references), "out=/out3 ");
}

TEST(RunRequest, ARecordHasWhatTheRunnerFoundEachNumberInItsPlace) {
  RunReply reply;
  reply.outcome = Outcome::kOk, reply.message = "why", reply.isolation = "strict",
  reply.device_state = "1980 MHz";
  reply.run_ns = {11, 12}, reply.cpu_ns = {9, 10};
  reply.cut = true, reply.max_error = 0.5;
  reply.sentinel_before_ns = 1, reply.sentinel_after_ns = 2, reply.memory_before_ns = 3,
  reply.memory_after_ns = 4;
  reply.run_ms = 5, reply.check_ms = 6;
  reply.facts = {{"page_faults", 7}, {"not_one", 8}};
  v1::MeasureRecord record;
  EXPECT_THAT(take_reply(reply, record), testing::ElementsAre("not_one"));
  EXPECT_EQ(record.outcome(), v1::OK);
  EXPECT_EQ(record.message(), "why");
  EXPECT_THAT(record.run_ns(), testing::ElementsAre(11, 12));
  EXPECT_THAT(record.cpu_ns(), testing::ElementsAre(9, 10));
  EXPECT_TRUE(record.cut());
  EXPECT_EQ(record.max_error(), 0.5);
  EXPECT_EQ(record.sentinel_before_ns(), 1);
  EXPECT_EQ(record.sentinel_after_ns(), 2);
  EXPECT_EQ(record.memory_sentinel_before_ns(), 3);
  EXPECT_EQ(record.memory_sentinel_after_ns(), 4);
  EXPECT_EQ(record.run_ms(), 5);
  EXPECT_EQ(record.check_ms(), 6);
  EXPECT_EQ(record.isolation(), "strict");
  EXPECT_EQ(record.device_state(), "1980 MHz");
  EXPECT_EQ(record.page_faults(), 7);
  reply.max_error = std::numeric_limits<double>::infinity();
  take_reply(reply, record);
  EXPECT_EQ(record.max_error(), 0) << "no record has infinity";
}

// A neighbour makes a kernel slower by less than 2.5 times (sampling.h): only beyond that no second run is
// needed.
TEST(RunRequest, SlowerThanADisturbanceExplainsIsTwoAndAHalfTimesTheBest) {
  RunReply reply;
  reply.run_ns = {9'000, 2'501, 9'000};
  EXPECT_TRUE(surely_slower(reply, 1'000));
  reply.run_ns[1] = 2'499;
  EXPECT_FALSE(surely_slower(reply, 1'000)) << "the fastest sample decides";
  EXPECT_FALSE(surely_slower(reply, 0));
  reply.cut = true;
  EXPECT_TRUE(surely_slower(reply, 0));
}

}  // namespace
}  // namespace tuner
