// GPU candidates through the real runner and a driver of ours (fake_cuda): verdicts, times, what a fault
// costs, and what happens when the device itself is sick.
#include <chrono>
#include <thread>

#include "tests/measure_server/device_fixture.h"
#include "tests/support/process_tree.h"
#include "tests/support/wait_until.h"

namespace tuner {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::StartsWith;

using DeviceRunner = DeviceTest;

TEST_F(DeviceRunner, ProbeTellsTheDevicesWithoutMakingAContext) {
  const int before = contexts();
  const Result<ProbeReply> probe = runner->probe(1);
  ASSERT_TRUE(probe.is_ok()) << probe.message();
  ASSERT_EQ(probe->devices.size(), 1u) << probe->no_device;
  const DeviceInfo& d = probe->devices[0];
  EXPECT_EQ(d.name, "Fake GPU");
  EXPECT_EQ(d.arch, "sm_90");
  EXPECT_EQ(d.multiprocessors, 10);
  EXPECT_EQ(d.driver_version, 13000);
  EXPECT_EQ(d.memory_bytes, 256 << 20);
  EXPECT_EQ(d.uuid, "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
  EXPECT_DOUBLE_EQ(d.peak_gflops, 2.0 * 128 * 10);  // 1 GHz
  EXPECT_DOUBLE_EQ(d.peak_of(DType::kFloat16), 2.0 * 2048 * 10) << "tensor cores";
  EXPECT_DOUBLE_EQ(d.peak_of(DType::kInt8), 2.0 * 4096 * 10);
  EXPECT_EQ(d.fingerprint, "Fake GPU sm_90 | 10 multiprocessors | 0.2 GiB L2 0.2 MiB | driver CUDA 13.0");
  EXPECT_EQ(contexts(), before);
}

// --- right answers and their times ---

TEST_F(DeviceRunner, ARightKernelIsTimedByTheDevicesClock) {
  const RunReply r = run_device("doubling ns=7000");
  EXPECT_EQ(r.outcome, Outcome::kOk) << r.message;
  ASSERT_GE(r.run_ns.size(), 3u);
  EXPECT_EQ(r.cpu_ns.size(), r.run_ns.size());
  EXPECT_THAT(r.run_ns, Each(testing::DoubleNear(7000, 1)));
  EXPECT_LE(r.max_error, 1);
  EXPECT_GT(r.sentinel_before_ns, 0);
  EXPECT_GT(r.sentinel_after_ns, 0);
  EXPECT_GT(r.run_ms, 0);
  EXPECT_EQ(r.device_state, "1980 MHz, memory 2619 MHz, 41 C, 213 W, throttled by power cap and temperature");
}

TEST_F(DeviceRunner, OperandsStayInL2UnlessCachesAreFlushedOrRotated) {
  RunRequest r = device_request(module_of("doubling ns=5000 beyond_l2_ns=9000"));
  EXPECT_THAT(run(r).run_ns, Each(testing::DoubleNear(5000, 1)));
  for (const Caches caches : {Caches::kFlush, Caches::kRotate}) {
    r.caches = caches;
    const RunReply reply = run(r);
    EXPECT_EQ(reply.outcome, Outcome::kOk) << reply.message;
    EXPECT_THAT(reply.run_ns, Each(testing::DoubleNear(9000, 1))) << caches_name(caches);
  }
}

TEST_F(DeviceRunner, ASlowCandidateIsCutAfterItsFirstSample) {
  RunRequest r = device_request(module_of("doubling ns=200000"));
  r.cut_above_ns = 100'000;
  const RunReply reply = run(r);
  EXPECT_EQ(reply.outcome, Outcome::kOk) << reply.message;
  EXPECT_TRUE(reply.cut);
  EXPECT_EQ(reply.run_ns.size(), 1u);
}

TEST_F(DeviceRunner, LaunchesFollowEachOtherThroughAWorkspace) {
  Manifest m = device_manifest();
  m.workspaces = {kCount * 4};
  m.launches = {LaunchInfo{.kernel = "k", .params = {0, 2}},
                LaunchInfo{.kernel = "copy_out", .params = {2, 1}}};
  const RunReply r = run(device_request(
      str("FAKECUBIN\nkernel k doubling n=", kCount, "\nkernel copy_out copy n=", kCount, "\n"), m));
  EXPECT_EQ(r.outcome, Outcome::kOk) << r.message;
  EXPECT_THAT(r.run_ns, Each(testing::DoubleNear(10'000, 1)));
}

// Pixels of an image as one dimension: the same elements. Fewer of them are no answer to the question.
TEST_F(DeviceRunner, AnOutputMayHaveOtherDimensionsOfAsManyElements) {
  Manifest m = device_manifest();
  m.args[1].shape = {32, 40};
  const RunReply r = run(device_request(module_of("doubling"), m));
  EXPECT_EQ(r.outcome, Outcome::kOk) << r.message << r.error;
  m.args[1].shape = {32, 39};
  m.args[1].bytes = 32 * 39 * 4;
  EXPECT_THAT(runner->run(device_request(module_of("doubling"), m)).message(),
              HasSubstr("the reference's size is not that of output out in the manifest"));
}

// device_manifest() with its input packed ahead.
Manifest packing_manifest(Manifest m) {
  m.abi_version = 2;
  m.pack_args = {m.args[0], m.args[0]};
  m.pack_args[0].role = BufferRole::kConstant;
  m.pack_args[1].role = BufferRole::kPacked, m.pack_args[1].name = "x.packed";
  m.args[0] = m.pack_args[1];
  m.pack_entry = "pack";
  m.pack_launches = {LaunchInfo{.kernel = "pack", .params = {0, 1}}};
  return m;
}

// The packing kernel runs once for all calls and is not in their time.
TEST_F(DeviceRunner, ConstantsArePackedOnceBeforeTheCalls) {
  const std::string module =
      str("FAKECUBIN\nkernel k doubling n=", kCount, "\nkernel pack copy n=", kCount, " ns=900000\n");
  for (const Caches caches : {Caches::kWarm, Caches::kRotate}) {
    RunRequest r = device_request(module, packing_manifest(device_manifest()));
    r.caches = caches;
    const RunReply reply = run(r);
    EXPECT_EQ(reply.outcome, Outcome::kOk) << reply.message << reply.error;
    EXPECT_THAT(reply.run_ns, Each(testing::DoubleNear(5'000, 1)));
  }
}

TEST_F(DeviceRunner, AWrongPackingIsAWrongAnswerAndAWriteToWhatWasPackedIsTold) {
  const std::string kernel = str("FAKECUBIN\nkernel k doubling n=", kCount, "\nkernel pack ");
  EXPECT_EQ(run(device_request(str(kernel, "doubling n=", kCount, "\n"), packing_manifest(device_manifest())))
                .outcome,
            Outcome::kWrongAnswer);
  EXPECT_EQ(
      run(device_request(str(kernel, "unwritten n=", kCount, "\n"), packing_manifest(device_manifest())))
          .outcome,
      Outcome::kWrongAnswer);
  RunRequest writes = device_request(
      str("FAKECUBIN\nkernel k writes_input n=", kCount, "\nkernel pack copy n=", kCount, "\n"),
      packing_manifest(device_manifest()));
  writes.check = {100, 100};
  const RunReply reply = run(writes);
  EXPECT_EQ(reply.outcome, Outcome::kCrashed);
  EXPECT_EQ(reply.message, "wrote to input x.packed");
}

// device_manifest() whose kernel has its input as a tensor map.
Manifest mapped_manifest(Manifest m, int64_t count) {
  m.abi_version = 3;
  TensorMap map{.dtype = DType::kFloat32,
                .extents = {40, count / 40},
                .strides = {160},
                .box = {8, 16},
                .swizzle_bytes = 32};
  m.launches[0].params = {1};
  m.launches[0].tensor_maps = {{.operand = 0, .map = map}};
  return m;
}

int lines_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  int n = 0;
  for (std::string line; std::getline(in, line);) ++n;
  return n;
}

// Another runner, with a setting of the driver for tests.
RunReply run_with(const char* setting, const std::string& value, const RunRequest& request) {
  setenv(setting, value.c_str(), 1);
  const Result<std::unique_ptr<RunnerClient>> other = RunnerClient::start(TUNER_RUNNER_PATH);
  unsetenv(setting);
  EXPECT_TRUE(other.is_ok()) << other.message();
  if (!other) return {};
  const Result<RunReply> reply = (*other)->run(request);
  EXPECT_TRUE(reply.is_ok()) << reply.message();
  return reply ? *reply : RunReply{};
}

// A map is encoded once for each set of operands, not for each call; what the kernel reads by it is the
// operand.
TEST_F(DeviceRunner, TensorMapsAreEncodedOnceForASetOfOperands) {
  const std::string binary = module_of("doubling maps=1"), warm_file = (state / "warm_maps").string(),
                    cold_file = (state / "cold_maps").string();
  RunRequest request = device_request(binary, mapped_manifest(device_manifest(), kCount));
  const RunReply warm = run_with("TUNER_FAKE_CUDA_MAPS", warm_file, request);
  EXPECT_EQ(warm.outcome, Outcome::kOk) << warm.message << warm.error;
  EXPECT_GT(warm.run_ns.size(), 1u);
  EXPECT_EQ(lines_of(warm_file), 1);
  request.caches = Caches::kRotate;
  const RunReply cold = run_with("TUNER_FAKE_CUDA_MAPS", cold_file, request);
  EXPECT_EQ(cold.outcome, Outcome::kOk) << cold.message << cold.error;
  EXPECT_GT(lines_of(cold_file), 3) << "sets of operands";
  // Fewer rows than the operand has: the kernel does not see the others.
  Manifest less = mapped_manifest(device_manifest(), kCount);
  --less.launches[0].tensor_maps[0].map.extents[1];
  EXPECT_EQ(run(device_request(binary, less)).outcome, Outcome::kWrongAnswer);
}

TEST_F(DeviceRunner, ADriverThatTakesNoTensorMapsCostsTheCandidateAlone) {
  const RunReply reply =
      run_with("TUNER_FAKE_CUDA_NO_MAPS", "1",
               device_request(module_of("doubling maps=1"), mapped_manifest(device_manifest(), kCount)));
  EXPECT_EQ(reply.outcome, Outcome::kBuildError);
  EXPECT_THAT(reply.message, HasSubstr("cannot be launched: cuTensorMapEncodeTiled: "));
}

TEST_F(DeviceRunner, SharedMemoryAbove48KiBIsAskedFor) {
  Manifest m = device_manifest();
  m.launches[0].shared_bytes = 100 << 10;
  const std::string binary = module_of("doubling shared=102400");
  EXPECT_EQ(run(device_request(binary, m)).outcome, Outcome::kOk);
}

TEST_F(DeviceRunner, OneContextServesManyCandidatesAndCpuCandidatesSpareIt) {
  EXPECT_EQ(run_device("doubling").outcome, Outcome::kOk);
  const int before = contexts();
  EXPECT_EQ(run_kernel("return doubling_right(args);").outcome, Outcome::kOk);
  EXPECT_EQ(run_device("doubling").outcome, Outcome::kOk);
  EXPECT_EQ(run_device("wrong").outcome, Outcome::kWrongAnswer);
  EXPECT_EQ(run_device("doubling").outcome, Outcome::kOk);
  EXPECT_EQ(contexts(), before);
}

// --- wrong answers ---

TEST_F(DeviceRunner, AWrongElementIsNamed) {
  const RunReply r = run_device("wrong");
  EXPECT_EQ(r.outcome, Outcome::kWrongAnswer);
  EXPECT_THAT(r.message, AllOf(StartsWith("out[0, 0, 5] is -1, reference "), Not(HasSubstr("first run"))));
}

TEST_F(DeviceRunner, AnElementNobodyWroteIsNotALuckyLeftover) {
  ASSERT_EQ(run_device("doubling").outcome, Outcome::kOk);  // leaves right answers in the device's memory
  const RunReply r = run_device("unwritten");
  EXPECT_EQ(r.outcome, Outcome::kWrongAnswer);
  EXPECT_THAT(r.message, HasSubstr("out[3, 7, 39] is "));
}

TEST_F(DeviceRunner, AnAnswerThatIsWrongOnlyLaterIsSeenInTheLastRun) {
  const RunReply r = run_device("wrong after=1");
  EXPECT_EQ(r.outcome, Outcome::kWrongAnswer);
  EXPECT_THAT(r.message, HasSubstr("(right in the first run, wrong in the run after timing)"));
}

TEST_F(DeviceRunner, WritingToAnInputIsTold) {
  const RunReply r = run_device("writes_input after=1000000");
  EXPECT_EQ(r.outcome, Outcome::kWrongAnswer)
      << "the input changes between the calls of a sample: " << r.message;
  // Once only, in the last run: the answer is right, the input is not.
  RunRequest once = device_request(module_of("writes_input"));
  once.check = {100, 100};
  const RunReply tolerant = run(once);
  EXPECT_EQ(tolerant.outcome, Outcome::kCrashed);
  EXPECT_EQ(tolerant.message, "wrote to input x");
}

// --- faults: each ends the device child and nothing else ---

class DeviceFault : public DeviceRunner {
 protected:
  void SetUp() override {
    DeviceRunner::SetUp();
    EXPECT_EQ(run_device("doubling").outcome, Outcome::kOk);
    before_ = contexts();
    runner_pid_ = runner->pid();
  }
  // The next candidate gets a fresh context, the runner is the same, and one device child is alive at most.
  void TearDown() override {
    DeviceRunner::TearDown();
    EXPECT_EQ(contexts(), before_ + 1);
    EXPECT_EQ(runner->pid(), runner_pid_);
    std::ifstream children(str("/proc/", runner_pid_, "/task/", runner_pid_, "/children"));
    int alive = 0;
    for (pid_t p; children >> p;) {
      std::string name;
      std::ifstream(str("/proc/", p, "/comm")) >> name;
      alive += name == "jail-keeper" ? 0 : 1;  // that one lives as long as the runner
    }
    EXPECT_LE(alive, 1);
  }
  int before_ = 0;
  pid_t runner_pid_ = 0;
};

TEST_F(DeviceFault, IllegalAddress) {
  const RunReply r = run_device("illegal_address");
  EXPECT_EQ(r.outcome, Outcome::kCrashed);
  EXPECT_EQ(r.message,
            "cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (by the fake driver) while in its first run");
}

TEST_F(DeviceFault, IllegalAddressWhileTimed) {
  const RunReply r = run_device("illegal_address after=30");
  EXPECT_EQ(r.outcome, Outcome::kCrashed);
  EXPECT_THAT(r.message, AllOf(HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"), HasSubstr("while being timed")));
}

TEST_F(DeviceFault, ALaterLaunchThatReportsAnEarlierFaultIsACrash) {
  Manifest m = device_manifest();
  m.launches = {LaunchInfo{.kernel = "k", .params = {0, 1}}, LaunchInfo{.kernel = "k", .params = {0, 1}}};
  const RunReply r = run(device_request(module_of("misaligned"), m));
  EXPECT_EQ(r.outcome, Outcome::kCrashed);
  EXPECT_THAT(r.message, StartsWith("cuLaunchKernel: CUDA_ERROR_MISALIGNED_ADDRESS"));
}

TEST_F(DeviceFault, LaunchFailed) {
  EXPECT_THAT(run_device("launch_failed").message, HasSubstr("CUDA_ERROR_LAUNCH_FAILED"));
}

TEST_F(DeviceFault, AHangingKernelIsEndedByTheWatchdog) {
  RunRequest r = device_request(module_of("hang"));
  r.run_timeout_s = 0.5;
  const RunReply reply = run(r);
  EXPECT_EQ(reply.outcome, Outcome::kRunTimeout);
  EXPECT_EQ(reply.message, "still running after 0.5 s while in its first run");
}

TEST_F(DeviceFault, CancelEndsAHangingKernel) {
  RunRequest r = device_request(module_of("hang after=3"));
  r.run_timeout_s = 60;
  std::filesystem::remove(state / "hangs");
  // Not before it hangs: a cancel that comes earlier, or while other processes have the core, spares the
  // context.
  std::jthread canceller([&](const std::stop_token& ended) {
    wait_until(std::chrono::seconds(60),
               [&] { return ended.stop_requested() || std::filesystem::exists(state / "hangs"); });
    runner->cancel(r.id);
  });
  EXPECT_EQ(runner->run(r).status().code(), StatusCode::kAborted) << "its own limit ends it as run_timeout";
}

TEST_F(DeviceFault, WritingBehindTheOutput) {
  const RunReply r = run_device("beside");
  EXPECT_EQ(r.outcome, Outcome::kCrashed);
  EXPECT_EQ(r.message, "wrote outside out while in its first run");
}

TEST_F(DeviceFault, WritingBeforeTheOutput) {
  const RunReply r = run_device("before");
  EXPECT_EQ(r.outcome, Outcome::kCrashed);
  EXPECT_EQ(r.message, "wrote outside out while in its first run");
}

TEST_F(DeviceFault, ACubinTheDriverCrashesOn) {
  const RunReply r = run(device_request("FAKEABORT"));
  EXPECT_EQ(r.outcome, Outcome::kCrashed);
  EXPECT_EQ(r.message, "the driver's process ended (signal 6 (SIGABRT)) while loading");
}

// The process that has the driver: asked to end it does not hear, killed it is replaced.
TEST_F(DeviceRunner, SignalsFromOutsideAreNotTheCandidatesFault) {
  RunRequest r = device_request(module_of("hang after=3"));
  r.run_timeout_s = 1;
  for (const int signal : {SIGTERM, SIGKILL}) {
    std::filesystem::remove(state / "hangs");
    bool sent = false;
    std::thread other([&] {
      wait_until(
          std::chrono::seconds(30), [&] { return std::filesystem::exists(state / "hangs"); },
          milliseconds(1));
      for (const pid_t pid : children_of(runner->pid()))
        if (command_of_process(pid).find("--device-child") != std::string::npos)
          sent = ::kill(pid, signal) == 0;
    });
    const Result<RunReply> reply = runner->run(r);
    other.join();
    EXPECT_TRUE(sent);
    ASSERT_TRUE(reply.is_ok()) << reply.message();
    EXPECT_EQ(reply->outcome, Outcome::kRunTimeout) << reply->message << ": it hangs, whoever else is killed";
  }
}

TEST_F(DeviceFault, AMemoryErrorOfTheDeviceIsNotTheCandidatesFault) {
  const Result<RunReply> r = runner->run(device_request(module_of("memory_error")));
  ASSERT_FALSE(r.is_ok());
  EXPECT_EQ(r.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(r.message(), HasSubstr("device: cuStreamSynchronize: CUDA_ERROR_ECC_UNCORRECTABLE"));
}

// --- refusals: the context stays good ---

class DeviceRefusal : public DeviceRunner {
 protected:
  void SetUp() override {
    DeviceRunner::SetUp();
    EXPECT_EQ(run_device("doubling").outcome, Outcome::kOk);
    before_ = contexts();
  }
  void TearDown() override {
    DeviceRunner::TearDown();
    EXPECT_EQ(contexts(), before_);
  }
  int before_ = 0;
};

TEST_F(DeviceRefusal, NotACubin) {
  const RunReply r =
      run(device_request("\x7f"
                         "ELF something else"));
  EXPECT_EQ(r.outcome, Outcome::kBuildError);
  EXPECT_THAT(r.message, StartsWith("cannot be loaded: cuModuleLoadData: CUDA_ERROR_INVALID_IMAGE"));
}

TEST_F(DeviceRefusal, AKernelThatIsNotInTheCubin) {
  Manifest m = device_manifest();
  m.launches[0].kernel = "other";
  const RunReply r = run(device_request(module_of("doubling ns=4001"), m));
  EXPECT_EQ(r.outcome, Outcome::kBuildError);
  EXPECT_THAT(r.message, StartsWith("cannot be loaded: cuModuleGetFunction: CUDA_ERROR_NOT_FOUND"));
}

TEST_F(DeviceRefusal, ALaunchTheDeviceCannotDo) {
  const RunReply r = run_device("too_large");
  EXPECT_EQ(r.outcome, Outcome::kBuildError);
  EXPECT_THAT(r.message,
              StartsWith("cannot be launched: cuLaunchKernel: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"));
}

TEST_F(DeviceRefusal, MoreMemoryThanAllowedOrThere) {
  Manifest m = device_manifest();
  m.workspaces = {int64_t{2} << 30};
  RunRequest r = device_request(module_of("doubling ns=4002"), m);
  EXPECT_EQ(run(r).message, "operands and workspaces take 2.00 GiB, limit 1.00 GiB");
  r.memory_limit_bytes = int64_t{4} << 30;
  const RunReply reply = run(r);
  EXPECT_EQ(reply.outcome, Outcome::kOutOfMemory);
  EXPECT_THAT(reply.message, StartsWith("cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY"));
}

TEST_F(DeviceRefusal, AMissingDataFileIsTheRunnersTrouble) {
  RunRequest r = device_request(module_of("doubling"));
  r.inputs[0].path = (dir_ / "not_there").string();
  const Result<RunReply> reply = runner->run(r);
  ASSERT_FALSE(reply.is_ok());
  EXPECT_THAT(reply.message(), HasSubstr("not_there: cannot be read"));
}

// --- errors that come late ---

TEST_F(DeviceRunner, AnErrorThatTheCandidateBeforeLeftCostsTheNextOneNothing) {
  EXPECT_EQ(run_device("leaves_fault").outcome, Outcome::kOk);
  const int before = contexts();
  const Result<RunReply> next = runner->run(device_request(module_of("doubling ns=4003")));
  ASSERT_TRUE(next.is_ok()) << next.message();
  EXPECT_EQ(next->outcome, Outcome::kOk) << next->message;
  EXPECT_EQ(contexts(), before + 1) << "in a fresh context";
}

// --- a sick device ---

TEST_F(DeviceRunner, ThreeFailedChecksQuarantineTheDeviceUntilOneSucceeds) {
  const RunRequest r = device_request(module_of("doubling"));
  const RunRequest faulty = device_request(module_of("illegal_address"));
  std::ofstream(state / "sick") << "sick\n";
  // A fault ends the child. That a fresh one finds the device sick is the first check that fails, and no
  // verdict.
  for (const RunRequest& request : {faulty, r}) {
    const Result<RunReply> reply = runner->run(request);
    ASSERT_FALSE(reply.is_ok());
    EXPECT_THAT(reply.message(),
                HasSubstr("device check: cuDevicePrimaryCtxRetain: CUDA_ERROR_UNKNOWN (by the fake driver)"));
  }
  const Result<RunReply> third = runner->run(r);
  ASSERT_FALSE(third.is_ok());
  EXPECT_EQ(third.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(third.message(), HasSubstr("device quarantined: 3 checks in a row failed, the last: cuDevice"));
  // CPU candidates go on.
  EXPECT_EQ(run_kernel("return doubling_right(args);").outcome, Outcome::kOk);

  std::filesystem::remove(state / "sick");
  Result<RunReply> healed = third;
  wait_until(
      std::chrono::seconds(60),
      [&] {
        healed = runner->run(r);
        if (healed.is_ok()) return true;
        EXPECT_THAT(healed.message(), HasSubstr("device quarantined"));
        return false;
      },
      milliseconds(50));
  ASSERT_TRUE(healed.is_ok()) << healed.message();
  EXPECT_EQ(healed->outcome, Outcome::kOk);
}

TEST_F(DeviceRunner, ADeviceThatIsNotThereIsAnError) {
  RunRequest r = device_request(module_of("doubling"));
  r.device = 3;
  const Result<RunReply> reply = runner->run(r);
  ASSERT_FALSE(reply.is_ok());
  EXPECT_THAT(reply.message(), HasSubstr("device 3: this host has devices 0..0"));
}

}  // namespace
}  // namespace tuner
