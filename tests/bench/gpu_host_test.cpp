// gpu_host.sh from beginning to end, on a CUDA driver and libraries of ours: what is carried, what each visit
// leaves, what a host that cannot be used or dies is told of. Its packs are made up, but those that `prepare`
// makes.
#include <sys/stat.h>

#include <set>

#include "compiler_core/codegen_cuda/warp_access.h"
#include "tests/bench/bench_gpu_fixture.h"
#include "tests/bench/cpu/shapes.h"
#include "tests/bench/gpu/lane_patterns.h"
#include "tuner/jobs/job_file.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;

class GpuHost : public BenchGpu {
 protected:
  // The folder as `prepare` leaves it, with small packs: transpositions that the driver can do.
  void SetUp() override {
    fs::create_directories(folder_ / "small");
    fs::copy(TUNER_RUNNER_PATH, folder_ / "runner");
    fs::copy(TUNER_BENCH_GPU_PATH, folder_ / "bench_gpu");
    fs::create_directories(tools_);
    PackTask small = copying({"copy ns=3000", "copy ns=2000"});
    small.checker = str("FAKECUBIN\nkernel ", sums_kernel(DType::kFloat32), " check_sums\nkernel ",
                        samples_kernel(DType::kFloat32), " check_samples\nkernel ", kEqualKernel,
                        " check_equal\nkernel ", kHashKernel, " check_hash\n");
    for (const char* name : {kClocksFfma, kClocksLds128, kClocksShared, kClocksL1, kClocksL2, kLinksKernel})
      small.checker += str("kernel ", name, " probe_clocks n=512\n");
    pack("small/small", {small});
    pack("conv", {convolution({}, " ns=4000")});
    pack("matmul", {product({}, "matmul m=5 n=7 k=11 ns=4000"), copying({"copy ns=9000", "copy ns=7000"})});
  }
  void pack(const std::string& name, std::vector<PackTask> tasks) {
    for (PackTask& task : tasks)
      for (PackCandidate& c : task.candidates) c.artifact.manifest.toolchain = "nvrtc 13.0 cuda codegen 1";
    write(std::move(tasks));
    fs::rename(dir_ / "a.pack", folder_ / (name + ".pack"));
  }
  // A tool of NVIDIA's: does this with `$all`, its arguments, and `$@`, those behind its options.
  void tool(const std::string& name, const std::string& work) {
    std::ofstream(tools_ / name) << "#!/bin/bash\nall=$*\necho \"$all\" >>"
                                 << (dir_ / (name + ".calls")).string()
                                 << "\nwhile [[ $1 == --* ]]; do shift 2; done\n"
                                 << work << "\n";
    fs::permissions(tools_ / name, fs::perms::owner_all);
  }
  Ended shell(const std::string& command, const std::string& environment = "") {
    const std::string log = (dir_ / "log").string();
    const int status = std::system(
        str("cd ", dir_.string(), " && export TMPDIR=", dir_.string(), " PATH=", tools_.string(), ":$PATH",
            " TUNER_LIBCUDA=", TUNER_FAKE_CUDA, " TUNER_LIBNVML=", TUNER_FAKE_CUDA,
            " TUNER_LIBCUBLAS=", TUNER_FAKE_CUBLAS, " TUNER_LIBCUBLASLT=", TUNER_FAKE_CUBLASLT,
            " TUNER_LIBCUDNN=", TUNER_FAKE_CUDNN, " ", environment, "; { ", command, "; } >", log, " 2>&1")
            .c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text_of("log")};
  }
  Ended script(const std::string& arguments, const std::string& environment = "") {
    return shell(str("bash " TUNER_SOURCE_DIR "/tests/bench/gpu_host.sh ", arguments), environment);
  }
  std::string text_of(const std::string& file) const {
    std::ifstream in(dir_ / file);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  json json_of(const std::string& file) const {
    return json::parse(text_of(file), nullptr, /*allow_exceptions=*/false);
  }
  size_t lines_of(const std::string& file) const {
    const std::string text = text_of(file);
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  }

  const fs::path folder_ = dir_ / "carried", tools_ = dir_ / "tools";
};

TEST_F(GpuHost, TheFirstVisitLeavesEveryLog) {
  const Ended ended = script("first carried out");
  ASSERT_EQ(ended.exit_code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("gpu_host: 4 of 4 runs of small kernels are right\n"));
  EXPECT_THAT(text_of("out/probe.json"), HasSubstr("Fake GPU"));
  const json calibration = json_of("out/calibration.json")["calibration"];
  EXPECT_EQ(calibration["latency_clocks"]["dram"], 512.0 / kClockedLoads);
  EXPECT_EQ(calibration["ffma_a_clock"], 1024.0 * kFfmaPerRound / 512);
  ASSERT_EQ(calibration["shared_128_bit_loads"].size(), lane_patterns().size());
  EXPECT_EQ(calibration["shared_128_bit_loads"][0]["clocks"], 4);
  EXPECT_EQ(lines_of("out/conv.jsonl"), 2u);
  EXPECT_EQ(lines_of("out/matmul.jsonl"), 6u) << "three candidates, two rounds";
  // The faster of two transpositions is held against the copy, the other one stands beside it.
  const json copied = json_of("out/bench_matmul.json")["tasks"][1];
  EXPECT_NEAR(copied["time_ns"]["median"].get<double>(), 7000, 1);
  EXPECT_EQ(copied["ns"].size(), 5u);
  ASSERT_EQ(copied["others"].size(), 1u);
  EXPECT_NEAR(copied["others"][0]["time_ns"]["median"].get<double>(), 9000, 1);
  EXPECT_EQ(json_of("out/bench_conv.json")["tasks"][0]["peer"]["name"], "cuDNN");
  EXPECT_EQ(json_of("out/device_properties.json")["deviceVer"], 900);
  for (const char* part : {"runs of small kernels", "clocks of a load that", "results in out/conv.jsonl",
                           "cuDNN/ours", "searched cuDNN"})
    EXPECT_THAT(text_of("out/log"), HasSubstr(part));
  EXPECT_THAT(text_of("out/log"), Not(HasSubstr("failed")));
}

TEST_F(GpuHost, TheSecondVisitRunsWinnersInFreshProcessesAndUnderTheToolsThatAreThere) {
  ASSERT_EQ(script("first carried out").exit_code, 0);
  tool("compute-sanitizer", R"(
"$@"; rc=$?
[[ $all != *racecheck* ]] || { echo "==== ERROR SUMMARY: 3 errors"; exit 9; }
echo "==== ERROR SUMMARY: 0 errors"; exit $rc)");
  tool("ncu", R"([[ $all != *conv* ]] && exec "$@"; exit 1)");
  const Ended ended = script("confirm carried out");
  ASSERT_EQ(ended.exit_code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("gpu_host: matmul: 2 outputs are bitwise equal in three processes\n"));
  EXPECT_THAT(ended.text, HasSubstr("gpu_host: conv: 1 outputs are bitwise equal in three processes\n"));
  std::set<std::string> outputs;
  for (const char* round : {"1", "2", "3"}) {
    const json task = json_of(str("out/bench_conv_again", round, ".json"))["tasks"][0];
    EXPECT_EQ(task["ns"].size(), 5u);
    outputs.insert(task["output_sha256"]);
  }
  EXPECT_EQ(outputs.size(), 1u);
  EXPECT_THAT(json_of("out/bench_conv_again1.json")["tasks"][0]["peer"]["missing"].get<std::string>(),
              HasSubstr("no cuDNN: none: "))
      << "only ours is compared with itself";
  for (const char* check : {"memcheck", "racecheck"}) {
    EXPECT_THAT(text_of("compute-sanitizer.calls"),
                HasSubstr(str("--tool ", check, " --error-exitcode 9 carried/bench_gpu ")));
    EXPECT_THAT(text_of(str("out/", check, ".txt")), HasSubstr("1 of 1 tasks are right"));
    EXPECT_THAT(text_of(str("out/", check, ".txt")), Not(HasSubstr(" us ")));
  }
  EXPECT_THAT(ended.text,
              HasSubstr("gpu_host: memcheck of the small kernels: ==== ERROR SUMMARY: 0 errors\n"));
  EXPECT_THAT(
      ended.text,
      HasSubstr("gpu_host: racecheck failed or ran out of time, see racecheck.txt: ==== ERROR SUMMARY: 3 "
                "errors\n"));
  EXPECT_EQ(lines_of("ncu.calls"), 2u);
  EXPECT_THAT(ended.text, HasSubstr("gpu_host: profile of matmul: profile_matmul.txt\n"));
  EXPECT_THAT(ended.text,
              HasSubstr("gpu_host: profiling conv failed or ran out of time, see profile_conv.txt\n"));
}

TEST_F(GpuHost, ToolsThatAreNotThereAndOutputsThatDifferAreALineEach) {
  for (const char* name : {"conv", "matmul"})
    ASSERT_EQ(shell(str("mkdir -p out; carried/runner run-pack carried/", name, ".pack -o out/", name,
                        ".jsonl --deadline 60"))
                  .exit_code,
              0);
  // The second and the third process say that they computed something else.
  fs::rename(folder_ / "bench_gpu", folder_ / "real");
  std::ofstream(folder_ / "bench_gpu")
      << "#!/bin/bash\n"
      << (folder_ / "real").string() << " \"$@\"; rc=$?\n"
      << R"(for f in "$@"; do [[ $f != *matmul_again[23].json ]] || sed -i 's/sha256": ".*"/sha256": "0a"/' $f; done; exit $rc)"
      << "\n";
  fs::permissions(folder_ / "bench_gpu", fs::perms::owner_all);
  const Ended ended = script("confirm carried out");
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("gpu_host: matmul: outputs DIFFER from process to process"));
  EXPECT_THAT(ended.text, HasSubstr("gpu_host: conv: 1 outputs are bitwise equal"));
  if (shell("command -v compute-sanitizer ncu /usr/local/cuda/bin/compute-sanitizer").exit_code == 0)
    GTEST_SKIP() << "NVIDIA's tools are installed here";
  EXPECT_THAT(ended.text, HasSubstr("gpu_host: no compute-sanitizer on this host: not run\n"));
  EXPECT_THAT(ended.text, HasSubstr("gpu_host: no ncu on this host: not run\n"));
  EXPECT_FALSE(fs::exists(dir_ / "out/memcheck.txt"));
}

// --- hosts that are of no use ---

TEST_F(GpuHost, AHostThatCannotBeUsedIsOneLine) {
  const auto one_line = [&](const std::string& environment, const std::string& why) {
    const Ended ended = script("first carried out", environment);
    EXPECT_EQ(ended.exit_code, 1) << ended.text;
    EXPECT_THAT(ended.text, testing::StartsWith("gpu_host: stopped: "));
    EXPECT_THAT(ended.text, HasSubstr(why));
    EXPECT_EQ(std::count(ended.text.begin(), ended.text.end(), '\n'), 1) << ended.text;
    EXPECT_FALSE(fs::exists(dir_ / "out/conv.jsonl"));
  };
  one_line("TUNER_LIBCUDA=/not/there.so", "no GPU: the driver library");
  one_line("TUNER_FAKE_CUDA_ARCH=80",
           "the pack's kernels are for sm_90, and the first GPU here is Fake GPU, sm_80");
  one_line("TUNER_FAKE_CUDA_DRIVER=12040", "driver");
  pack("small/small", {copying({"wrong", "wrong"})});
  one_line("", "not one of 2 small kernels is right");
}

TEST_F(GpuHost, AHostThatDiesMidwayLeavesWhatWasMeasured) {
  pack("matmul", {copying({"copy ns=9000"}), copying({"falls_off"}, 2000)});
  const Ended ended =
      script("first carried out", str("SECONDS_OF_PACKS=30 TUNER_FAKE_CUDA_LOST=", (dir_ / "lost").string()));
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  EXPECT_EQ(lines_of("out/conv.jsonl"), 2u);
  EXPECT_EQ(lines_of("out/matmul.jsonl"), 1u) << "the one before it fell off";
  EXPECT_TRUE(json_of("out/calibration.json").contains("calibration"));
  EXPECT_THAT(ended.text, HasSubstr("gpu_host: matmul failed, see above\n"));
  EXPECT_THAT(ended.text, HasSubstr("gpu_host: bench_gpu of conv failed, see above\n"));
  // It is back: results are continued, not measured again.
  fs::remove(dir_ / "lost");
  pack("matmul", {copying({"copy ns=9000"})});
  fs::remove(dir_ / "out/matmul.jsonl");
  EXPECT_EQ(script("first carried out").exit_code, 0);
  EXPECT_EQ(lines_of("out/conv.jsonl"), 2u);
  EXPECT_EQ(json_of("out/bench_conv.json")["tasks"][0]["ns"].size(), 5u);
}

TEST_F(GpuHost, AVisitThatIsKilledLeavesWhatWasMeasuredAndGoesOn) {
  pack("matmul", {copying({"copy ns=9000"}), copying({"hang"}, 2000)});
  // Everything is killed while a kernel runs that does not end.
  const Ended killed =
      shell("bash -c 'setsid bash " TUNER_SOURCE_DIR
            "/tests/bench/gpu_host.sh first carried out & visit=$!; for i in {1..1200}; do "
            "[[ -e hangs ]] && break; sleep 0.1; done; kill -KILL -- -$visit && [[ -e hangs ]]'",
            str("TUNER_FAKE_CUDA_HANGS=", (dir_ / "hangs").string()));
  ASSERT_EQ(killed.exit_code, 0) << killed.text;
  EXPECT_EQ(lines_of("out/conv.jsonl"), 2u);
  EXPECT_EQ(lines_of("out/matmul.jsonl"), 1u) << killed.text;
  EXPECT_TRUE(json_of("out/calibration.json").contains("calibration"));
  EXPECT_THAT(text_of("out/log"), HasSubstr("results in out/conv.jsonl"));
  const Ended again = script("first carried out");
  EXPECT_EQ(again.exit_code, 0) << again.text;
  EXPECT_EQ(lines_of("out/conv.jsonl"), 2u) << "not measured again";
  EXPECT_THAT(text_of("out/matmul.jsonl"), HasSubstr("\"outcome\":\"run_timeout\""));
  EXPECT_EQ(json_of("out/bench_conv.json")["tasks"][0]["ns"].size(), 5u);
}

// An algorithm of a library that breaks the device: what else there is, is measured in a process of its own.
TEST_F(GpuHost, APeerThatBreaksTheDeviceIsTriedAgainWithAShortSearch) {
  fs::rename(folder_ / "bench_gpu", folder_ / "real");
  std::ofstream(folder_ / "bench_gpu") << R"(#!/bin/bash
if [[ $* == *"--json out/bench_matmul.json"*"--peer-seconds 6"* ]]; then
  echo '{ "stopped": "the device failed: x" }' >out/bench_matmul.json
  exit 1
fi
)" << (folder_ / "real").string() << " \"$@\"\n";
  fs::permissions(folder_ / "bench_gpu", fs::perms::owner_all);
  const Ended ended = script("first carried out");
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("gpu_host: once more with a short search\n"));
  EXPECT_EQ(json_of("out/bench_matmul.json")["tasks"].size(), 2u) << ended.text;
  EXPECT_TRUE(fs::exists(dir_ / "out/bench_matmul_stopped.json"));
}

// One file is all that must come back, whole at any time.
TEST_F(GpuHost, ABundleHasEveryLogAndTheSecondVisitGoesOnFromIt) {
  ASSERT_EQ(script("first carried out", "BUNDLE=carried/first.tar.gz").exit_code, 0);
  ASSERT_EQ(shell("mkdir back && tar -xzf carried/first.tar.gz -C back").exit_code, 0);
  for (const char* file : {"log", "probe.json", "device_properties.json", "calibration.json", "conv.jsonl",
                           "bench_conv.json", "bench_matmul.json"})
    EXPECT_EQ(text_of(str("back/", file)), text_of(str("out/", file))) << file;
  fs::remove_all(dir_ / "out");  // another host
  const Ended ended = script("confirm carried out");
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("gpu_host: conv: 1 outputs are bitwise equal in three processes\n"));
}

// Parts of the time, in the order of the file.
TEST_F(GpuHost, PacksGetTheirPartsOfTheTime) {
  std::ofstream(folder_ / "order") << "matmul 3\nconv 1\n";
  fs::rename(folder_ / "runner", folder_ / "real");
  std::ofstream(folder_ / "runner") << "#!/bin/bash\necho \"$*\" >>" << (dir_ / "runs").string() << "\n"
                                    << (folder_ / "real").string() << " \"$@\"\n";
  fs::permissions(folder_ / "runner", fs::perms::owner_all);
  const Ended ended = script("first carried out", "SECONDS_OF_PACKS=400");
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  const std::string runs = text_of("runs");
  EXPECT_THAT(runs, testing::ContainsRegex("matmul.pack -o out/matmul.jsonl --deadline (300|29.)\n"));
  EXPECT_THAT(runs, testing::ContainsRegex("conv.pack -o out/conv.jsonl --deadline (400|39.|38.)\n"))
      << "what the first one left";
  EXPECT_LT(runs.find("matmul.pack"), runs.find("conv.pack"));
}

// --- without a GPU ---

// The visit to a Hopper, whole, by one command.
TEST_F(GpuHost, AVisitIsRehearsedWithTheJobsOfHopper) {
  const Ended ended =
      script("rehearse rehearsal", str("TUNER_BUILD=", TUNER_BUILD_DIR,
                                       " SECONDS_OF_PACKS=60 "
                                       "SECONDS_OF_PEERS=60 SECONDS_OF_PROFILES=60 PEER_SECONDS=0.3 JOBS=",
                                       TUNER_SOURCE_DIR, "/tests/bench/gpu/jobs/hopper.json"));
  ASSERT_EQ(ended.exit_code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("gpu_host: rehearsed: "));
  const json tasks = json_of("rehearsal/back/bench_hopper.json")["tasks"];
  EXPECT_EQ(tasks.size(), 10u);
  for (const json& t : tasks) {
    EXPECT_EQ(t["peer"]["name"], "cuBLASLt") << t;
    EXPECT_EQ(t["batches"], "CUDA graphs");
    EXPECT_GT(t["peer"]["ratio_to_ours"]["median"].get<double>(), 0);
  }
}

TEST_F(GpuHost, ARehearsalThatLeavesSomethingOutFails) {
  const Ended ended = script("rehearse rehearsal", str("TUNER_BUILD=", TUNER_BUILD_DIR,
                                                       " SECONDS_OF_PEERS=1 JOBS=", TUNER_SOURCE_DIR,
                                                       "/tests/bench/gpu/jobs/memory_bound.json"));
  EXPECT_EQ(ended.exit_code, 1) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("gpu_host: the rehearsal left no "));
  EXPECT_THAT(ended.text, HasSubstr("bench_memory_bound.json"));
}

// --- what is carried ---

TEST_F(GpuHost, PrepareMakesAFolderThatIsSmallEnoughToCarry) {
  std::ofstream(dir_ / "tiny.json")
      << R"({"op": "softmax", "rows": 4, "columns": 64, "target": "cuda -arch=sm_90a"})";
  const Ended ended = script("prepare made sm_80 1", str("JOBS=tiny.json TUNER_BIN=", TUNER_BIN_DIR));
  if (ended.text.find("NVRTC") != std::string::npos && ended.exit_code != 0) GTEST_SKIP() << ended.text;
  ASSERT_EQ(ended.exit_code, 0) << ended.text;
  for (const char* program : {"runner", "bench_gpu", "gpu_host.sh"})
    EXPECT_EQ(::access((dir_ / "made" / program).c_str(), X_OK), 0) << program;
  const Result<PackFile> tiny = PackFile::open((dir_ / "made/tiny.pack").string()),
                         small = PackFile::open((dir_ / "made/small/small.pack").string());
  ASSERT_TRUE(tiny.is_ok() && small.is_ok()) << tiny.message() << small.message();
  EXPECT_EQ(tiny->pack().tasks[0].target, "cuda -arch=sm_80");
  EXPECT_EQ(tiny->pack().tasks[0].candidates.size(), 1u);
  EXPECT_EQ(small->pack().tasks.size(), 14u);
  for (const PackTask& task : small->pack().tasks) EXPECT_GE(task.candidates.size(), 1u) << task.workload_key;
  // What an own driver refuses: real code, on a device of ours.
  const Ended refused = script("first made out");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.text, HasSubstr("gpu_host: stopped: the pack's kernels are for sm_80"));
}

// The float32 convolutions are those that the CPU is compared on.
TEST(GpuJobs, TheLayersOfResnet50AreThoseOfTheOtherBenchmark) {
  std::vector<std::string> wanted, found;
  for (const BenchShape& shape : bench_shapes())
    if (shape.set == "resnet50") wanted.push_back(shape.workload.key());
  const Result<std::vector<JobEntry>> entries =
      read_job_file(TUNER_SOURCE_DIR "/tests/bench/gpu/jobs/resnet50.json");
  ASSERT_TRUE(entries.is_ok()) << entries.message();
  for (const JobEntry& entry : *entries) found.push_back(entry.workload.key());
  EXPECT_EQ(found, wanted);
}

// The products that H200.md tells of.
TEST(GpuJobs, ThoseOfHopperAreTheTenProductsByWgmma) {
  const Result<std::vector<JobEntry>> entries =
      read_job_file(TUNER_SOURCE_DIR "/tests/bench/gpu/jobs/hopper.json");
  ASSERT_TRUE(entries.is_ok()) << entries.message();
  std::ifstream in(TUNER_SOURCE_DIR "/tests/bench/results/2026-11-26-h200.json");
  std::vector<std::string> wanted, found;
  const json summary = json::parse(in, nullptr, /*allow_exceptions=*/false);
  ASSERT_FALSE(summary.is_discarded());
  for (const json& run : summary.at("runs"))
    if (run.at("name") == "wgmma")
      for (const json& shape : run.at("shapes")) wanted.push_back(shape.at("workload"));
  ASSERT_EQ(wanted.size(), 10u);
  for (const JobEntry& entry : *entries) {
    found.push_back(entry.workload.key());
    EXPECT_EQ(entry.target, "cuda -arch=sm_90a");
  }
  EXPECT_THAT(found, testing::UnorderedElementsAreArray(wanted));
}

// Those of float32 with channels last, of one image and of 32.
TEST(GpuJobs, TheLayersOfResnet50InNhwcAreThoseOfFloat32) {
  const auto read = [](const char* name) {
    Result<std::vector<JobEntry>> entries =
        read_job_file(str(TUNER_SOURCE_DIR "/tests/bench/gpu/jobs/", name));
    EXPECT_TRUE(entries.is_ok()) << entries.message();
    return *std::move(entries);
  };
  std::vector<std::string> wanted, found;
  for (const int64_t batch : {1, 32})
    for (const JobEntry& entry : read("resnet50.json")) {
      Conv2dWorkload w = *entry.workload.get_if<Conv2dWorkload>();
      w.batch = batch, w.layout = w.out_layout = "NHWC", w.dtype = DType::kBFloat16,
      w.narrow_out = DType::kBFloat16;
      wanted.push_back(Workload(w).key());
    }
  for (const JobEntry& entry : read("resnet50_nhwc.json")) found.push_back(entry.workload.key());
  EXPECT_EQ(found, wanted);
}

// A visit is short: operands as large as 8192 x 8192 take it up.
TEST(GpuJobs, NoneIsAsLargeAs8192Squared) {
  for (const char* file : {"memory_bound", "resnet50", "small"}) {
    const Result<std::vector<JobEntry>> entries =
        read_job_file(str(TUNER_SOURCE_DIR "/tests/bench/gpu/jobs/", file, ".json"));
    ASSERT_TRUE(entries.is_ok()) << entries.message();
    for (const JobEntry& entry : *entries)
      EXPECT_LT(entry.workload.bytes(), int64_t{8192} * 8192 * 4) << entry.workload.key();
  }
}

// What is measured stands beside what the model takes for it.
TEST(GpuCalibration, PassesOfLanePatternsAreThoseOfTheModel) {
  for (const LanePattern& lanes : lane_patterns()) {
    std::vector<int64_t> words;
    for (const uint32_t bytes : lanes.bytes) {
      EXPECT_EQ(bytes % 16, 0U) << lanes.name;
      EXPECT_LE(bytes, 16384U - 16) << "what the kernel has";
      words.push_back(bytes / 4);
    }
    EXPECT_EQ(cuda::shared_passes(words, 4).all, lanes.passes) << lanes.name;
  }
}

}  // namespace
}  // namespace tuner
