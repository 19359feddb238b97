// A daemon on a free loopback port, and a worker that answers from a formula: what tests of the service begin
// with.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "measure.grpc.pb.h"
#include "proto/convert.h"
#include "tests/tuner/analytic_task.h"
#include "tuner/daemon/coordinator.h"
#include "tuner/daemon/server.h"
#include "tuning.grpc.pb.h"

namespace tuner::testing {

using testing::kAnalyticTarget;

inline void limit(grpc::ClientContext& context, std::chrono::milliseconds time = std::chrono::seconds(60)) {
  context.set_deadline(std::chrono::system_clock::now() + time);
}

// A daemon on a free loopback port.
class Daemon {
 public:
  explicit Daemon(
      const std::string& db, bool resume = false, int64_t ttl_ms = 15'000, int64_t take_over_ms = 0,
      const TaskSpaceFactory& make_space = [](const JobRow::Task&) { return analytic_space(6); }) {
    store = Store::open(db, Store::Mode::kWrite).value();
    CoordinatorOptions options;
    options.resume_jobs = resume;
    options.leases.ttl_ms = options.leases.restart_grace_ms = ttl_ms;
    options.take_over_ms = take_over_ms;
    options.no_worker_hint_ms = 200;
    options.make_space = make_space;
    options.check_task = [](const JobRow::Task& task) {
      return task.target == kAnalyticTarget ? Status::ok() : not_found("no template serves it");
    };
    coordinator = std::make_unique<Coordinator>(*store, clock, options);
    EXPECT_TRUE(coordinator->start().is_ok());
    server = Server::start(*coordinator, {"127.0.0.1:0"}).value();
    channel = grpc::CreateChannel(server->addresses()[0], grpc::InsecureChannelCredentials());
    jobs = v1::Jobs::NewStub(channel);
    workers = v1::Workers::NewStub(channel);
  }
  ~Daemon() {
    coordinator->stop("test is over");
    server->stop();
  }
  grpc::Status submit(v1::SubmitReply* reply, int trials, const std::string& request_id, bool fresh = false,
                      const std::string& search = "genetic") {
    v1::SubmitRequest request;
    request.set_request_id(request_id);
    v1::TaskSpec* task = request.add_tasks();
    task->set_workload_key(kAnalyticKey);
    task->set_target(kAnalyticTarget);
    request.set_trials(trials);
    request.set_search(search);
    request.set_fresh(fresh);
    grpc::ClientContext context;
    limit(context);
    return jobs->Submit(&context, request, reply);
  }
  // `began`: set once the daemon answers.
  grpc::Status watch(const std::string& job, std::vector<v1::JobEvent>* events, int64_t after = 0,
                     std::atomic<bool>* began = nullptr) {
    v1::WatchRequest request;
    request.set_job_id(job);
    request.set_after_seq(after);
    grpc::ClientContext context;
    limit(context);
    const auto reader = jobs->Watch(&context, request);
    v1::JobEvent event;
    while (reader->Read(&event)) {
      events->push_back(event);
      if (began != nullptr) *began = true;
    }
    return reader->Finish();
  }
  std::string register_worker(const std::string& id, const std::string& incarnation,
                              const std::string& target = kAnalyticTarget) {
    v1::RegisterRequest request;
    request.set_worker_id(id);
    request.set_incarnation(incarnation);
    request.set_protocol(1);
    request.add_targets(target);
    request.set_max_threads(4);
    v1::RegisterReply reply;
    grpc::ClientContext context;
    limit(context);
    EXPECT_TRUE(workers->Register(&context, request, &reply).ok());
    return reply.session();
  }
  grpc::Status sync(const v1::SyncRequest& request, v1::SyncReply* reply) {
    grpc::ClientContext context;
    limit(context);
    return workers->Sync(&context, request, reply);
  }
  v1::SyncReply lease(const std::string& session, int slots, int wait_ms = 5000) {
    v1::SyncRequest request;
    request.set_session(session);
    request.set_free_slots(slots);
    request.set_wait_ms(wait_ms);
    v1::SyncReply reply;
    EXPECT_TRUE(sync(request, &reply).ok());
    return reply;
  }

  SteadyClock clock;
  std::unique_ptr<Store> store;
  std::unique_ptr<Coordinator> coordinator;
  std::unique_ptr<Server> server;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::Jobs::Stub> jobs;
  std::unique_ptr<v1::Workers::Stub> workers;
};

inline v1::MeasureRecord answer(const v1::Lease& lease) {
  v1::MeasureRecord message;
  to_proto(analytic_record(lease.trial_id(), lease.attempt(), lease.config()), &message);
  return message;
}

// A worker in a thread: leases, answers from the formula, repeats results until they are acknowledged.
class FakeWorker {
 public:
  FakeWorker(Daemon& daemon, const std::string& id) : thread_([this, &daemon, id] { run(daemon, id); }) {}
  ~FakeWorker() {
    stop_ = true;
    thread_.join();
  }
  std::atomic<int> measured{0};

 private:
  void run(Daemon& daemon, const std::string& id) {
    v1::SyncRequest request;
    request.set_session(daemon.register_worker(id, "1"));
    request.set_free_slots(4);
    request.set_wait_ms(200);
    while (!stop_) {
      v1::SyncReply reply;
      if (!daemon.sync(request, &reply).ok()) return;
      request.clear_results();  // every reply acknowledges what was sent: the fake never loses one
      for (const v1::Lease& lease : reply.leases()) {
        *request.add_results() = answer(lease);
        ++measured;
      }
    }
  }
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace tuner::testing
