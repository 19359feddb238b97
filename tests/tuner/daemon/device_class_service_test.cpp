// A daemon whose database knows a device from before targets named classes of devices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "proto/convert.h"
#include "templates/schedule_template.h"
#include "tests/db/store_fixture.h"
#include "tuner/daemon/coordinator.h"

namespace tuner {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr char kAny[] = "cuda -arch=sm_90a", kH200[] = "cuda -arch=sm_90a -device=h200";
constexpr char kOnH100[] = "NVIDIA H100 PCIe sm_90 | 114 multiprocessors | driver CUDA 13.0",
               kOnH200[] = "NVIDIA H200 sm_90 | 132 multiprocessors | driver CUDA 13.0";

class DeviceClassService : public ::testing::Test {
 protected:
  DeviceClassService() {
    MatmulWorkload w;
    w.m = w.n = w.k = 128;
    key_ = Workload(w).key();
    const AnyTemplate& t = *find_template("matmul_cuda");
    const auto instance = t.apply(Workload(w), *parse_target(kAny));
    const ConfigSpace& space = (*instance)->space();
    std::vector<TrialRow> rows;
    CHECK(store_->add_job(job_row("old", {{key_, kAny}})).is_ok());
    for (const ConfigIndex step : {1, 2}) {
      rows.push_back(trial_row("old", space.at((space.default_index() + step) % space.size()).to_text()));
      rows.back().template_name = t.name();
      rows.back().template_version = t.version();
    }
    CHECK(store_->add_trials(rows).is_ok());
    CHECK(store_->add_records({record(rows[0].id, 50, kOnH200), record(rows[1].id, 20, kOnH100)}).is_ok());
    CHECK(store_->set_job_state("old", JobState::kFinished, "").is_ok());
    of_h200_ = rows[0].config;
  }
  static MeasureRecord record(const std::string& trial, double ns, const char* hardware) {
    MeasureRecord r = ok_record(trial, {ns, ns, ns});
    r.environment = {.hardware = hardware, .toolchain = "nvrtc 13.0 cuda codegen 1", .host = "h"};
    return r;
  }
  // Submits the task for an H200 and measures its trials, each slower than what was known; returns the lease
  // of the race.
  v1::Lease race_of_a_job() {
    v1::SubmitRequest request;
    request.set_request_id("r");
    v1::TaskSpec* const task = request.add_tasks();
    task->set_workload_key(key_);
    task->set_target(kH200);
    request.set_trials(6);
    request.set_search("random");
    v1::SubmitReply reply;
    const Status submitted = coordinator_->submit(request, &reply);
    EXPECT_TRUE(submitted.is_ok()) << submitted.message();
    job_ = reply.job_id();
    coordinator_->turn();
    v1::RegisterRequest hello;
    hello.set_worker_id("w");
    hello.set_incarnation("1");
    hello.set_protocol(1);
    for (const char* target : {kAny, kH200}) hello.add_targets(target);
    hello.set_max_threads(1);
    hello.set_races(true);
    EXPECT_TRUE(coordinator_->register_worker(hello, &here_).is_ok());
    v1::SyncRequest news;
    for (int round = 0; round < 50; ++round) {
      const v1::SyncReply told = sync(news, /*slots=*/2);
      news.Clear();
      for (const v1::Lease& lease : told.leases()) {
        if (lease.finalists_size() > 0) return lease;
        MeasureRecord measured = record(lease.trial_id(), 1000 + round, kOnH200);
        measured.attempt = lease.attempt();
        to_proto(measured, news.add_results());
      }
    }
    std::string events;
    for (const auto& [seq, text] : store_->events(job_, 0, 100).value()) events += text + "\n";
    ADD_FAILURE() << "no race was leased; what the job told:\n" << events;
    return {};
  }
  v1::SyncReply sync(v1::SyncRequest news, int slots) {
    news.set_session(here_.session());
    news.set_free_slots(slots);
    v1::SyncReply told;
    Status status;
    coordinator_->sync(news, &told, [&](const Status& s) { status = s; });
    clock_.now += 100;
    coordinator_->turn();
    EXPECT_TRUE(status.is_ok()) << status.message();
    return told;
  }
  v1::QueryReply asked(const char* target) {
    v1::QueryRequest query;
    query.mutable_task()->set_workload_key(key_);
    query.mutable_task()->set_target(target);
    v1::QueryReply reply;
    const Status status = coordinator_->answers().query(query, &reply);
    EXPECT_TRUE(status.is_ok()) << status.message();
    return reply;
  }

  struct : Clock {
    int64_t now = 1'000'000;
    int64_t now_ms() const override { return now; }
  } clock_;
  TemporaryFolder folder_;
  std::unique_ptr<Store> store_ = must_open(folder_.file("t.db"));
  std::unique_ptr<Coordinator> coordinator_ = [&] {
    CoordinatorOptions options;
    options.by_hand = true;
    auto made = std::make_unique<Coordinator>(*store_, clock_, options);
    CHECK(made->start().is_ok());
    return made;
  }();
  v1::RegisterReply here_;
  std::string key_, of_h200_, job_;
};

TEST_F(DeviceClassService, AnswersAClassFromOldRowsOfTheDevice) {
  const v1::QueryReply h200 = asked(kH200), any = asked(kAny);
  ASSERT_TRUE(h200.found());
  EXPECT_EQ(h200.tuned().config(), of_h200_);
  EXPECT_EQ(h200.tuned().trials(), 1) << "those of the class";
  EXPECT_THAT(h200.answer().note(), HasSubstr("on a device of the class h200"));
  ASSERT_TRUE(any.found());
  EXPECT_NE(any.tuned().config(), of_h200_) << "the fastest of any device, as before";
  const v1::QueryReply h100 = asked("cuda -arch=sm_90a -device=h100");
  EXPECT_FALSE(h100.found());
}

// The job keeps to its own trials: those of before stand under another name, and so would its race.
TEST_F(DeviceClassService, AJobTriesTheOldAnswerAgainAndRacesItsOwnTrials) {
  const v1::Lease race = race_of_a_job();
  std::vector<TrialRow> mine;
  const std::vector<TrialWithRecord> trials = store_->trials(job_).value();
  for (const TrialWithRecord& t : trials) mine.push_back(t.trial);
  ASSERT_GE(mine.size(), 3u);
  EXPECT_NE(mine[0].config, of_h200_) << "the default comes first";
  EXPECT_EQ(mine[1].config, of_h200_) << "then what is known of the device";
  std::vector<std::string> configs;
  for (const v1::RaceCandidate& c : race.finalists()) {
    configs.push_back(c.config());
    EXPECT_TRUE(std::ranges::any_of(mine, [&](const TrialRow& t) { return t.id == c.trial_id(); }))
        << c.trial_id();
  }
  EXPECT_THAT(configs, Contains(of_h200_)) << "however slow it was";

  // Under the same conditions the fastest record answers, whatever its name.
  EXPECT_EQ(asked(kH200).tuned().time_ns(), 50);
  EXPECT_EQ(asked(kAny).tuned().time_ns(), 20);
}

}  // namespace
}  // namespace tuner
