// Compiled models as files: programs in C and C++ that run one, what stands in the weights file, and who is
// refused.
#include "tuner/model/model_package.h"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "compiler_core/codegen/compile.h"
#include "tests/tuner/command_line.h"
#include "tests/tuner/small_model.h"
#include "tuner/model/compiled_model.h"
#include "tuner/model/plan_file.h"

namespace tuner {
namespace {

using testing::CommandResult;
using ::testing::HasSubstr;
using testing::Numbers;
using testing::SmallModel;

class ModelPackage : public ::testing::Test {
 protected:
  std::string at(const std::string& name) const { return (shell_.folder() / name).string(); }
  void write(const std::string& folder, const std::string& name = "net", uint32_t seed = 1,
             const Target& target = host_target()) const {
    const Status written = SmallModel(seed).write(at(folder), name, target);
    ASSERT_TRUE(written) << written.message();
  }
  // One line, which says this.
  void expect_refused(const std::string& reason) const {
    const Result<CompiledModel> opened = CompiledModel::open(at("out"));
    ASSERT_FALSE(opened.is_ok());
    EXPECT_EQ(opened.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(opened.message(), HasSubstr(reason));
    EXPECT_EQ(std::ranges::count(opened.message(), '\n'), 0) << opened.message();
  }

  testing::CommandLine shell_{TUNER_BIN_DIR};
};

TEST_F(ModelPackage, RunsInThisProcessAsTheNetworkDoes) {
  const SmallModel network;
  ASSERT_TRUE(network.write(at("out"), "net", host_target()));
  const auto model = CompiledModel::open(at("out"));
  ASSERT_TRUE(model.is_ok()) << model.message();
  auto context = model->context();
  ASSERT_TRUE(context.is_ok()) << context.message();
  for (const uint32_t seed : {first_seed(2), first_seed(2) + 1}) {
    const Numbers x = network.input(seed);
    const SmallModel::Memory memory(x);
    const Status ran = context->run(memory.inputs(), memory.outputs());
    ASSERT_TRUE(ran) << ran.message();
    memory.expect(network.answer(x));
  }
}

TEST_F(ModelPackage, EightThreadsShareItsWeights) {
  const SmallModel network;
  ASSERT_TRUE(network.write(at("out"), "net", host_target()));
  const auto model = CompiledModel::open(at("out"));
  ASSERT_TRUE(model.is_ok()) << model.message();
  constexpr uint32_t kThreads = 8;
  std::vector<Numbers> inputs;
  std::vector<std::vector<Numbers>> answers;
  for (uint32_t t = 0; t < kThreads; ++t) {
    inputs.push_back(network.input(t));
    answers.push_back(network.answer(inputs.back()));
  }
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      auto context = model->context();
      ASSERT_TRUE(context.is_ok()) << context.message();
      for (int run = 0; run < 20; ++run) {
        const SmallModel::Memory memory(inputs[t]);
        ASSERT_TRUE(context->run(memory.inputs(), memory.outputs()));
        memory.expect(answers[t]);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ModelPackage, WeightsStandThereOnceAsKernelsReadThem) {
  write("out");
  const auto plan = nlohmann::json::parse(shell_.read("out/plan.json"));
  const std::string weights = shell_.read("out/net.weights");
  EXPECT_EQ(static_cast<size_t>(plan["weights"]["bytes"]), weights.size());
  int64_t end = sizeof(tuner_weights_header);
  for (const auto& entry : plan["weights"]["entries"]) {
    EXPECT_EQ(entry["offset"].get<int64_t>(), (end + 63) / 64 * 64);
    end = entry["offset"].get<int64_t>() + entry["bytes"].get<int64_t>();
    EXPECT_EQ(entry["digest"], sha256_hex(weights.substr(entry["offset"], entry["bytes"])));
  }
  // w1, b1, w2, b2, w3, b3: the second of the equal convolutions adds none.
  EXPECT_EQ(plan["weights"]["entries"].size(), 6u);
  EXPECT_EQ(plan["steps"].size(), 4u);
  EXPECT_EQ(plan["kernels"].size(), 3u);
  for (const auto& [path, digest] : plan["files"].items())
    EXPECT_EQ(digest, sha256_hex(shell_.read("out/" + path))) << path;
  EXPECT_EQ(shell_.tree("out").size(), plan["files"].size() + 1) << "files that no plan tells of";
}

TEST_F(ModelPackage, TheSameModelGivesTheSameFiles) {
  write("out");
  write("again");
  EXPECT_EQ(shell_.tree("out"), shell_.tree("again"));
  const auto before = shell_.tree("out");
  write("out");  // in the place of the former
  EXPECT_EQ(shell_.tree("out"), before);
}

TEST_F(ModelPackage, FoldersOfOtherKindsAreLeftAlone) {
  write("out");
  const auto before = shell_.tree("out");
  EXPECT_THAT(SmallModel().write(at("out"), "other", host_target()).message(),
              HasSubstr("holds the library \"net\""));
  EXPECT_THAT(BundleFolder::open(at("out"), "net").status().message(),
              HasSubstr("a library of another kind"));
  EXPECT_EQ(shell_.tree("out"), before);
}

TEST_F(ModelPackage, OtherFilesAreRefusedInOneLine) {
  write("out");
  write("other", "net", 2);
  const auto whole = shell_.tree("out");
  const auto with = [&](const std::string& file, const std::string& bytes) {
    for (const auto& [path, former] : whole) shell_.write("out/" + path, former);
    if (!file.empty()) shell_.write("out/" + file, bytes);
  };
  const std::string weights = whole.at("net.weights"), plan = whole.at("plan.json");
  with("net.weights", shell_.read("other/net.weights"));
  expect_refused("net.weights: belongs to another model");
  with("net.weights", weights.substr(0, weights.size() - 64));
  expect_refused("net.weights: has another length");
  with("net.weights", weights + std::string(64, '\0'));
  expect_refused("net.weights: has another length");
  with("net.weights", weights.substr(0, 40));
  expect_refused("net.weights: has another length");
  with("net.weights", "weights");
  expect_refused("net.weights: is no weights file");
  with("net.weights", "");
  expect_refused("net.weights: is no weights file");
  std::string newer = weights;
  newer[8] = 2;
  with("net.weights", newer);
  expect_refused("net.weights: is a weights file of another version");
  std::mt19937 random(first_seed(3));
  for (int round = 0; round < 50; ++round) {
    std::string damaged = weights;
    const size_t at = std::uniform_int_distribution<size_t>(128, damaged.size() - 1)(random);
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (round % 8)));
    with("net.weights", damaged);
    expect_refused("net.weights: is damaged");
  }
  with("lib/libnet.so", shell_.read("other/lib/libnet.so"));
  expect_refused("libnet.so: is damaged, or not the library that plan.json tells of");
  with("plan.json", shell_.read("other/plan.json"));
  expect_refused("libnet.so: is damaged");
  with("plan.json", plan.substr(0, plan.size() / 2));
  expect_refused("plan.json: line ");
  with("plan.json", "{}");
  expect_refused("plan.json: format");
  with("plan.json", std::string(plan).replace(plan.find("\"format\": 1"), 11, "\"format\": 7"));
  expect_refused("plan.json: format: expected 1, found 7");
  with("plan.json", std::string(plan).replace(plan.find("\"net\""), 5, "\"../net\""));
  expect_refused("plan.json: model: ");
  for (const char* file : {"net.weights", "lib/libnet.so", "plan.json"}) {
    with("", "");
    std::filesystem::remove(at("out") + "/" + file);
    expect_refused(std::filesystem::path(file).filename());
  }
  with("", "");
  EXPECT_TRUE(CompiledModel::open(at("out")).is_ok());
}

// Cut anywhere, and changed anywhere.
TEST_F(ModelPackage, DamagedPlansNeverCrash) {
  write("out");
  const std::string plan = shell_.read("out/plan.json");
  std::mt19937 random(first_seed(4));
  for (int round = 0; round < 300; ++round) {
    std::string damaged = plan;
    const size_t place = random() % damaged.size();
    if (round % 3 == 0)
      damaged.resize(place);
    else if (round % 3 == 1)
      damaged[place] = static_cast<char>(random());
    else
      damaged.erase(place, 1 + random() % 40);
    shell_.write("out/plan.json", damaged);
    const Result<CompiledPlan> read = read_plan(at("out"));
    if (!read.is_ok()) {
      EXPECT_EQ(std::ranges::count(read.message(), '\n'), 0) << read.message();
    }
  }
}

TEST_F(ModelPackage, CpusThatCannotRunItAreRefused) {
  const Result<Target> target = parse_target("llvm -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu");
  ASSERT_TRUE(target.is_ok()) << target.message();
  if (!host_target().is_x86()) GTEST_SKIP() << "this is no x86 CPU";
  write("out", "net", 1, *target);
  expect_refused("is compiled for \"llvm -mcpu=cortex-a72");
  // The table's own words, where a program has no plan.
  tuner_model table{};
  table.version = TUNER_MODEL_VERSION;
  table.instruction_sets = "avx9000";
  tuner_context* context = nullptr;
  EXPECT_EQ(tuner_model_create(&table, "none", nullptr, &context), TUNER_MODEL_OTHER_CPU);
  table.instruction_sets = "";
  EXPECT_EQ(tuner_model_create(&table, "none", nullptr, &context), TUNER_WEIGHTS_NO_FILE);
  table.version = 99;
  EXPECT_EQ(tuner_model_create(&table, "none", nullptr, &context), TUNER_MODEL_OTHER_ABI);
}

// Two models, one of them in two contexts, in a program of plain C or C++.
constexpr char kProgram[] = R"(
#include <stdio.h>
#include "net.h"
#include "two.h"
#include "tuner_pool.h"

static void* make(size_t bytes) { return aligned_alloc(64, (bytes + 63) / 64 * 64); }

static int read_numbers(const char* path, void* to, size_t bytes) {
  FILE* file = fopen(path, "rb");
  size_t got = file ? fread(to, 1, bytes, file) : 0;
  if (file) fclose(file);
  return got == bytes;
}
static int same(const float* a, const float* b, int count) {
  int i;
  for (i = 0; i < count; ++i)
    if (!(a[i] - b[i] < 1e-4f && b[i] - a[i] < 1e-4f)) return 0;
  return 1;
}

int main(void) {
  float* x = (float*)make(NET_X_BYTES);
  float* y = (float*)make(NET_Y_BYTES);
  float* right = (float*)make(NET_Y_BYTES);
  float* features = (float*)make(NET_FEATURES_BYTES);
  tuner_context *first = NULL, *second = NULL, *other = NULL;
  tuner_pool* pool = tuner_pool_create(2);
  tuner_runtime runtime = tuner_pool_runtime(pool, NULL);
  int32_t code = net_create("none.weights", NULL, &first);
  printf("none.weights: %s\n", tuner_model_error(code));
  code = net_create("two/two.weights", NULL, &first);
  printf("two/two.weights: %s\n", tuner_model_error(code));
  if (!net_runs_here() || net_create("net/net.weights", NULL, &first) != 0) return 1;
  if (net_share(first, &runtime, &second) != 0 || two_create("two/two.weights", NULL, &other) != 0) return 2;
  if (!read_numbers("x", x, NET_X_BYTES) || !read_numbers("y", right, NET_Y_BYTES)) return 3;
  if (net_run(first, x, y, features) != 0 || !same(y, right, 10)) return 4;
  net_destroy(first); /* the weights stay as long as anybody uses them */
  memset(y, 0xff, NET_Y_BYTES);
  if (net_run(second, x, y, features) != 0 || !same(y, right, 10)) return 5;
  if (two_run(other, x, y, features) != 0 || same(y, right, 10)) return 6;
  printf("unaligned: %s\n", tuner_model_error(net_run(second, x + 1, y, features)));
  net_destroy(second);
  two_destroy(other);
  net_destroy(NULL);
  tuner_pool_destroy(pool);
  puts("right");
  return 0;
}
)";

TEST_F(ModelPackage, ProgramsLinkItStaticallyAndShared) {
  const SmallModel network(1);
  write("net", "net", 1);
  write("two", "two", 2);
  shell_.write("program.c", kProgram);
  shell_.write("program.cpp", kProgram);
  const Numbers x = network.input(5);
  const std::vector<float> numbers(x.begin(), x.end());
  const Numbers y = network.answer(x)[0];
  const std::vector<float> answer(y.begin(), y.end());
  shell_.write("x", {reinterpret_cast<const char*>(numbers.data()), numbers.size() * 4});
  shell_.write("y", {reinterpret_cast<const char*>(answer.data()), answer.size() * 4});
  for (const char* compiler : {"cc -std=c11 -O2 -Wall -Wextra -Werror -pedantic program.c",
                               "c++ -std=c++17 -O2 -Wall -Wextra -Werror -pedantic program.cpp"})
    for (const char* libraries :
         {"net/lib/libnet.a two/lib/libtwo.a",
          "-Lnet/lib -Ltwo/lib -lnet -ltwo -Wl,-rpath,$PWD/net/lib,-rpath,$PWD/two/lib"}) {
      const CommandResult ran = shell_.run(
          str(compiler, " -Inet/include -Itwo/include ", libraries, " -pthread -o program && ./program"));
      EXPECT_EQ(ran.exit_code, 0) << compiler << " " << libraries << "\n" << ran.err << ran.out;
      EXPECT_EQ(ran.out,
                "none.weights: there is no such file\n"
                "two/two.weights: belongs to another model, or to this one compiled at another time\n"
                "unaligned: every input and output must be aligned to 64 bytes\n"
                "right\n");
    }
  // Nothing else shows, and nothing else is needed.
  EXPECT_EQ(shell_.run("nm -D --defined-only net/lib/libnet.so | sed 's/.* //'").out, "tuner_net_model\n");
  EXPECT_EQ(shell_.run("nm -D --undefined-only net/lib/libnet.so").out, "");
  EXPECT_EQ(shell_.run("readelf -d net/lib/libnet.so | grep -c NEEDED || true").out, "0\n");
}

}  // namespace
}  // namespace tuner
