// Builders here, runners there, as programs over TCP: what a full worker finds alone they find together,
// whoever is killed meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>

#include "compiler_core/codegen_cuda/cuda.h"
#include "compiler_core/runtime/cuda_fit.h"
#include "tests/chaos/fault_proxy.h"
#include "tests/random_seed.h"
#include "tests/tuner/cli/real_job.h"

namespace tuner {
namespace {

using namespace std::chrono_literals;
using testing::address_of;
using ::testing::AllOf;
using ::testing::AnyOf;
using testing::eventually;
using ::testing::HasSubstr;
using testing::Process;
using testing::RealJob;
using ::testing::StartsWith;

class BuildersRunners : public ::testing::Test {
 protected:
  void SetUp() override { serve("127.0.0.1:0"); }
  void serve(const std::string& listen) {
    serve_.reset();
    serve_ = start(job.tuner({"serve", "--listen", listen, "--db", job.db}), "serve");
    ASSERT_TRUE(eventually(30s, [&] { return !address_of(*serve_).empty(); })) << serve_->err();
    address_ = address_of(*serve_);
    if (!link_)
      link_ = std::make_unique<chaos::FaultProxy>(std::stoi(address_.substr(address_.rfind(':') + 1)));
  }
  std::unique_ptr<Process> start(const std::vector<std::string>& words, const std::string& name) {
    return std::make_unique<Process>(words, job.folder.file(str(name, ++started_)));
  }
  std::unique_ptr<Process> worker(const std::string& program, const std::string& id,
                                  const std::vector<std::string>& more = {},
                                  std::vector<std::string> words = {}) {
    for (const std::string& word :
         std::vector<std::string>{std::string(TUNER_BIN_DIR) + "/" + program, "--daemon", link_->address(),
                                  "--worker-id", id, "--work-dir", job.folder.file(id),
                                  "--shared-dir",  // nothing but the daemon is between them
                                  job.folder.file(id + "-shared")})
      words.push_back(word);
    words.insert(words.end(), more.begin(), more.end());
    return start(words, id);
  }
  std::unique_ptr<Process> builder() { return worker("measure_server", "builder", {"--kind", "builder"}); }
  std::unique_ptr<Process> runner() { return worker("measure_runner", "runner"); }
  // One with a GPU of ours, whose driver refuses what NVRTC makes: it knows the modules of its own tests
  // only.
  std::unique_ptr<Process> gpu_runner(int driver) {
    return worker("measure_runner", "runner", {},
                  {"/usr/bin/env", str("TUNER_LIBCUDA=", TUNER_FAKE_CUDA),
                   str("TUNER_LIBNVML=", TUNER_FAKE_CUDA), str("TUNER_FAKE_CUDA_DRIVER=", driver)});
  }
  void use_gpu_job() const {
    std::ofstream(job.file)
        << R"({"op": "matmul", "a": [64, 64], "b": [64, 64], "target": "cuda -arch=sm_90"})";
  }

  RealJob job;
  std::unique_ptr<Process> serve_;
  std::string address_;
  std::unique_ptr<chaos::FaultProxy> link_;  // between the daemon and its workers
  int started_ = 0;
};

TEST_F(BuildersRunners, AJobIsBuiltHereMeasuredThereAndRaced) {
  const auto builds = builder(), runs = runner();
  Process submit(job.submit(48, {"--daemon", address_}), job.folder.file("submit"));
  ASSERT_EQ(submit.wait(180s), 0) << submit.out() << submit.err() << runs->err() << builds->err();
  job.expect_complete(48);
  for (const auto& [id, t] : job.recorded()) {
    EXPECT_EQ(t.record->environment.worker_id, "runner");
    EXPECT_THAT(t.record->environment.toolchain, StartsWith("llvm ")) << "the builder's";
    EXPECT_FALSE(t.record->isolation.empty());
  }
  EXPECT_THAT(submit.out(), AnyOf(HasSubstr("a race of"), HasSubstr("no race that decides")));
  {
    const auto store = Store::open(job.db, Store::Mode::kRead).value();
    const std::vector<RaceRow> races = store->races(store->jobs().value().at(0).id).value();
    ASSERT_EQ(races.size(), 1u);
    EXPECT_GE(races[0].finalists.size(), 2u);
    EXPECT_EQ(races[0].environment.worker_id, "runner") << "finalists race on the runner, too";
  }
  EXPECT_FALSE(std::filesystem::exists(job.folder.file("builder-shared/calm_pulses")))
      << "a builder measures nothing";

  Process workers(job.tuner({"workers", "--daemon", address_}), job.folder.file("workers"));
  EXPECT_EQ(workers.wait(30s), 0);
  EXPECT_THAT(workers.out(), HasSubstr("a builder,"));
  EXPECT_THAT(workers.out(), HasSubstr("a runner, 0 leases, 48 trials done"));

  // The same once more: nothing is built again, and the answer is the known one.
  Process again(job.submit(48, {"--daemon", address_, "--fresh"}), job.folder.file("again"));
  EXPECT_EQ(again.wait(180s), 0) << again.err();
  for (const Process* process : {builds.get(), runs.get()}) process->signal(SIGTERM);
  EXPECT_EQ(runs->wait(20s), 0) << runs->err();
  EXPECT_EQ(builds->wait(20s), 0) << builds->err();
}

TEST_F(BuildersRunners, WhoeverIsKilledNothingIsLostDoubledOrBlamed) {
  const RandomSeed seed(5);
  std::mt19937_64 random(seed);
  const uint32_t kills = wanted_rounds(12);  // the long suite takes 200
  auto builds = builder(), runs = runner();
  const int trials = static_cast<int>(24 + 8 * kills);
  Process submit(job.submit(trials, {"--daemon", address_}), job.folder.file("submit"));
  for (uint32_t i = 0; i < kills && !submit.wait(0s); ++i) {
    const size_t before = job.recorded().size();
    eventually(20s, [&] {
      return submit.wait(0s).has_value() || job.recorded().size() >= before + 1 + random() % 6;
    });
    switch (random() % 4) {
      case 0:
        builds->kill_tree();
        builds = builder();
        break;
      case 1:
        runs->kill_tree();
        runs = runner();
        break;
      case 2:
        serve_->kill_tree();
        serve(address_);
        break;
      case 3:
        link_->cut();
        break;
    }
  }
  EXPECT_EQ(submit.wait(600s), 0) << submit.out() << submit.err() << runs->err() << builds->err()
                                  << serve_->err();
  job.expect_complete(static_cast<size_t>(trials));
}

// How busy it is, is printed, not compared: this machine is shared.
TEST_F(BuildersRunners, ASlowLinkCarriesAJob) {
  std::ofstream(job.file)
      << R"({"op": "matmul", "a": [400, 400], "b": [400, 400], "target": "cpu", "search": "random"})";
  link_->limit(1'000'000);
  link_->delay(50ms, 1h);  // to the daemon and back: 100 ms
  const auto builds = builder(), runs = runner();
  Process submit(job.submit(16, {"--daemon", address_}), job.folder.file("submit"));
  ASSERT_EQ(submit.wait(240s), 0) << submit.out() << submit.err() << runs->err() << builds->err();
  job.expect_complete(16);
  double busy_ms = 0;
  int64_t first_us = INT64_MAX, last_us = 0;
  for (const auto& [id, t] : job.recorded()) {
    busy_ms += t.record->run_ms;
    const auto began_us = t.record->finished_at_us - static_cast<int64_t>(1000 * t.record->run_ms);
    first_us = std::min(first_us, began_us);
    last_us = std::max(last_us, t.record->finished_at_us);
  }
  std::printf(
      "1 MB/s, 100 ms: the runner was busy for %.0f %% of the time between its first run and its last\n",
      100 * busy_ms / (static_cast<double>(last_us - first_us) / 1000));
}

// All but the GPU is real: NVRTC in the builder, the runner's child that loads the cubin and asks the driver.
TEST_F(BuildersRunners, AGpuRunnerGetsWhatABuilderCompiled) {
  if (const Status there = nvrtc_available(); !there) GTEST_SKIP() << there.message();
  use_gpu_job();
  const auto builds = builder(), runs = gpu_runner(1'000 * toolkit_major(cuda_toolchain_fingerprint()) + 90);
  const Process submit(job.submit(4, {"--daemon", address_}), job.folder.file("submit"));
  EXPECT_TRUE(eventually(90s, [&] { return job.recorded().size() >= 4; }))
      << submit.out() << submit.err() << runs->err() << builds->err();
  for (const auto& [id, t] : job.recorded()) {
    EXPECT_EQ(t.record->outcome, Outcome::kBuildError);
    EXPECT_THAT(t.record->message, HasSubstr("cuModuleLoadData: CUDA_ERROR_INVALID_IMAGE"));
    EXPECT_EQ(t.record->environment.worker_id, "runner");
    EXPECT_THAT(t.record->environment.toolchain, StartsWith("nvrtc ")) << "the builder's";
    EXPECT_THAT(t.record->environment.hardware, HasSubstr("Fake GPU sm_90"));
  }
  Process workers(job.tuner({"workers", "--daemon", address_}), job.folder.file("workers"));
  EXPECT_EQ(workers.wait(30s), 0);
  EXPECT_THAT(workers.out(), AllOf(HasSubstr("cuda -arch=sm_90a"), HasSubstr("compiles for cuda")));
}

TEST_F(BuildersRunners, AnOlderDriverWaitsForABuilderWithAnOlderToolkit) {
  if (const Status there = nvrtc_available(); !there) GTEST_SKIP() << there.message();
  constexpr int kOldestDriver = 12;
  const int older = toolkit_major(cuda_toolchain_fingerprint()) - 1;
  if (older < kOldestDriver) GTEST_SKIP() << "drivers older than this NVRTC are refused for themselves";
  use_gpu_job();
  const auto builds = builder(), runs = gpu_runner(1'000 * older + 90);
  const Process submit(job.submit(4, {"--daemon", address_}), job.folder.file("submit"));
  EXPECT_TRUE(eventually(
      60s,
      [&] {
        return (submit.out() + submit.err()).find(str("with an NVRTC of CUDA ", older, " or older")) !=
               std::string::npos;
      }))
      << submit.out() << submit.err() << runs->err() << builds->err();
  EXPECT_TRUE(job.recorded().empty()) << "no candidate is blamed";
}

// A full card of a board. Fetching is all that a runner does for a build, so whatever goes wrong there is no
// candidate's fault.
TEST_F(BuildersRunners, ARunnerWithAFullDiskBlamesNoTrialAndGoesOnWhenThereIsRoom) {
  const std::string disk = job.folder.file("runner-shared");
  std::filesystem::create_directories(disk);
  // Of this process and those it starts from now on.
  if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("tuner-test", disk.c_str(), "tmpfs", 0, "size=8m") != 0)
    GTEST_SKIP() << "no tmpfs can be mounted here (needs root)";
  const auto builds = builder(), runs = runner();
  ASSERT_TRUE(eventually(60s, [&] { return runs->err().find("registered as") != std::string::npos; }))
      << runs->err();
  {
    std::ofstream filler(disk + "/filler");
    for (int i = 0; i < 16 && filler; ++i) filler << std::string(1 << 20, 'x') << std::flush;
  }
  Process submit(job.submit(24, {"--daemon", address_}), job.folder.file("submit"));
  EXPECT_TRUE(
      eventually(90s, [&] { return runs->err().find("No space left on device") != std::string::npos; }))
      << runs->err() << submit.out();
  std::filesystem::remove(disk + "/filler");
  EXPECT_EQ(submit.wait(240s), 0) << submit.out() << submit.err() << runs->err();
  job.expect_complete(24);
  for (const auto& [id, t] : job.recorded())
    EXPECT_NE(t.record->outcome, Outcome::kBuildError) << t.record->message;
  runs->signal(SIGTERM);
  EXPECT_EQ(runs->wait(30s), 0);
  ::umount2(disk.c_str(), MNT_DETACH);
}

TEST_F(BuildersRunners, ADrainingRunnerDoesNotWaitForABuilder) {
  auto builds = builder();
  const auto runs = runner();
  Process submit(job.submit(48, {"--daemon", address_}), job.folder.file("submit"));
  ASSERT_TRUE(eventually(60s, [&] { return job.recorded().size() >= 4; })) << runs->err() << builds->err();
  builds->kill_tree();
  runs->signal(SIGTERM);
  EXPECT_EQ(runs->wait(30s), 0) << runs->err();
}

TEST(MeasureRunner, IsSmallAndNeedsNoCompiler) {
  const std::string program = std::string(TUNER_BIN_DIR) + "/measure_runner";
  const TemporaryFolder folder;
  const testing::Process ldd({"/usr/bin/ldd", program}, folder.file("ldd"));
  ASSERT_TRUE(eventually(10s, [&] { return ldd.out().find("libc.so") != std::string::npos; }));
  EXPECT_THAT(ldd.out(), Not(HasSubstr("LLVM")));
  EXPECT_THAT(ldd.out(), Not(HasSubstr("xgboost")));
  EXPECT_THAT(ldd.out(), Not(HasSubstr("sqlite")));
  const auto bytes = std::filesystem::file_size(program);
  double start_ms = 1e9;
  for (int i = 0; i < 5; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    testing::Process help({program, "--help"}, folder.file(str("help", i)));
    EXPECT_EQ(help.wait(10s), 0) << help.err();
    start_ms =
        std::min(start_ms,
                 std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  std::printf("measure_runner: %.1f MB, starts in %.0f ms\n", static_cast<double>(bytes) / 1e6, start_ms);
#ifdef TUNER_SANITIZED
  std::printf("the size is not judged: it is that of a build with sanitizers\n");
#else
  EXPECT_LT(bytes, 10'000'000u);
#endif
}

}  // namespace
}  // namespace tuner
