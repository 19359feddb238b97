// A worker's core on a spool of its own, with leases, records and replies as a daemon and a runner would give
// them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "measure_server/worker/worker_core.h"
#include "tests/support/temporary_folder.h"

namespace tuner {

inline int64_t test_now_ms = 1'000;

inline v1::Lease lease(const std::string& trial, int attempt = 1,
                       const std::string& target = "llvm -mcpu=haswell -threads=1") {
  v1::Lease l;
  l.set_trial_id(trial);
  l.set_attempt(attempt);
  l.set_fencing(attempt * 10);
  l.set_workload_key("w");
  l.set_target(target);
  return l;
}

inline v1::MeasureRecord record(const std::string& trial, int attempt = 1,
                                const std::string& incarnation = "life 1") {
  v1::MeasureRecord r;
  r.set_trial_id(trial);
  r.set_attempt(attempt);
  r.set_outcome(v1::OK);
  r.mutable_environment()->set_worker_incarnation(incarnation);
  return r;
}

inline v1::SyncReply leases(const std::vector<v1::Lease>& all) {
  v1::SyncReply reply;
  for (const v1::Lease& l : all) *reply.add_leases() = l;
  return reply;
}

inline v1::SyncReply acks(const std::vector<std::string>& trials) {
  v1::SyncReply reply;
  for (const std::string& trial : trials) {
    v1::Ack* ack = reply.add_acks();
    ack->set_trial_id(trial);
    ack->set_attempt(1);
  }
  return reply;
}

inline v1::SyncReply revocation(const std::string& trial, int attempt = 1) {
  v1::SyncReply reply;
  v1::Ack* revoked = reply.add_revoked();
  revoked->set_trial_id(trial);
  revoked->set_attempt(attempt);
  return reply;
}

class WorkerCoreTest : public testing::Test {
 protected:
  void SetUp() override { start(); }
  void TearDown() override {
    core_.reset();
    spool_.reset();
  }
  // A new life of the worker on the same folder.
  void start(WorkerCore::Options options = {.slots = 4, .cpus = 2}) {
    core_.reset();
    spool_.reset();
    Result<std::unique_ptr<Spool>> spool = Spool::open(dir_ + "/results.spool");
    ASSERT_TRUE(spool.is_ok()) << spool.message();
    spool_ = *std::move(spool);
    options.now_ms = [] { return test_now_ms; };
    core_ = std::make_unique<WorkerCore>(options, *spool_);
  }
  // "trial phase" of every lease the worker says it holds.
  std::vector<std::string> held() const {
    std::vector<std::string> all;
    const v1::SyncRequest request = core_->make_request(0);
    for (const v1::HeldLease& h : request.held())
      all.push_back(h.trial_id() + " " + v1::LeasePhase_Name(h.phase()));
    return all;
  }
  std::vector<std::string> owed() const {
    std::vector<std::string> all;
    const v1::SyncRequest request = core_->make_request(0);
    for (const v1::MeasureRecord& r : request.results()) all.push_back(r.trial_id());
    return all;
  }
  std::vector<std::string> returned() const {
    std::vector<std::string> all;
    const v1::SyncRequest request = core_->make_request(0);
    for (const v1::HeldLease& h : request.returned()) all.push_back(h.trial_id());
    return all;
  }
  // The next lease goes through all phases.
  std::string do_next() {
    const std::optional<v1::Lease> next = core_->next_to_build();
    if (!next) return "";
    EXPECT_TRUE(core_->built(*next, {"digest", 1, 1}));
    const std::optional<WorkerCore::Built> run = core_->next_to_run();
    if (!run) return "";
    EXPECT_TRUE(core_->finish(run->lease, record(run->lease.trial_id(), run->lease.attempt())).is_ok());
    return run->lease.trial_id();
  }

  const TemporaryFolder temporary_;
  const std::string dir_ = temporary_.path();
  std::unique_ptr<Spool> spool_;
  std::unique_ptr<WorkerCore> core_;
};

}  // namespace tuner
