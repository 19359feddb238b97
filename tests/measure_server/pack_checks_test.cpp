// runner run-pack with references kept as checksums: outputs are added up on the device, inputs stay there,
// and every verdict is that of a comparison on the host. On a driver of ours.
#include <sys/wait.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "measure_server/runner/check_kernels.h"
#include "measure_server/runner/input_data.h"
#include "measure_server/runner/pack_file.h"
#include "tests/measure_server/candidate_fixture.h"

namespace tuner {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class PackChecks : public CandidateTest {
 protected:
  static constexpr int64_t kRows = 100, kColumns = 700, kElements = kRows * kColumns;

  // The place of an element that no sample looks at.
  int64_t unsampled() const { return unsampled_; }

  PackCandidate gpu(const std::string& behaviour) {
    Manifest m;
    m.entry = "doubling";
    m.kind = binary_kind::kCubin;
    m.args = {{"x", BufferRole::kInput, DType::kFloat32, {kRows, kColumns}, "", kElements * 4},
              {"out", BufferRole::kOutput, DType::kFloat32, {kRows, kColumns}, "", kElements * 4}};
    m.target = "cuda -arch=sm_90";
    m.toolchain = "nvrtc 13.0 cuda codegen 1";
    m.launches = {LaunchInfo{.kernel = "k", .grid = {5, 1, 1}, .block = {256, 1, 1}, .params = {0, 1}}};
    return {.template_name = "t",
            .config = str("n=", ++made_),
            .template_version = 1,
            .artifact = {m, str("FAKECUBIN\nkernel k ", behaviour, " n=", kElements, "\n")}};
  }

  static std::string checker() {
    return str("FAKECUBIN\nkernel ", sums_kernel(DType::kFloat32), " check_sums\nkernel ",
               samples_kernel(DType::kFloat32), " check_samples\nkernel ", kEqualKernel,
               " check_equal\nkernel ", kHashKernel, " check_hash\n");
  }

  // Measures the candidates, and returns the first result of each.
  std::vector<json> measure(std::vector<PackCandidate> candidates, bool on_device) {
    PackTask task{.workload_key = "w", .target = "cuda -arch=sm_90", .input_seed = 5};
    task.inputs = {{"x", 0, kElements}};
    const std::vector<float> x = random_values(5, 0, kElements);
    std::vector<double> answer(x.begin(), x.end());
    for (double& v : answer) v *= 2;
    EXPECT_TRUE(
        write_reference(dir_ / "pack.ref", answer, {kRows, kColumns}, ReferenceKind::kChecksums).is_ok());
    std::ifstream in(dir_ / "pack.ref", std::ios::binary);
    task.references = {{"out", std::string(std::istreambuf_iterator<char>(in), {})}};
    if (on_device) task.checker = checker();
    const size_t n = candidates.size();
    task.candidates = std::move(candidates);
    Pack pack{.tasks = {std::move(task)}};
    pack.plan.rounds = {{.repeats = 3}};
    pack.plan.min_repeat_ms = 0.1;
    EXPECT_TRUE(write_pack(pack, (dir_ / "a.pack").string()).is_ok());
    std::filesystem::remove(dir_ / "results.jsonl");
    std::filesystem::remove(dir_ / "copies");
    const int status = std::system(str("cd ", dir_.string(), " && TMPDIR=", dir_.string(),
                                       " TUNER_LIBCUDA=", TUNER_FAKE_CUDA,
                                       " TUNER_FAKE_CUDA_COPIES=", (dir_ / "copies").string(), " ",
                                       TUNER_RUNNER_PATH, " run-pack a.pack -o results.jsonl >log 2>&1")
                                       .c_str());
    std::ifstream log(dir_ / "log");
    EXPECT_EQ(WEXITSTATUS(status), 0) << std::string(std::istreambuf_iterator<char>(log), {});
    std::ifstream lines(dir_ / "results.jsonl");
    std::vector<json> results(n);
    for (std::string line; std::getline(lines, line);) {
      const json result = json::parse(line);
      results.at(result["candidate"].get<size_t>()) = result;
    }
    return results;
  }

  // How many copies of that many bytes went there.
  int copies(int64_t bytes, const std::string& where) const {
    std::ifstream in(dir_ / "copies");
    int found = 0;
    for (std::string line; std::getline(in, line);) found += line == str(bytes, " to ", where) ? 1 : 0;
    return found;
  }

  void SetUp() override {
    CandidateTest::SetUp();
    const std::vector<double> nothing(kElements, 0);
    ASSERT_TRUE(
        write_reference(dir_ / "n.ref", nothing, {kRows, kColumns}, ReferenceKind::kChecksums).is_ok());
    std::ifstream in(dir_ / "n.ref", std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    const Result<ReferenceView> view = parse_reference(bytes);
    ASSERT_TRUE(view.is_ok()) << view.message();
    std::set<uint64_t> sampled;
    for (const auto& s : view->samples) sampled.insert(s.index);
    unsampled_ = 57 * kColumns + 100;
    while (sampled.contains(static_cast<uint64_t>(unsampled_))) ++unsampled_;
  }

  int made_ = 0;
  int64_t unsampled_ = 0;
};

TEST_F(PackChecks, VerdictsAreThoseOfTheHost) {
  for (const bool on_device : {false, true}) {
    const std::vector<json> results = measure(
        {gpu("doubling ns=4000"), gpu(str("wrong at=", unsampled())), gpu("wrong at=0"), gpu("unwritten"),
         gpu("writes_input_unseen"), gpu(str("wrong after=5 at=", unsampled())), gpu("beside"), gpu("copy")},
        on_device);
    const auto outcome = [&](size_t i) { return results[i]["outcome"].get<std::string>(); };
    const auto message = [&](size_t i) { return results[i]["message"].get<std::string>(); };
    EXPECT_EQ(outcome(0), "ok") << message(0);
    EXPECT_NEAR(results[0]["run_ns"][0].get<double>(), 4000, 1);
    for (const size_t wrong : {1, 2, 3, 5, 7}) EXPECT_EQ(outcome(wrong), "wrong_answer") << wrong;
    EXPECT_THAT(message(1), HasSubstr("sum of row 57 of out (from out[57, 0]) is "));
    EXPECT_THAT(message(2), HasSubstr("out[0, 0] is -1, reference "));
    EXPECT_THAT(message(3), HasSubstr("out[99, 699] is nan"));
    EXPECT_THAT(message(5), HasSubstr("(right in the first run, wrong in the run after timing)"));
    EXPECT_EQ(message(4), "wrote to input x");
    EXPECT_EQ(message(6), "wrote outside out while in its first run");
  }
}

// What a candidate costs beside its own time: 256 MiB to the host and back are a hundred times as long as it.
TEST_F(PackChecks, NothingLargeTravelsForACandidate) {
  const std::vector<PackCandidate> three = {gpu("doubling"), gpu("doubling ns=5001"),
                                            gpu("doubling ns=5002")};
  for (const bool on_device : {false, true}) {
    for (const json& result : measure(three, on_device))
      EXPECT_EQ(result["outcome"], "ok") << result["message"];
    EXPECT_EQ(copies(kElements * 4, "device"), on_device ? 1 : 3) << "inputs";
    // First run, last run, and the input.
    EXPECT_EQ(copies(kElements * 4, "host"), on_device ? 0 : 3 * 3);
  }
}

TEST_F(PackChecks, CheckingKernelsThatThisHostRefusesEndTheRun) {
  (void)measure({gpu("doubling")}, true);
  const Result<PackFile> file = PackFile::open((dir_ / "a.pack").string());
  ASSERT_TRUE(file.is_ok()) << file.message();
  Pack pack = file->pack();
  pack.tasks[0].references[0].bytes = *file->reference(0, 0);
  pack.tasks[0].candidates[0].artifact = *file->artifact(0, 0);
  pack.tasks[0].checker = "no cubin";
  ASSERT_TRUE(write_pack(pack, (dir_ / "b.pack").string()).is_ok());
  const int status = std::system(str("cd ", dir_.string(), " && TUNER_LIBCUDA=", TUNER_FAKE_CUDA, " ",
                                     TUNER_RUNNER_PATH, " run-pack b.pack -o b.jsonl >log 2>&1")
                                     .c_str());
  EXPECT_EQ(WEXITSTATUS(status), 1);
  std::ifstream log(dir_ / "log");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(log), {}).substr(0, 64),
            "runner: the pack's checking kernels cannot be loaded here: cuMod");
  EXPECT_EQ(std::filesystem::file_size(dir_ / "b.jsonl"), 0u);
}

// Nothing keeps a kernel from writing to the originals of inputs: the next candidate gets new ones.
TEST_F(PackChecks, AStrayWriteDoesNotMakeTheNextCandidateWrong) {
  const std::vector<json> results =
      measure({gpu("doubling"), gpu("writes_elsewhere"), gpu("doubling")}, true);
  for (const json& result : results) EXPECT_EQ(result["outcome"], "ok") << result["message"];
  EXPECT_EQ(copies(kElements * 4, "device"), 2);
}

}  // namespace
}  // namespace tuner
