// runner run-pack: the plan, what a bad candidate costs, resuming, the deadline. Candidates are C kernels on
// this CPU, and GPU kernels on a driver of ours.
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "measure_server/runner/input_data.h"
#include "measure_server/runner/pack_file.h"
#include "tests/measure_server/candidate_fixture.h"
#include "tests/support/wait_until.h"

namespace tuner {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class RunPack : public CandidateTest {
 protected:
  // A kernel on this CPU that has this body; see CandidateTest.
  PackCandidate cpu(const std::string& body) {
    const std::string digest = build_kernel(body);
    const Result<Artifact> artifact = load_artifact((dir_ / "artifacts").string(), digest);
    EXPECT_TRUE(artifact.is_ok()) << artifact.message();
    return {.template_name = "t", .config = str("n=", ++made_), .template_version = 1, .artifact = *artifact};
  }
  PackCandidate gpu(const std::string& behaviour, const std::string& head = "FAKECUBIN",
                    const std::string& target = "cuda -arch=sm_90") {
    Manifest m = doubling_manifest();
    m.kind = binary_kind::kCubin;
    m.target = target;
    m.toolchain = "nvrtc 13.0 cuda codegen 1";
    m.launches = {LaunchInfo{.kernel = "k", .grid = {5, 1, 1}, .block = {256, 1, 1}, .params = {0, 1}}};
    return {.template_name = "t",
            .config = str("n=", ++made_),
            .template_version = 1,
            .artifact = {m, str(head, "\nkernel k ", behaviour, " n=", kCount, "\n")}};
  }
  // Right, and slower by `loops`.
  PackCandidate right(int loops) {
    return cpu(str("for (volatile int i = 0; i < ", loops, "; ++i) {}\nreturn doubling_right(args);"));
  }

  Pack pack_of(std::vector<PackCandidate> candidates) {
    PackTask task{.workload_key = "w", .target = "a target", .input_seed = 5};
    task.inputs = {{"x", 0, kCount}};
    const std::vector<float> x = random_values(5, 0, kCount);
    std::vector<double> answer(x.begin(), x.end());
    for (double& v : answer) v *= 2;
    EXPECT_TRUE(write_reference(dir_ / "pack.ref", answer, {4, 8, 40}, ReferenceKind::kFull).is_ok());
    std::ifstream in(dir_ / "pack.ref", std::ios::binary);
    task.references = {{"out", std::string(std::istreambuf_iterator<char>(in), {})}};
    task.candidates = std::move(candidates);
    Pack pack{.tasks = {std::move(task)}};
    pack.plan.rounds = {{.repeats = 3, .keep = 0.5}, {.repeats = 5, .keep_at_most = 1}, {.repeats = 7}};
    pack.plan.min_repeat_ms = 0.2;
    pack.plan.limits.run_timeout_s = 1;
    return pack;
  }

  struct Ended {
    int exit_code = -1;
    std::string text;
  };
  Ended run_pack(const std::string& more = "", const std::string& environment = "") {
    const std::string log = (dir_ / "log").string();
    const int status =
        std::system(str("cd ", dir_.string(), " && TMPDIR=", dir_.string(), " ", environment, " ",
                        TUNER_RUNNER_PATH, " run-pack a.pack -o results.jsonl ", more, " >", log, " 2>&1")
                        .c_str());
    std::ifstream in(log);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, {std::istreambuf_iterator<char>(in), {}}};
  }
  // On the driver of ours, steered by `environment`; see fake_cuda.cpp.
  Ended run_on_gpu(std::vector<PackCandidate> candidates, const std::string& environment,
                   const std::string& more = "", double min_repeat_ms = 0.2) {
    Pack pack = pack_of(std::move(candidates));
    pack.plan.min_repeat_ms = min_repeat_ms;
    EXPECT_TRUE(write_pack(pack, (dir_ / "a.pack").string()).is_ok());
    return run_pack(
        more, str("TUNER_LIBCUDA=", TUNER_FAKE_CUDA, " TUNER_LIBNVML=", TUNER_FAKE_CUDA, " ", environment));
  }
  // One line says it, nothing is recorded, and the exit status is 1.
  void expect_refusal(const Ended& ended, const std::string& why) {
    EXPECT_EQ(ended.exit_code, 1) << ended.text;
    EXPECT_THAT(ended.text, HasSubstr(why));
    int errors = 0;
    std::istringstream lines(ended.text);
    for (std::string line; std::getline(lines, line);) errors += line.starts_with("runner: ") ? 1 : 0;
    EXPECT_EQ(errors, 1) << ended.text;
    EXPECT_THAT(results(), testing::IsEmpty());
  }
  Ended run_pack(const Pack& pack) {
    const Status written = write_pack(pack, (dir_ / "a.pack").string());
    EXPECT_TRUE(written.is_ok()) << written.message();
    return run_pack();
  }

  std::vector<json> results() const {
    std::ifstream in(dir_ / "results.jsonl");
    std::vector<json> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(json::parse(line));
    return lines;
  }
  std::vector<json> results_of(int candidate) const {
    std::vector<json> found;
    for (const json& line : results())
      if (line["candidate"] == candidate) found.push_back(line);
    return found;
  }

  int made_ = 0;
};

TEST_F(RunPack, TheFastestGoThroughAllRoundsAndEachBadKernelCostsOneTrial) {
  // Each of the first two is so much faster than the next that being preempted in a sample of 0.2 ms changes
  // no order.
  const Ended ended = run_pack(
      pack_of({right(4'000'000), cpu("for (;;) {}"), right(400), cpu("*(volatile int*)16 = 1; return 0;"),
               right(100'000), cpu("return 0;"), right(3'000'000)}));
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("round 1 of 3: 7 of 7 measured, 4 right"));
  std::map<std::string, int> outcomes;
  for (const json& line : results()) ++outcomes[line["outcome"]];
  EXPECT_EQ(outcomes["run_timeout"], 1);
  EXPECT_EQ(outcomes["crashed"], 1);
  EXPECT_EQ(outcomes["wrong_answer"], 1);
  // Four, then two, then one of the right ones.
  EXPECT_EQ(outcomes["ok"], 4 + 2 + 1);
  EXPECT_EQ(results_of(1)[0]["message"], "still running after 1 s while in its first run");
  EXPECT_THAT(results_of(3)[0]["message"].get<std::string>(), HasSubstr("SIGSEGV"));
  EXPECT_EQ(results_of(2).size(), 3u) << "the fastest";
  EXPECT_EQ(results_of(0).size(), 1u) << "the slowest";
  const json line = results_of(2)[2];
  EXPECT_EQ(line["round"], 2);
  EXPECT_EQ(line["workload"], "w");
  EXPECT_EQ(line["target"], "a target");
  EXPECT_EQ(line["config"], "n=3");
  EXPECT_EQ(line["options"]["repeats"], 7);
  EXPECT_GT(line["peak_gflops"], 0);
  EXPECT_NE(line["hardware"], "");
  for (const auto& entry : std::filesystem::directory_iterator(dir_))
    EXPECT_THAT(entry.path().filename().string(), Not(HasSubstr("tuner-pack-"))) << "left behind";
}

TEST_F(RunPack, LimitsOfATaskTakeThePlaceOfThePlans) {
  for (const bool own : {false, true}) {
    Pack pack =
        pack_of({cpu("static int calls; if (!calls++) usleep(400000); return doubling_right(args);")});
    pack.plan.rounds.resize(1);
    pack.plan.limits.run_timeout_s = 0.2;
    if (own) pack.tasks[0].limits = PackLimits{.run_timeout_s = 10};
    std::filesystem::remove(dir_ / "results.jsonl");
    EXPECT_EQ(run_pack(pack).exit_code, 0);
    ASSERT_EQ(results().size(), 1u);
    EXPECT_EQ(results()[0]["outcome"], own ? "ok" : "run_timeout");
    EXPECT_EQ(results()[0]["options"]["run_timeout_s"], own ? 10 : 0.2);
  }
  Pack small = pack_of({right(400)});
  small.tasks[0].limits = PackLimits{.memory_limit_bytes = 4096};
  std::filesystem::remove(dir_ / "results.jsonl");
  EXPECT_EQ(run_pack(small).exit_code, 0);
  EXPECT_EQ(results().at(0)["outcome"], "out_of_memory");
}

TEST_F(RunPack, GpuCandidatesRunOnTheDevice) {
  ASSERT_TRUE(write_pack(pack_of({gpu("doubling ns=9000"), gpu("hang"), gpu("doubling ns=4000"),
                                  gpu("illegal_address"), gpu("beside"), gpu("doubling ns=6000")}),
                         (dir_ / "a.pack").string())
                  .is_ok());
  const Ended ended =
      run_pack("", str("TUNER_LIBCUDA=", TUNER_FAKE_CUDA, " TUNER_LIBNVML=", TUNER_FAKE_CUDA));
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  EXPECT_EQ(results_of(1)[0]["outcome"], "run_timeout");
  EXPECT_THAT(results_of(3)[0]["message"].get<std::string>(), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
  EXPECT_THAT(results_of(4)[0]["message"].get<std::string>(), HasSubstr("wrote outside out"));
  for (const int bad : {1, 3, 4}) EXPECT_EQ(results_of(bad).size(), 1u);
  ASSERT_EQ(results_of(2).size(), 3u);
  const json best = results_of(2)[2];
  EXPECT_NEAR(best["run_ns"][0].get<double>(), 4000, 1);
  EXPECT_THAT(best["hardware"].get<std::string>(), HasSubstr("Fake GPU sm_90"));
  EXPECT_THAT(best["device_state"].get<std::string>(), HasSubstr("1980 MHz"));
  EXPECT_EQ(best["peak_gflops"], 2560);
}

TEST_F(RunPack, AGpuPackOnAHostWithoutAGpuSaysSo) {
  ASSERT_TRUE(write_pack(pack_of({gpu("doubling")}), (dir_ / "a.pack").string()).is_ok());
  const Ended ended = run_pack("", "TUNER_LIBCUDA=/not/there.so");
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.text, HasSubstr("the pack holds kernels for \"a target\"; no GPU: the driver library"));
  EXPECT_THAT(results(), testing::IsEmpty());
}

// --- first contact with a GPU host ---

TEST_F(RunPack, KernelsForAnotherArchitectureAreRefusedBeforeAnythingRuns) {
  const std::string log = str("TUNER_FAKE_CUDA_LOG=", (dir_ / "contexts").string());
  const PackCandidate sm_80 = gpu("doubling", "FAKECUBIN arch=80 toolkit=13", "cuda -arch=sm_80");
  expect_refusal(run_on_gpu({gpu("doubling"), sm_80}, log),
                 "the pack's kernels are for sm_80, and the first GPU here is Fake GPU, sm_90: it cannot run "
                 "them. Pack with --target \"cuda -arch=sm_90a\"\n");
  // An architecture's own features, and code that would run but is not this GPU's own.
  const PackCandidate sm_90a = gpu("doubling", "FAKECUBIN", "cuda -arch=sm_90a");
  expect_refusal(run_on_gpu({sm_90a}, log + " TUNER_FAKE_CUDA_ARCH=100"), "sm_100: it cannot run them");
  expect_refusal(run_on_gpu({sm_80}, log + " TUNER_FAKE_CUDA_ARCH=86"),
                 "sm_86: it would run them, but their times would be recorded as those of another GPU");
  // Another class of devices: the same code, other times.
  const PackCandidate h200 = gpu("doubling", "FAKECUBIN", "cuda -arch=sm_90a -device=h200");
  expect_refusal(run_on_gpu({h200}, log + " TUNER_FAKE_CUDA_NAME='NVIDIA H100 PCIe'"),
                 "the pack's kernels are for the device class h200, sm_90a, and the first GPU here is NVIDIA "
                 "H100 PCIe, sm_90: it would run them, but their times would be recorded as those of another "
                 "GPU. Pack with --target \"cuda -arch=sm_90a -device=h100-pcie\"\n");
  EXPECT_FALSE(std::filesystem::exists(dir_ / "contexts")) << "nothing ran";
  EXPECT_EQ(run_on_gpu({h200}, log + " TUNER_FAKE_CUDA_NAME='NVIDIA H200'").exit_code, 0);
  std::filesystem::remove(dir_ / "results.jsonl");
  EXPECT_EQ(run_on_gpu({sm_90a}, log).exit_code, 0);
}

TEST_F(RunPack, ADriverOlderThanTheToolkitIsToldBeforeAnythingRuns) {
  const PackCandidate newer = gpu("doubling", "FAKECUBIN arch=90 toolkit=13");
  expect_refusal(
      run_on_gpu({newer}, "TUNER_FAKE_CUDA_DRIVER=12080"),
      "NVRTC of CUDA 13 made the kernels, and this host's driver supports CUDA 12.8, which refuses "
      "them; update the driver, or compile with a libnvrtc.so of CUDA 12 (TUNER_NVRTC)\n");
  EXPECT_EQ(run_on_gpu({newer}, "TUNER_FAKE_CUDA_DRIVER=13010").exit_code, 0);
}

// What the manifests do not tell: kernels that no check before the run finds out.
TEST_F(RunPack, AHostThatTakesNoneOfTheKernelsMakesNoFailedTrials) {
  for (const std::string lazy : {"", "TUNER_FAKE_CUDA_LAZY=1"}) {
    const PackCandidate foreign = gpu("doubling", "FAKECUBIN arch=80 toolkit=13");
    expect_refusal(run_on_gpu({foreign}, lazy), "the device takes no code of \"cuda -arch=sm_90\": ");
    const PackCandidate newer = gpu("doubling", "FAKECUBIN arch=90 toolkit=14");
    expect_refusal(
        run_on_gpu({newer, newer, newer, newer}, lazy),
        "not one of the first 3 kernels can be used here, so none was recorded; the first cannot be "
        "loaded: ");
    expect_refusal(run_on_gpu({newer}, lazy), "not one of the first 1 kernels can be used here");
  }
  // One that loads shows that the others were to blame.
  const PackCandidate bad = gpu("doubling", "no cubin");
  EXPECT_EQ(run_on_gpu({bad, bad, gpu("doubling")}, "").exit_code, 0);
  for (const int candidate : {0, 1}) {
    ASSERT_EQ(results_of(candidate).size(), 1u);
    EXPECT_EQ(results_of(candidate)[0]["outcome"], "build_error");
  }
  EXPECT_EQ(results_of(2).size(), 3u);
}

TEST_F(RunPack, AKernelThatIsRefusedWhereOthersRanIsAFailedTrial) {
  Pack pack = pack_of({gpu("doubling ns=4000"), gpu("doubling", "NOCUBIN")});
  pack.plan.rounds.resize(1);
  ASSERT_TRUE(write_pack(pack, (dir_ / "a.pack").string()).is_ok());
  const Ended ended =
      run_pack("", str("TUNER_LIBCUDA=", TUNER_FAKE_CUDA, " TUNER_LIBNVML=", TUNER_FAKE_CUDA));
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  EXPECT_EQ(results_of(0).size(), 1u);
  ASSERT_EQ(results_of(1).size(), 1u);
  EXPECT_EQ(results_of(1)[0]["outcome"], "build_error");
}

TEST_F(RunPack, AColdDriverMayTakeLongerToStartThanLater) {
  const std::string cold = str("TUNER_FAKE_CUDA_SLOW=3:", (dir_ / "warm").string());
  // Three seconds are within the first start's six, beyond the one of later starts.
  EXPECT_EQ(run_on_gpu({gpu("doubling"), gpu("illegal_address")}, cold + " TUNER_DEVICE_START_S=6").exit_code,
            0);
  EXPECT_EQ(results_of(0).size(), 3u);
  std::filesystem::remove(dir_ / "warm");
  std::filesystem::remove(dir_ / "results.jsonl");
  expect_refusal(run_on_gpu({gpu("doubling")}, cold + " TUNER_DEVICE_START_S=1"),
                 "no GPU: the driver gave no answer within 1 s; TUNER_DEVICE_START_S grants more\n");
}

TEST_F(RunPack, ADeviceThatIsLostIsNoFailureOfTheCandidate) {
  const std::string lost = str("TUNER_FAKE_CUDA_LOST=", (dir_ / "lost").string());
  const std::vector<PackCandidate> candidates = {gpu("falls_off"), gpu("doubling")};
  expect_refusal(
      run_on_gpu(candidates, lost, "--deadline 6"),
      "the device was lost while a candidate ran (cuStreamSynchronize: CUDA_ERROR_UNKNOWN (by the fake "
      "driver) while in its first run): device check: no GPU: cuInit: CUDA_ERROR_NO_DEVICE");
  // It is back, and the candidate is innocent.
  std::filesystem::remove(dir_ / "lost");
  EXPECT_EQ(run_on_gpu({gpu("doubling"), gpu("doubling")}, lost).exit_code, 0);
}

TEST_F(RunPack, AnErrorThatIsReportedLateIsNotPutDownToTheNextCandidate) {
  EXPECT_EQ(run_on_gpu({gpu("late_fault waits=2"), gpu("doubling"), gpu("leaves_fault"), gpu("doubling")}, "")
                .exit_code,
            0);
  ASSERT_EQ(results_of(0).size(), 1u);
  EXPECT_EQ(results_of(0)[0]["outcome"], "crashed");
  EXPECT_THAT(results_of(0)[0]["message"].get<std::string>(), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
  for (const int candidate : {1, 2, 3}) EXPECT_EQ(results_of(candidate)[0]["outcome"], "ok") << candidate;
}

// --- times ---

// Queuing a launch takes longer than these kernels: only replayed calls tell them apart.
TEST_F(RunPack, KernelsShorterThanALaunchDiffer) {
  const std::vector<PackCandidate> candidates = {gpu("doubling ns=2000"), gpu("doubling ns=3000"),
                                                 gpu("doubling ns=50000")};
  EXPECT_EQ(run_on_gpu(candidates, "TUNER_FAKE_CUDA_LAUNCH_NS=4000", "", 1).exit_code, 0);
  const double expected[] = {2000, 3000, 50'000};
  for (int c = 0; c < 3; ++c) EXPECT_NEAR(results_of(c)[0]["run_ns"][0].get<double>(), expected[c], 1) << c;
  std::filesystem::remove(dir_ / "results.jsonl");
  EXPECT_EQ(
      run_on_gpu(candidates, "TUNER_FAKE_CUDA_LAUNCH_NS=4000 TUNER_FAKE_CUDA_NO_GRAPHS=1", "", 1).exit_code,
      0);
  const double queued[] = {4000, 4000, 50'000};
  for (int c = 0; c < 3; ++c) EXPECT_NEAR(results_of(c)[0]["run_ns"][0].get<double>(), queued[c], 1) << c;
}

TEST_F(RunPack, AFaultInReplayedCallsIsTheCandidates) {
  EXPECT_EQ(run_on_gpu({gpu("illegal_address after=400"), gpu("wrong after=400"), gpu("doubling")}, "", "", 1)
                .exit_code,
            0);
  EXPECT_EQ(results_of(0)[0]["outcome"], "crashed");
  EXPECT_THAT(results_of(0)[0]["message"].get<std::string>(), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
  EXPECT_EQ(results_of(1)[0]["outcome"], "wrong_answer");
  EXPECT_EQ(results_of(2)[0]["outcome"], "ok");
}

// --- the order, and going on ---

TEST_F(RunPack, TasksTakeTurnsInEveryRound) {
  std::vector<PackCandidate> candidates;
  for (int i = 0; i < 6; ++i) candidates.push_back(gpu(str("doubling ns=", 5000 + i)));
  Pack pack = pack_of(candidates);
  pack.tasks.push_back(pack.tasks[0]);
  pack.tasks[1].workload_key = "another";
  pack.plan.rounds = {{.repeats = 3, .keep = 1}, {.repeats = 3}};
  ASSERT_TRUE(write_pack(pack, (dir_ / "a.pack").string()).is_ok());
  EXPECT_EQ(run_pack("", str("TUNER_LIBCUDA=", TUNER_FAKE_CUDA)).exit_code, 0);
  std::string order;
  for (const json& line : results()) order += line["task"] == 0 ? 'a' : 'b';
  EXPECT_EQ(order, "aaaabbbbaabbaaaabbbbaabb");
}

TEST_F(RunPack, WhatIsThereIsNotMeasuredAgainAndATornLineIs) {
  EXPECT_EQ(run_pack(pack_of({right(400), right(40'000), cpu("return 0;")})).exit_code, 0);
  std::ifstream in(dir_ / "results.jsonl");
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(run_pack().exit_code, 0);
  std::ifstream again(dir_ / "results.jsonl");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(again), {}), whole);

  // Killed in the middle of its second line.
  const size_t line = whole.find('\n') + 1;
  std::ofstream(dir_ / "results.jsonl") << whole.substr(0, line + 30);
  EXPECT_EQ(run_pack().exit_code, 0);
  const std::vector<json> resumed = results();
  std::set<std::tuple<int, int>> seen;
  for (const json& l : resumed) EXPECT_TRUE(seen.emplace(l["candidate"], l["round"]).second);
  EXPECT_TRUE(seen.contains({1, 0}) && seen.contains({2, 0}));
  EXPECT_EQ(resumed[0], json::parse(whole.substr(0, line)));
}

TEST_F(RunPack, StopsAtTheDeadlineAndGoesOnLater) {
  std::vector<PackCandidate> candidates{right(400)};
  for (int i = 0; i < 3; ++i) candidates.push_back(cpu(str("for (volatile int i = ", i, ";;) {}")));
  ASSERT_TRUE(write_pack(pack_of(std::move(candidates)), (dir_ / "a.pack").string()).is_ok());
  const Ended first = run_pack("--deadline 1.8");
  EXPECT_EQ(first.exit_code, 0);
  EXPECT_THAT(first.text, HasSubstr("the deadline is reached; run again to continue: "));
  EXPECT_LT(results().size(), 4u);
  const Ended second = run_pack();
  EXPECT_EQ(second.exit_code, 0) << second.text;
  for (int i = 1; i <= 3; ++i) {
    ASSERT_EQ(results_of(i).size(), 1u);
    EXPECT_EQ(results_of(i)[0]["outcome"], "run_timeout");
  }
}

TEST_F(RunPack, WrongUseIsToldAndChangesNothing) {
  EXPECT_EQ(run_pack().exit_code, 2) << "there is no pack";
  ASSERT_TRUE(write_pack(pack_of({right(400)}), (dir_ / "a.pack").string()).is_ok());
  EXPECT_EQ(run_pack("--deadline soon").exit_code, 2);
  EXPECT_EQ(run_pack("--deadline").exit_code, 2);
  EXPECT_EQ(run_pack("another").exit_code, 2);
  std::ofstream(dir_ / "results.jsonl") << "a letter to a friend\n";
  const Ended foreign = run_pack();
  EXPECT_EQ(foreign.exit_code, 2);
  EXPECT_THAT(foreign.text, HasSubstr("results.jsonl: line 1: not a result of run-pack"));
  std::filesystem::remove(dir_ / "results.jsonl");
  EXPECT_EQ(run_pack().exit_code, 0);
  const Ended other = run_pack(pack_of({right(401)}));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.text, HasSubstr("of another pack"));
}

TEST_F(RunPack, AFileOfSomebodyElseIsLeftAsItIs) {
  ASSERT_TRUE(write_pack(pack_of({right(400)}), (dir_ / "a.pack").string()).is_ok());
  for (const std::string notes : {"notes", "{\"a\":1}", "{\"artifacts\":[1,"}) {
    std::ofstream(dir_ / "results.jsonl") << notes;
    const Ended ended = run_pack();
    EXPECT_EQ(ended.exit_code, 2) << notes;
    EXPECT_THAT(ended.text, HasSubstr("results.jsonl: line 1: not a result of run-pack"));
    std::ifstream in(dir_ / "results.jsonl");
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), notes);
  }
  // What a kill leaves, however short, is not somebody's.
  std::ofstream(dir_ / "results.jsonl") << "{\"art";
  EXPECT_EQ(run_pack().exit_code, 0);
  EXPECT_EQ(results().size(), 3u);
}

TEST_F(RunPack, OnlyRegularFilesAreWrittenTo) {
  ASSERT_TRUE(write_pack(pack_of({right(400)}), (dir_ / "a.pack").string()).is_ok());
  ASSERT_EQ(::mkfifo((dir_ / "pipe").c_str(), 0600), 0);
  for (const char* output : {"/dev/full", "/dev/zero", "pipe", "."}) {
    const Ended ended = run_pack(str("-o ", output));
    EXPECT_EQ(ended.exit_code, 2) << output;
    EXPECT_THAT(ended.text, HasSubstr(str(output, ": not a regular file")));
  }
}

TEST_F(RunPack, ASecondRunOnTheSameResultsIsRefusedWhileTheFirstGoesOn) {
  ASSERT_TRUE(write_pack(pack_of({right(400)}), (dir_ / "a.pack").string()).is_ok());
  {
    // The first run, as far as the second can tell: this process has its lock.
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> first(
        std::fopen((dir_ / "results.jsonl").c_str(), "abe"), std::fclose);
    ASSERT_NE(first, nullptr);
    ASSERT_EQ(::flock(::fileno(first.get()), LOCK_EX | LOCK_NB), 0);
    const Ended second = run_pack();
    EXPECT_EQ(second.exit_code, 2);
    EXPECT_THAT(second.text, testing::MatchesRegex("runner: results.jsonl: (process [0-9]+|another process) "
                                                   "is writing results to it; [^\n]*\n"));
    EXPECT_THAT(results(), testing::IsEmpty());
  }
  EXPECT_EQ(run_pack().exit_code, 0);

  // And the other way round: a run has the lock while it measures, and its end gives it back.
  std::filesystem::remove(dir_ / "results.jsonl");
  ASSERT_TRUE(write_pack(pack_of({cpu("for (;;) {}")}), (dir_ / "a.pack").string()).is_ok());
  std::thread first([&] { run_pack(); });
  const bool held = wait_until(std::chrono::seconds(10), [&] {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
        std::fopen((dir_ / "results.jsonl").c_str(), "re"), std::fclose);
    return file != nullptr && ::flock(::fileno(file.get()), LOCK_SH | LOCK_NB) != 0;
  });
  first.join();
  EXPECT_TRUE(held);
}

TEST_F(RunPack, ADamagedPackIsRefusedBeforeAnythingIsMeasured) {
  const std::string path = (dir_ / "a.pack").string();
  ASSERT_TRUE(write_pack(pack_of({right(400), right(401)}), path).is_ok());
  // The last byte: of the binary that would be measured last.
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(-1, std::ios::end);
  const auto last = static_cast<char>(file.get() ^ 1);
  file.seekp(-1, std::ios::end);
  file.put(last);
  file.close();
  const Ended ended = run_pack();
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.text, HasSubstr("a.pack: damaged: "));
  EXPECT_THAT(ended.text, HasSubstr("copy it again"));
  EXPECT_THAT(results(), testing::IsEmpty());
}

}  // namespace
}  // namespace tuner
