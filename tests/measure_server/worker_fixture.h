// A worker to test: a daemon played by the test, over real gRPC; trials of real operators; the worker in the
// test's process or as a program. Used by worker_*_test.cpp.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "compiler_core/codegen/compile.h"
#include "measure.grpc.pb.h"
#include "measure_server/worker/builder_client.h"
#include "measure_server/worker/worker.h"
#include "templates/schedule_template.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/wait_until.h"

extern char** environ;

namespace tuner {

namespace fs = std::filesystem;

// Hands out its trials, keeps the first record of each, and misbehaves on request.
class FakeDaemon final : public v1::Workers::Service {
 public:
  explicit FakeDaemon(std::vector<v1::Lease> trials) : trials_(std::move(trials)) {}

  int lose_every = 0;         // every n-th Sync is worked on, but its reply is lost
  int forget_session_at = 0;  // at this Sync the daemon has started anew
  bool acknowledge = true;    // false: results are looked at and not taken
  bool drain_when_done = true;
  std::vector<grpc::Status> refusals;  // the answers to the first registrations

  grpc::Status Register(grpc::ServerContext*, const v1::RegisterRequest* request,
                        v1::RegisterReply* reply) override {
    std::lock_guard lock(mutex_);
    if (refused_ < refusals.size()) return refusals[refused_++];
    registrations_.push_back(*request);
    changed_.notify_all();
    session_ = str("session ", registrations_.size());
    reply->set_session(session_);
    reply->set_lease_ttl_ms(15'000);
    return grpc::Status::OK;
  }

  grpc::Status Sync(grpc::ServerContext* context, const v1::SyncRequest* request,
                    v1::SyncReply* reply) override {
    std::unique_lock lock(mutex_);
    const int number = ++syncs_;
    if (number == forget_session_at) session_ = "none";
    if (request->session() != session_) return {grpc::StatusCode::FAILED_PRECONDITION, "unknown session"};
    std::set<std::string> busy;
    for (const v1::HeldLease& held : request->held()) busy.insert(held.trial_id());
    for (const v1::MeasureRecord& record : request->results()) {
      ++results_seen_;
      busy.insert(record.trial_id());
      if (!acknowledge) continue;
      records_.emplace(record.trial_id(), record);
      v1::Ack* ack = reply->add_acks();
      ack->set_trial_id(record.trial_id());
      ack->set_attempt(record.attempt());
    }
    for (const v1::RaceResult& race : request->races()) {
      busy.insert(race.race_id());
      if (!acknowledge) continue;
      races_.emplace(race.race_id(), race);
      v1::Ack* ack = reply->add_acks();
      ack->set_trial_id(race.race_id());
      ack->set_attempt(race.attempt());
    }
    for (const v1::HeldLease& lease : request->returned()) {
      returned_.insert(lease.trial_id());
      if (lease.has_found()) found_[lease.trial_id()] = lease.found();
    }
    if (!request->unfit().empty()) unfit_ = request->unfit();
    changed_.notify_all();
    int slots = request->free_slots();
    for (const v1::Lease& trial : trials_) {
      if (slots == 0) break;
      if (busy.contains(trial.trial_id()) || records_.contains(trial.trial_id()) ||
          races_.contains(trial.trial_id()))
        continue;
      *reply->add_leases() = trial;
      --slots;
    }
    if (drain_when_done && records_.size() + races_.size() == trials_.size()) reply->set_drain(true);
    if (lose_every > 0 && number % lose_every == 0)
      return {grpc::StatusCode::UNAVAILABLE, "the reply is lost"};
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(request->wait_ms());
    while (reply->acks_size() + reply->leases_size() == 0 && !reply->drain() && !context->IsCancelled() &&
           std::chrono::steady_clock::now() < until)
      changed_.wait_for(lock, std::chrono::milliseconds(20));
    return grpc::Status::OK;
  }

  bool wait_for_records(size_t n, std::chrono::seconds limit) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, [&] { return records_.size() >= n; });
  }
  bool wait_for_results(int n, std::chrono::seconds limit) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, [&] { return results_seen_ >= n; });
  }
  // Why the worker was unfit last, once it was.
  std::string wait_for_unfit(std::chrono::seconds limit) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, limit, [&] { return !unfit_.empty(); });
    return unfit_;
  }
  std::set<std::string> returned() {
    std::lock_guard lock(mutex_);
    return returned_;
  }
  // What the worker had of the templates of leases that it gave back for that.
  std::map<std::string, v1::TemplateVersion> found() {
    std::lock_guard lock(mutex_);
    return found_;
  }
  bool wait_for_registrations(size_t n, std::chrono::seconds limit) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, [&] { return registrations_.size() >= n; });
  }
  void take_results() {
    std::lock_guard lock(mutex_);
    acknowledge = true;
  }
  std::map<std::string, v1::MeasureRecord> records() {
    std::lock_guard lock(mutex_);
    return records_;
  }
  std::map<std::string, v1::RaceResult> races() {
    std::lock_guard lock(mutex_);
    return races_;
  }
  std::vector<v1::RegisterRequest> registrations() {
    std::lock_guard lock(mutex_);
    return registrations_;
  }

 private:
  const std::vector<v1::Lease> trials_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string session_ = "none";
  int syncs_ = 0, results_seen_ = 0;
  size_t refused_ = 0;
  std::string unfit_;
  std::set<std::string> returned_;
  std::map<std::string, v1::TemplateVersion> found_;
  std::map<std::string, v1::MeasureRecord> records_;
  std::map<std::string, v1::RaceResult> races_;
  std::vector<v1::RegisterRequest> registrations_;
};

// `n` configs of a task drawn from a seed, of every template that serves it.
inline std::vector<v1::Lease> trials_of(const Workload& workload, const Target& target, int n,
                                        uint64_t seed) {
  const auto templates = templates_for(workload, target);
  EXPECT_TRUE(templates.is_ok()) << templates.message();
  std::mt19937_64 rng(seed);
  std::vector<v1::Lease> trials;
  for (int i = 0; i < n; ++i) {
    const AnyTemplate* t = (*templates)[static_cast<size_t>(i) % templates->size()];
    const auto instance = t->apply(workload, target);
    EXPECT_TRUE(instance.is_ok()) << instance.message();
    v1::Lease lease;
    lease.set_trial_id(str("trial-", i));
    lease.set_attempt(1);
    lease.set_fencing(1);
    lease.set_workload_key(workload.key());
    lease.set_target(target.name());
    lease.set_template_name(std::string(t->name()));
    lease.set_template_version(t->version());
    const ConfigSpace& space = (*instance)->space();
    lease.set_config(space.at(i == 0 ? space.default_index() : space.sample(rng)).to_text());
    lease.set_input_seed(1);
    lease.mutable_options()->set_repeats(3);
    lease.mutable_options()->set_cut_factor(-1);
    lease.mutable_options()->set_build_timeout_s(60);
    lease.mutable_options()->set_run_timeout_s(60);
    trials.push_back(lease);
  }
  return trials;
}

inline std::vector<v1::Lease> conv2d_trials(int n, uint64_t seed) {
  Conv2dWorkload w;
  w.in_channels = 16, w.in_height = 14, w.in_width = 13, w.out_channels = 32;
  w.kernel_height = w.kernel_width = 3;
  w.padding = {1, 1, 1, 1};
  w.bias = true;
  w.activation = Activation::kRelu;
  w.constant = {"weight"};
  // By name, as a daemon knows it.
  return trials_of(Workload(w), *parse_target(host_target(1).name()), n, seed);
}

class WorkerTest : public testing::Test {
 protected:
  void TearDown() override { stop_serving(); }
  // A test whose worker was killed calls this at its end: a call of that worker may still be in its daemon.
  void stop_serving() {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(2));
    server_.reset();
  }
  void serve(FakeDaemon& daemon) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
    builder.RegisterService(&daemon);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }
  // The worker in this process, until the daemon drains it.
  Status work(int device_builders = 0, int device = 0) {
    Result<std::unique_ptr<Worker>> worker =
        Worker::start({.worker_id = "w1",
                       .work_dir = dir_ + "/worker",
                       .runner = TUNER_RUNNER_PATH,
                       .make_maker = local_builders(TUNER_MEASURE_SERVER_PATH),
                       .device_builders = device_builders,
                       .device = device});
    RETURN_IF_ERROR(worker.status());
    const std::unique_ptr<DaemonLink> link = make_grpc_link({.address = address_});
    return (*worker)->run(*link);
  }
  // The worker as a program.
  pid_t spawn(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"--work-dir", dir_ + "/worker", "--worker-id", "w1"};
    words.insert(words.end(), more.begin(), more.end());
    return spawn_with(words);
  }
  // The same with these words only, beside daemon and runner.
  pid_t spawn_with(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {TUNER_MEASURE_SERVER_PATH, "--daemon", address_, "--runner",
                                      TUNER_RUNNER_PATH};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_t pid = -1;
    EXPECT_EQ(::posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), environ), 0);
    return pid;
  }
  // Its wait status; killed when it does not end in `limit`.
  static int wait_for_end(pid_t pid, std::chrono::seconds limit) {
    int status = 0;
    if (wait_until(limit, [&] { return ::waitpid(pid, &status, WNOHANG) == pid; })) return status;
    ADD_FAILURE() << "measure_server did not end in " << limit.count() << " s";
    ::kill(pid, SIGKILL);
    ::waitpid(pid, &status, 0);
    return status;
  }

  const TemporaryFolder temporary_;
  const std::string dir_ = temporary_.path(), address_ = "unix:" + dir_ + "/daemon.sock";
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace tuner
