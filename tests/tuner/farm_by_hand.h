// A coordinator that is turned by hand, on a clock that the test moves: workers are sessions, and everything
// happens in the order in which it is written.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "db/blobs/blob_store.h"
#include "db/blobs/made_index.h"
#include "db/store.h"
#include "proto/convert.h"
#include "tests/tuner/analytic_task.h"
#include "tuner/daemon/coordinator.h"

namespace tuner::testing {

class FarmByHand {
 public:
  // `own`: the templates of its release, all of which serve every task.
  explicit FarmByHand(int width = 6, std::vector<TemplateVersion> own = kAnalyticTemplates)
      : own_(std::move(own)), width_(width) {
    start();
  }

  // As a restart of the daemon: sessions and tables are gone, the store and the workers live on.
  void restart() { restart(own_); }
  void restart(std::vector<TemplateVersion> own) {  // of another release
    coordinator.reset();
    made.reset();
    blobs.reset();
    store.reset();
    own_ = std::move(own);
    start();
  }
  void remove_blob(const std::string& sha256) {
    EXPECT_TRUE(std::filesystem::remove(folder_.path() / "artifacts" / sha256));
  }
  std::string submit(int trials, const std::string& search = "random", const std::string& request = "r1") {
    v1::SubmitRequest r;
    r.set_request_id(request);
    v1::TaskSpec* const task = r.add_tasks();
    task->set_workload_key(kAnalyticKey);
    task->set_target(kAnalyticTarget);
    r.set_trials(trials);
    r.set_search(search);
    r.set_fresh(true);
    v1::SubmitReply reply;
    const Status status = coordinator->submit(r, &reply);
    EXPECT_TRUE(status.is_ok()) << status.message();
    coordinator->turn();
    return reply.job_id();
  }
  v1::RegisterRequest hello(const std::string& worker, const std::string& life, bool races) const {
    v1::RegisterRequest request;
    request.set_worker_id(worker);
    request.set_incarnation(life);
    request.set_protocol(1);
    request.add_targets(kAnalyticTarget);
    request.set_max_threads(4);
    request.set_races(races);
    return request;
  }
  std::string enter(const v1::RegisterRequest& request) {
    v1::RegisterReply reply;
    const Status status = coordinator->register_worker(request, &reply);
    EXPECT_TRUE(status.is_ok()) << status.message();
    return reply.session();
  }
  std::string enter(const std::string& worker, const std::string& life = "1", bool races = false) {
    return enter(hello(worker, life, races));
  }
  v1::SyncReply sync(const std::string& session, int slots, v1::SyncRequest request = {}) {
    request.set_session(session);
    request.set_free_slots(slots);
    request.set_wait_ms(0);
    v1::SyncReply reply;
    std::optional<Status> answer;
    coordinator->sync(request, &reply, [&](const Status& status) { answer = status; });
    coordinator->turn();
    EXPECT_TRUE(answer && answer->is_ok()) << (answer ? answer->message() : "no answer");
    return reply;
  }
  // Lets time pass in steps that are no stall of the daemon.
  void pass(int64_t ms) {
    for (const int64_t end = clock.now + ms; clock.now < end;) {
      clock.now += 250;
      coordinator->turn();
    }
  }
  static v1::MeasureRecord honest(const v1::Lease& lease) {
    v1::MeasureRecord message;
    to_proto(analytic_record(lease.trial_id(), lease.attempt(), lease.config()), &message);
    return message;
  }
  static void add_held(const v1::Lease& lease, v1::LeasePhase phase, v1::SyncRequest& request) {
    v1::HeldLease* const held = request.add_held();
    held->set_trial_id(lease.trial_id());
    held->set_attempt(lease.attempt());
    held->set_fencing(lease.fencing());
    held->set_phase(phase);
  }
  // Answers what the session is given until nothing comes any more; then how many trials.
  int work(const std::string& session, int most = 1 << 30) {
    int measured = 0;
    v1::SyncRequest request;
    for (int idle = 0; idle < 3;) {
      clock.now += 10;
      const int slots = std::min(32, most - measured);
      const v1::SyncReply reply = sync(session, slots, std::exchange(request, {}));
      for (const v1::Lease& lease : reply.leases())
        if (lease.finalists_size() == 0) *request.add_results() = honest(lease), ++measured;
      idle = reply.leases_size() == 0 ? idle + 1 : 0;
    }
    return measured;
  }
  std::string database() const { return folder_.file("db"); }
  std::vector<TrialWithRecord> trials(const std::string& job) const { return store->trials(job).value(); }
  JobState state(const std::string& job) const { return store->job(job)->state; }

  struct : Clock {
    int64_t now = 1'000'000;
    int64_t now_ms() const override { return now; }
  } clock;
  std::unique_ptr<Store> store;
  std::unique_ptr<BlobStore> blobs;
  std::unique_ptr<MadeIndex> made;
  std::unique_ptr<Coordinator> coordinator;

 private:
  void start() {
    store = Store::open(folder_.file("db"), Store::Mode::kWrite).value();
    CoordinatorOptions options;
    blobs = BlobStore::open(folder_.file("artifacts"), int64_t{1} << 30).value();
    options.blobs = blobs.get();
    made = MadeIndex::open(folder_.file("made.db"), 1 << 12, "release").value();
    options.made = made.get();
    options.by_hand = true;
    options.resume_jobs = true;
    options.take_over_ms = 0;
    options.make_space = [this](const JobRow::Task&) { return analytic_space(width_, own_); };
    options.templates = own_;
    options.check_task = [](const JobRow::Task&) { return Status::ok(); };
    options.make_session = [this] { return str("s", ++sessions_); };
    options.wall_us = [this] { return clock.now * 1000 + ++order_ % 1000; };
    coordinator = std::make_unique<Coordinator>(*store, clock, options);
    EXPECT_TRUE(coordinator->start().is_ok());
    coordinator->turn();
  }
  TemporaryFolder folder_;
  std::vector<TemplateVersion> own_;
  const int width_;
  int sessions_ = 0;
  int64_t order_ = 0;
};

}  // namespace tuner::testing
