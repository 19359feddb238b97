// The whole worker against a daemon played by the test: real builds, real runs, of real conv2d configs, on a
// GPU host too.
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mount.h>

#include <fstream>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/codegen_cuda/cuda.h"
#include "tests/measure_server/worker_fixture.h"

namespace tuner {
namespace {

using testing::HasSubstr;

class WorkerEndToEnd : public WorkerTest {};

TEST_F(WorkerEndToEnd, TwentyConv2dTrialsAreMeasuredAndRight) {
  FakeDaemon daemon(conv2d_trials(20, 11));
  serve(daemon);
  const Status status = work();
  EXPECT_TRUE(status.is_ok()) << status.message();
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

// The daemon here is one of before: it delivers again what was given back.
TEST_F(WorkerEndToEnd, ATemplateInAnotherVersionIsGivenBackWithTheVersionThatIsHereAndTheWorkerIsWell) {
  std::vector<v1::Lease> trials = conv2d_trials(3, 13);
  const int here = trials[1].template_version();
  trials[1].set_template_version(here + 1);
  trials[2].set_template_name("conv2d_abacus");
  FakeDaemon daemon(trials);
  serve(daemon);
  const Status status = work();
  EXPECT_TRUE(status.is_ok()) << status.message();
  auto found = daemon.found();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found["trial-1"].name(), trials[1].template_name());
  EXPECT_EQ(found["trial-1"].version(), here);
  EXPECT_EQ(found["trial-2"].name(), "conv2d_abacus");
  EXPECT_EQ(found["trial-2"].version(), 0);
  EXPECT_EQ(daemon.wait_for_unfit(std::chrono::seconds(0)), "");
  auto records = daemon.records();
  EXPECT_EQ(records["trial-0"].outcome(), v1::OK) << records["trial-0"].message();
  EXPECT_EQ(records["trial-1"].outcome(), v1::DEVICE_LOST) << "that daemon does not listen";

  std::map<std::string, int> said;
  const v1::RegisterRequest hello = daemon.registrations().front();
  for (const v1::TemplateVersion& t : hello.templates()) said[t.name()] = t.version();
  EXPECT_EQ(said[trials[1].template_name()], here);
  EXPECT_FALSE(said.contains("conv2d_abacus"));
  EXPECT_EQ(said.size(), all_templates().size());
}

// The daemon here is one of before: it delivers again what it does not see held.
TEST_F(WorkerEndToEnd, AWorkerWithAFullDiskLosesNoTrialAndGoesOnWhenThereIsRoom) {
  const std::string disk = dir_ + "/worker";
  fs::create_directories(disk);
  // Of this process and those it starts from now on.
  if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("tuner-test", disk.c_str(), "tmpfs", 0, "size=16m") != 0)
    GTEST_SKIP() << "no tmpfs can be mounted here (needs root)";
  FakeDaemon daemon(conv2d_trials(6, 21));
  serve(daemon);
  Result<std::unique_ptr<Worker>> worker =
      Worker::start({.worker_id = "w1",
                     .work_dir = disk,
                     .runner = TUNER_RUNNER_PATH,
                     .make_maker = local_builders(TUNER_MEASURE_SERVER_PATH)});
  ASSERT_TRUE(worker.is_ok()) << worker.message();
  {
    std::ofstream filler(disk + "/filler");
    for (int i = 0; i < 32 && filler; ++i) filler << std::string(1 << 20, 'x') << std::flush;
  }
  const std::unique_ptr<DaemonLink> link = make_grpc_link({.address = address_});
  Status status;
  std::thread working([&] { status = (*worker)->run(*link); });
  const std::string why = daemon.wait_for_unfit(std::chrono::seconds(60));
  EXPECT_THAT(why, HasSubstr("No space left on device"));
  fs::remove(disk + "/filler");
  working.join();
  EXPECT_TRUE(status.is_ok()) << status.message();
  EXPECT_EQ(daemon.records().size(), 6u);
  for (const auto& [id, record] : daemon.records()) EXPECT_EQ(record.outcome(), v1::OK) << record.message();
  ::umount2(disk.c_str(), MNT_DETACH);
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
  EXPECT_THAT(
      daemon.registrations()[0].targets(),
      testing::UnorderedElementsAre(host_target(1).name(), "npu", "cuda -arch=sm_90", "cuda -arch=sm_90a",
                                    "cuda -arch=sm_90 -device=fake", "cuda -arch=sm_90a -device=fake"));
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
  EXPECT_EQ(cubin->manifest.kind, binary_kind::kCubin);
}

// Its finalists reach the device, where this driver refuses them as it refuses the trials above. What races
// on a device are is in device_race_test.
TEST_F(WorkerOnAGpuHost, RacesFinalistsOnTheGpu) {
  MatmulWorkload w;
  w.m = w.n = w.k = 64;
  const std::vector<v1::Lease> trials = trials_of(Workload(w), *parse_target("cuda -arch=sm_90"), 2, 15);
  v1::Lease race = trials[0];
  race.set_trial_id("race 1");
  for (const v1::Lease& trial : trials) {
    v1::RaceCandidate* finalist = race.add_finalists();
    finalist->set_trial_id(trial.trial_id());
    finalist->set_template_name(trial.template_name());
    finalist->set_template_version(trial.template_version());
    finalist->set_config(trial.config());
  }
  FakeDaemon daemon({race});
  serve(daemon);
  const Status status = work();
  EXPECT_TRUE(status.is_ok()) << status.message();
  auto races = daemon.races();
  ASSERT_EQ(races.size(), 1u);
  const v1::RaceResult& result = races["race 1"];
  EXPECT_EQ(
      result.error(),
      "trial trial-0: build_error: cannot be loaded: cuModuleLoadData: CUDA_ERROR_INVALID_IMAGE (by the fake "
      "driver)");
  EXPECT_THAT(result.environment().hardware(), HasSubstr("Fake GPU sm_90"));
}

TEST_F(WorkerOnAGpuHost, MeasuresOnTheGpuItIsToldTo) {
  const std::string contexts = dir_ + "/contexts";
  setenv("TUNER_FAKE_CUDA_DEVICES", "2", 1);
  setenv("TUNER_FAKE_CUDA_LOG", contexts.c_str(), 1);
  MatmulWorkload w;
  w.m = w.n = w.k = 64;
  FakeDaemon daemon(trials_of(Workload(w), *parse_target("cuda -arch=sm_90"), 1, 15));
  serve(daemon);
  const Status status = work(/*device_builders=*/1, /*device=*/1);
  unsetenv("TUNER_FAKE_CUDA_DEVICES");
  unsetenv("TUNER_FAKE_CUDA_LOG");
  EXPECT_TRUE(status.is_ok()) << status.message();
  ASSERT_EQ(daemon.records().size(), 1u);
  EXPECT_EQ(daemon.records()["trial-0"].outcome(), v1::BUILD_ERROR) << "the driver was asked";
  std::ifstream log(contexts);
  std::string line;
  ASSERT_TRUE(std::getline(log, line));
  EXPECT_THAT(line, testing::StartsWith("context on device 1 "));
}

TEST_F(WorkerOnAGpuHost, SeveralBuildersWorkForOneDevice) {
  MatmulWorkload w;
  w.m = w.n = w.k = 64;
  std::vector<v1::Lease> trials = trials_of(Workload(w), *parse_target("cuda -arch=sm_90"), 12, 16);
  v1::Lease cpu = conv2d_trials(1, 16)[0];
  cpu.set_trial_id("cpu");
  trials.insert(trials.begin() + 5, cpu);
  FakeDaemon daemon(trials);
  serve(daemon);
  const Status status = work(/*device_builders=*/3);
  EXPECT_TRUE(status.is_ok()) << status.message();
  auto records = daemon.records();
  ASSERT_EQ(records.size(), 13u);
  for (const auto& [id, record] : records)
    if (id == "cpu")
      EXPECT_EQ(record.outcome(), v1::OK) << record.message();
    else
      EXPECT_NE(record.artifact_digest(), "") << id << ": " << record.message();
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

}  // namespace
}  // namespace tuner
