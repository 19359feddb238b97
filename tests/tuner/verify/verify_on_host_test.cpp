// `tuner verify --on-host`: the CUDA examples are right on this host in any config, and what is wrong with a
// kernel is found and said. The long suite takes 200 configs of each example.
#include "tuner/verify/verify_on_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "compiler_core/base/input_file.h"
#include "compiler_core/foreign/compilers.h"
#include "compiler_core/foreign/confined_program.h"
#include "templates/source_kernel/source_kernel_json.h"
#include "tests/random_seed.h"

namespace tuner {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kFolder[] = TUNER_SOURCE_DIR "/examples/own_kernels";

// The folder of the examples, with another text in the place of some of them.
class ExamplesFolder final : public JobFolder {
 public:
  std::map<std::string, std::string> texts;

  bool has(const std::string& name) const override { return texts.contains(name) || folder_->has(name); }
  Result<std::string> read(const std::string& name, size_t most_bytes) const override {
    const auto own = texts.find(name);
    if (own != texts.end()) return own->second;
    return folder_->read(name, most_bytes);
  }

 private:
  const std::unique_ptr<JobFolder> folder_ = job_folder(kFolder);
};

// An example with sizes that no tile divides, and what may be changed of its source.
struct Example {
  std::string file, source;
  nlohmann::json sizes;
  std::vector<std::pair<std::string, std::string>> damage;  // text of the source -> what it becomes
};
std::vector<Example> examples() {
  return {{"reduce_cuda.json",
           "reduce.cu",
           {{"rows", 3}, {"columns", 1000}},
           {{"sums[threadIdx.x] = sum;\n  __syncthreads();", "sums[threadIdx.x] = sum;"},
            {"sums[threadIdx.x + half];\n    __syncthreads();", "sums[threadIdx.x + half];"},
            {"first + i * THREADS < columns", "first + i * THREADS <= columns"},
            {"sums[threadIdx.x + half]", "sums[threadIdx.x + half + 1]"}}},
          {"transpose_cuda.json",
           "transpose.cu",
           {{"height", 70}, {"width", 45}},
           {{"  __syncthreads();\n", ""},
            {"tile[threadIdx.x][i]", "tile[threadIdx.x][i + 1]"},
            {"y < height) tile", "y <= height) tile"}}},
          {"conv2d_cuda.json",
           "conv2d.cu",
           {{"height", 37}, {"width", 50}},
           {{"  __syncthreads();\n", ""},
            {"y < rows; y", "y <= rows; y"},
            {"rows = BLOCK_Y * TILE_Y + WINDOW - 1", "rows = BLOCK_Y * TILE_Y + WINDOW - 2"}}}};
}

std::string text_of(const std::string& file) {
  const Result<std::string> text = read_file(str(kFolder, "/", file), "an example", size_t{1} << 20);
  CHECK(text.is_ok()) << text.message();
  return *text;
}

CliTask task_of(const nlohmann::json& job, const ExamplesFolder& folder) {
  const Result<std::vector<JobEntry>> entries = parse_job_text(job.dump(), "job.json", &folder);
  CHECK(entries.is_ok()) << entries.message();
  CliTask task{.workload = entries->at(0).workload, .target = *parse_target("cuda -arch=sm_90")};
  task.key = task.workload.key();
  task.target_name = task.target.name();
  return task;
}
CliTask task_of(const Example& e, const ExamplesFolder& folder = {}) {
  nlohmann::json job = nlohmann::json::parse(text_of(e.file));
  job["sizes"] = e.sizes;
  return task_of(job, folder);
}
CliTask damaged(const Example& e, const std::string& from, const std::string& to) {
  ExamplesFolder folder;
  std::string text = text_of(e.source);
  const size_t at = text.find(from);
  CHECK(at != std::string::npos) << from;
  folder.texts[e.source] = text.replace(at, from.size(), to);
  return task_of(e, folder);
}

// What is wrong with the default config.
std::string problem_of(const CliTask& task,
                       std::chrono::milliseconds deadline = std::chrono::milliseconds{60'000}) {
  const auto serving = templates_for(task.workload, task.target);
  CHECK(serving.is_ok()) << serving.message();
  const auto instance = serving->front()->apply(task.workload, task.target);
  CHECK(instance.is_ok()) << instance.message();
  const ConfigSpace& space = (*instance)->space();
  const Result<VerifyData> data = make_verify_data(task.workload, 0);
  if (!data) return data.message();
  const Result<ConfigVerdict> verdict = verify_host_config(
      task.workload, *(*instance)->instantiate(space.at(space.default_index())), *data, deadline);
  return verdict ? verdict->problem : "ERROR " + verdict.message();
}

class VerifyOnHost : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const Status able = can_confine(); !able) GTEST_SKIP() << able.message();
    for (const char* name : {"cc", "c++"})
      if (const Result<Compiler> compiler = find_compiler(name); !compiler)
        GTEST_SKIP() << compiler.message();
  }
};

TEST_F(VerifyOnHost, ConfigsOfTheExamplesAreRight) {
  const RandomSeed seed(7);
  for (const Example& e : examples()) {
    SCOPED_TRACE(e.file);
    const VerifyOptions options{.file = e.file, .samples = wanted_rounds(2), .seed = seed};
    const Result<int64_t> wrong = verify_on_host({task_of(e)}, options);
    ASSERT_TRUE(wrong.is_ok()) << wrong.message();
    EXPECT_EQ(*wrong, 0);
  }
}

TEST_F(VerifyOnHost, PlantedFaultsOfTheExamplesAreFound) {
  for (const Example& e : examples())
    for (const auto& [from, to] : e.damage) {
      const std::string problem = problem_of(damaged(e, from, to));
      EXPECT_NE(problem, "") << e.file << ": " << from << " -> " << to;
      EXPECT_EQ(problem.find("ERROR"), std::string::npos) << problem;
      EXPECT_EQ(problem.find("refuses"), std::string::npos) << problem;
      if (to.find("__syncthreads") == std::string::npos && from.find("__syncthreads") != std::string::npos) {
        EXPECT_THAT(problem, AllOf(HasSubstr("a race on "), HasSubstr(e.source + ":"))) << from;
      }
    }
}

TEST_F(VerifyOnHost, AWrongAnswerIsToldByItsFirstElement) {
  const Example e = examples()[0];
  EXPECT_THAT(
      problem_of(damaged(e, "out[blockIdx.x] = sum;", "out[blockIdx.x] = blockIdx.x == 1 ? 0 : sum;")),
      AllOf(HasSubstr("wrong_answer: out[1] is 0, reference "), HasSubstr("tolerance")));
}

TEST_F(VerifyOnHost, WhatDoesNotCompileOrEndSaysSo) {
  const Example e = examples()[1];
  EXPECT_THAT(problem_of(damaged(e, "int x = blockIdx.x", "int x = oops + blockIdx.x")),
              HasSubstr("transpose.cu:5:"));
  EXPECT_THAT(problem_of(damaged(e, "  __syncthreads();\n", "  for (volatile int n = 0;;) n = n;\n"),
                         std::chrono::seconds(1)),
              HasSubstr("did not end within 1 s"));
}

// "reference": "default": the kernel itself says what is right, if nothing is found in it.
TEST_F(VerifyOnHost, TheDefaultConfigMaySayWhatIsRight) {
  const Example e = examples()[1];
  nlohmann::json job = nlohmann::json::parse(text_of(e.file));
  job["sizes"] = e.sizes;
  job["reference"] = "default";
  EXPECT_THAT(problem_of(task_of(job, {})), IsEmpty());
  ExamplesFolder folder;
  folder.texts[e.source] = text_of(e.source);
  folder.texts[e.source].replace(folder.texts[e.source].find("  __syncthreads();"), 18, "");
  EXPECT_THAT(problem_of(task_of(job, folder)), HasSubstr("transpose, run on the host: a race on tile"));
}

TEST_F(VerifyOnHost, WhatIsNoCudaSourceIsRefused) {
  const CliTask task{.workload = MatmulWorkload{.m = 8, .n = 8, .k = 8},
                     .target = *parse_target("cuda -arch=sm_80"),
                     .key = "matmul",
                     .target_name = "cuda sm_80"};
  const Result<int64_t> wrong = verify_on_host({task}, {.file = "job.json"});
  ASSERT_FALSE(wrong.is_ok());
  EXPECT_EQ(wrong.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(wrong.message(), HasSubstr("job.json: --on-host runs kernels with \"language\": \"cuda\""));
}

}  // namespace
}  // namespace tuner
