// The whole worker against a daemon played by the test, over real gRPC: real builds, real runs, of real
// conv2d configs; and the program itself, stopped, killed and started anew.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/codegen/compile.h"
#include "compiler_core/codegen_cuda/cuda.h"
#include "measure.grpc.pb.h"
#include "measure_server/worker/worker.h"
#include "templates/schedule_template.h"

extern char** environ;

namespace tuner {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

// Hands out its trials, keeps the first record of each, and misbehaves on request.
class FakeDaemon final : public v1::Workers::Service {
 public:
  explicit FakeDaemon(std::vector<v1::Lease> trials) : trials_(std::move(trials)) {}

  int lose_every = 0;         // every n-th Sync is worked on, but its reply is lost
  int forget_session_at = 0;  // at this Sync the daemon has started anew
  bool acknowledge = true;    // false: results are looked at and not taken
  bool drain_when_done = true;

  grpc::Status Register(grpc::ServerContext*, const v1::RegisterRequest* request,
                        v1::RegisterReply* reply) override {
    std::lock_guard lock(mutex_);
    registrations_.push_back(*request);
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
    changed_.notify_all();
    int slots = request->free_slots();
    for (const v1::Lease& trial : trials_) {
      if (slots == 0) break;
      if (busy.contains(trial.trial_id()) || records_.contains(trial.trial_id())) continue;
      *reply->add_leases() = trial;
      --slots;
    }
    if (drain_when_done && records_.size() == trials_.size()) reply->set_drain(true);
    if (lose_every > 0 && number % lose_every == 0)
      return {grpc::StatusCode::UNAVAILABLE, "the reply is lost"};
    const auto until = std::chrono::steady_clock::now() + milliseconds(request->wait_ms());
    while (reply->acks_size() + reply->leases_size() == 0 && !reply->drain() && !context->IsCancelled() &&
           std::chrono::steady_clock::now() < until)
      changed_.wait_for(lock, milliseconds(20));
    return grpc::Status::OK;
  }

  bool wait_for_records(size_t n, seconds limit) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, [&] { return records_.size() >= n; });
  }
  bool wait_for_results(int n, seconds limit) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, [&] { return results_seen_ >= n; });
  }
  void take_results() {
    std::lock_guard lock(mutex_);
    acknowledge = true;
  }
  std::map<std::string, v1::MeasureRecord> records() {
    std::lock_guard lock(mutex_);
    return records_;
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
  std::map<std::string, v1::MeasureRecord> records_;
  std::vector<v1::RegisterRequest> registrations_;
};

// `n` configs of a task drawn from a seed, of every template that serves it.
std::vector<v1::Lease> trials_of(const Workload& workload, const Target& target, int n, uint64_t seed) {
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

std::vector<v1::Lease> conv2d_trials(int n, uint64_t seed) {
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

class WorkerEndToEnd : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "worker_test_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    dir_ = name;
    address_ = "unix:" + dir_ + "/daemon.sock";
  }
  void TearDown() override {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now() + seconds(2));
    fs::remove_all(dir_);
  }
  void serve(FakeDaemon& daemon) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
    builder.RegisterService(&daemon);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }
  // The worker in this process, until the daemon drains it.
  Status work() {
    Result<std::unique_ptr<Worker>> worker = Worker::start({.worker_id = "w1",
                                                            .work_dir = dir_ + "/worker",
                                                            .runner = TUNER_RUNNER_PATH,
                                                            .program = TUNER_MEASURE_SERVER_PATH});
    RETURN_IF_ERROR(worker.status());
    const std::unique_ptr<DaemonLink> link = make_grpc_link(address_);
    return (*worker)->run(*link);
  }
  // The worker as a program.
  pid_t spawn() const {
    std::vector<std::string> words = {
        TUNER_MEASURE_SERVER_PATH, "--daemon",    address_, "--work-dir", dir_ + "/worker", "--runner",
        TUNER_RUNNER_PATH,         "--worker-id", "w1"};
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_t pid = -1;
    EXPECT_EQ(::posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), environ), 0);
    return pid;
  }
  // Its wait status; killed when it does not end in `limit`.
  static int wait_for_end(pid_t pid, seconds limit) {
    int status = 0;
    for (const auto until = std::chrono::steady_clock::now() + limit;
         std::chrono::steady_clock::now() < until; std::this_thread::sleep_for(milliseconds(10)))
      if (::waitpid(pid, &status, WNOHANG) == pid) return status;
    ADD_FAILURE() << "measure_server did not end in " << limit.count() << " s";
    ::kill(pid, SIGKILL);
    ::waitpid(pid, &status, 0);
    return status;
  }

  std::string dir_, address_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(WorkerEndToEnd, TwentyConv2dTrialsAreMeasuredAndRight) {
  FakeDaemon daemon(conv2d_trials(20, 11));
  serve(daemon);
  const auto start = std::chrono::steady_clock::now();
  const Status status = work();
  const double took_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_TRUE(status.is_ok()) << status.message();
  std::cout << "20 trials, start and end of the worker included: " << took_s << " s\n";
  ASSERT_EQ(daemon.records().size(), 20u);
  for (const auto& [id, record] : daemon.records()) {
    SCOPED_TRACE(id);
    ASSERT_EQ(record.outcome(), v1::OK) << record.message();
    EXPECT_GE(record.run_ns_size(), 1);
    EXPECT_EQ(record.cpu_ns_size(), record.run_ns_size());
    for (const double ns : record.run_ns()) EXPECT_GT(ns, 0);
    EXPECT_LE(record.max_error(), 1);
    EXPECT_GT(record.peak_gflops(), 0);
    EXPECT_GT(record.build_ms(), 0);
    EXPECT_GT(record.sentinel_before_ns(), 0);
    EXPECT_GT(record.sentinel_after_ns(), 0);
    EXPECT_EQ(record.options().repeats(), 3);
    EXPECT_EQ(record.environment().worker_id(), "w1");
    EXPECT_EQ(record.environment().worker_incarnation(), daemon.registrations()[0].incarnation());
    EXPECT_THAT(record.environment().toolchain(), HasSubstr("llvm"));
    EXPECT_NE(record.environment().hardware(), "");
    EXPECT_GT(record.finished_at().seconds(), 1'000'000'000);
    EXPECT_TRUE(load_artifact(dir_ + "/worker/artifacts", record.artifact_digest()).is_ok());
  }
  const v1::RegisterRequest hello = daemon.registrations()[0];
  EXPECT_THAT(hello.targets(), testing::Contains(host_target(1).name()));
  EXPECT_GE(hello.max_threads(), 1);
  EXPECT_EQ(fs::file_size(dir_ + "/worker/results.spool"), 0u);
}

TEST_F(WorkerEndToEnd, LostRepliesAndADaemonThatStartsAnewCostNoTrial) {
  FakeDaemon daemon(conv2d_trials(12, 12));
  daemon.lose_every = 3;
  daemon.forget_session_at = 5;
  serve(daemon);
  const Status status = work();
  EXPECT_TRUE(status.is_ok()) << status.message();
  EXPECT_EQ(daemon.records().size(), 12u);
  for (const auto& [id, record] : daemon.records()) EXPECT_EQ(record.outcome(), v1::OK) << record.message();
  const auto registrations = daemon.registrations();
  ASSERT_GE(registrations.size(), 2u);
  EXPECT_EQ(registrations[0].incarnation(), registrations[1].incarnation()) << "the same life, a new session";
}

TEST_F(WorkerEndToEnd, EachKindOfTroubleHasItsOutcomeAndTheOthersGoOn) {
  std::vector<v1::Lease> trials = conv2d_trials(5, 13);
  trials[1].set_config("tile_of_no_knob=3");
  trials[2].set_template_version(trials[2].template_version() + 1);
  FakeDaemon daemon(trials);
  serve(daemon);
  const Status status = work();
  EXPECT_TRUE(status.is_ok()) << status.message();
  auto records = daemon.records();
  ASSERT_EQ(records.size(), 5u);
  EXPECT_EQ(records["trial-0"].outcome(), v1::OK) << records["trial-0"].message();
  EXPECT_EQ(records["trial-1"].outcome(), v1::INVALID_CONFIG) << records["trial-1"].message();
  EXPECT_EQ(records["trial-2"].outcome(), v1::DEVICE_LOST) << records["trial-2"].message();
  EXPECT_THAT(records["trial-2"].message(), HasSubstr("run the same release"));
  EXPECT_EQ(records["trial-4"].outcome(), v1::OK) << records["trial-4"].message();
  for (const auto& [id, record] : records)
    if (record.outcome() != v1::OK) {
      EXPECT_EQ(record.run_ns_size(), 0) << id;
      EXPECT_NE(record.message(), "") << id;
    }
}

// A GPU host, played by the fake driver: cubins are compiled for real and refused by a driver that knows only
// its own, so every trial must come back as a build error that names the driver's call.
class WorkerOnAGpuHost : public WorkerEndToEnd {
 protected:
  void SetUp() override {
    WorkerEndToEnd::SetUp();
    if (const Status there = nvrtc_available(); !there.is_ok()) GTEST_SKIP() << there.message();
    setenv("TUNER_LIBCUDA", TUNER_FAKE_CUDA, 1);
  }
  void TearDown() override {
    unsetenv("TUNER_LIBCUDA");
    WorkerEndToEnd::TearDown();
  }
};

TEST_F(WorkerOnAGpuHost, MeasuresTheGpusTargetsBesideItsOwn) {
  MatmulWorkload w;
  w.m = w.n = w.k = 64;
  std::vector<v1::Lease> trials = trials_of(Workload(w), *parse_target("cuda -arch=sm_90"), 2, 15);
  v1::Lease cpu = conv2d_trials(1, 15)[0];
  cpu.set_trial_id("cpu");
  trials.push_back(cpu);
  FakeDaemon daemon(trials);
  serve(daemon);
  const Status status = work();
  EXPECT_TRUE(status.is_ok()) << status.message();
  EXPECT_THAT(daemon.registrations()[0].targets(),
              testing::UnorderedElementsAre(host_target(1).name(), "cuda -arch=sm_90", "cuda -arch=sm_90a"));
  auto records = daemon.records();
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records["cpu"].outcome(), v1::OK) << records["cpu"].message();
  EXPECT_THAT(records["cpu"].environment().toolchain(), HasSubstr("llvm"));
  const v1::MeasureRecord gpu = records["trial-0"];
  EXPECT_EQ(gpu.outcome(), v1::BUILD_ERROR);
  EXPECT_THAT(gpu.message(), HasSubstr("cannot be loaded: cuModuleLoadData: CUDA_ERROR_INVALID_IMAGE"));
  EXPECT_THAT(gpu.environment().toolchain(), HasSubstr("nvrtc"));
  EXPECT_THAT(gpu.environment().hardware(), HasSubstr("Fake GPU sm_90"));
  EXPECT_EQ(gpu.peak_gflops(), 2560);
  const Result<Artifact> cubin = load_artifact(dir_ + "/worker/artifacts", gpu.artifact_digest());
  ASSERT_TRUE(cubin.is_ok()) << cubin.message();
  EXPECT_EQ(cubin->manifest.kind, BinaryKind::kCubin);
}

TEST_F(WorkerEndToEnd, AHopelessCandidateIsCutAfterAWarmSample) {
  std::vector<v1::Lease> trials = conv2d_trials(1, 14);
  trials[0].set_best_ns(1);  // everything is slower than twice this
  trials[0].mutable_options()->set_cut_factor(2);
  FakeDaemon daemon(trials);
  serve(daemon);
  const Status status = work();
  EXPECT_TRUE(status.is_ok()) << status.message();
  const v1::MeasureRecord record = daemon.records()["trial-0"];
  EXPECT_EQ(record.outcome(), v1::OK) << record.message();
  EXPECT_TRUE(record.cut());
}

TEST_F(WorkerEndToEnd, AKilledWorkersResultsComeFromItsNextLifeUnderTheOldOne) {
  FakeDaemon daemon(conv2d_trials(6, 15));
  daemon.acknowledge = false;
  serve(daemon);
  const pid_t first = spawn();
  const bool seen = daemon.wait_for_results(2, seconds(120));
  ::kill(first, SIGKILL);
  wait_for_end(first, seconds(10));
  ASSERT_TRUE(seen) << "no result came in two minutes";
  const std::string old_life = daemon.registrations()[0].incarnation();

  daemon.take_results();
  const pid_t second = spawn();
  EXPECT_TRUE(daemon.wait_for_records(6, seconds(120)));
  const int status = wait_for_end(second, seconds(60));  // drained by the daemon
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  int from_old_life = 0;
  for (const auto& [id, record] : daemon.records()) {
    EXPECT_EQ(record.outcome(), v1::OK) << record.message();
    from_old_life += record.environment().worker_incarnation() == old_life ? 1 : 0;
  }
  EXPECT_GE(from_old_life, 1) << "what was measured before the kill is not measured again";
}

TEST_F(WorkerEndToEnd, SigtermFinishesWhatIsHeldReportsAndLeaves) {
  FakeDaemon daemon(conv2d_trials(200, 16));
  daemon.drain_when_done = false;
  serve(daemon);
  const pid_t pid = spawn();
  ASSERT_TRUE(daemon.wait_for_records(2, seconds(120)));
  ::kill(pid, SIGTERM);
  const int status = wait_for_end(pid, seconds(60));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_LT(daemon.records().size(), 200u);
  EXPECT_EQ(fs::file_size(dir_ + "/worker/results.spool"), 0u) << "everything measured was reported";
}

TEST_F(WorkerEndToEnd, WithoutADaemonItWaitsAndLeavesWhenTold) {
  const pid_t pid = spawn();
  std::this_thread::sleep_for(seconds(3));
  EXPECT_EQ(::kill(pid, 0), 0) << "it keeps trying";
  ::kill(pid, SIGTERM);
  const int status = wait_for_end(pid, seconds(30));
  EXPECT_TRUE(WIFEXITED(status)) << status;
}

}  // namespace
}  // namespace tuner
