// Sessions of ONNX Runtime with our execution provider: what they compute, which nodes are ours, and what is
// said when something is wrong. Needs BENCH_LIBONNXRUNTIME (1.24 or later).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <thread>

#include "compiler_core/runtime/kernel.h"
#include "tests/bench/cpu/onnxruntime_api.h"
#include "tests/models/onnx_model.h"
#include "tests/support/temporary_folder.h"
#include "tuner/model/onnx.pb.h"

namespace tuner {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

using Numbers = std::vector<float>;
using Options = std::vector<std::pair<std::string, std::string>>;

struct Tensor {
  std::string name;
  std::vector<int64_t> shape;
  Numbers numbers;

  int64_t elements() const {
    int64_t n = 1;
    for (const int64_t extent : shape) n *= extent;
    return n;
  }
};

Numbers drawn(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  Numbers out(count);
  for (float& x : out) x = std::uniform_real_distribution<float>(-1, 1)(random);
  return out;
}

Tensor drawn(const std::string& name, const std::vector<int64_t>& shape, uint32_t seed) {
  Tensor out{name, shape, {}};
  out.numbers = drawn(static_cast<size_t>(out.elements()), seed);
  return out;
}

void weights(OnnxModel& model, const std::string& name, const std::vector<int64_t>& shape, uint32_t seed) {
  const Tensor made = drawn(name, shape, seed);
  model.weights(name, DType::kFloat32, shape,
                {reinterpret_cast<const char*>(made.numbers.data()), made.numbers.size() * sizeof(float)});
}

// The environment is the process's, and so is the plugin.
const OnnxRuntimeApi* library(std::string& why) {
  static std::string problem;
  static const OnnxRuntimeApi* const api = []() -> const OnnxRuntimeApi* {
    auto opened = OnnxRuntimeApi::open(1);
    if (!opened) return problem = opened.message(), nullptr;
    if (const Status loaded = (*opened)->load_plugin(TUNER_PLUGIN); !loaded)
      return problem = loaded.message(), nullptr;
    return opened->release();
  }();
  why = problem;
  return api;
}

// Runs a model once. `shift`: bytes by which operands miss their alignment, from the `first` one on.
class Session {
 public:
  Session(const OnnxRuntimeApi& api, OrtSession* session) : api_(api), session_(session) {}
  ~Session() { api_.release_session(session_); }
  Session(const Session&) = delete;

  Result<std::vector<Numbers>> run(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs,
                                   size_t shift = 0, size_t first = 0) const {
    std::vector<AlignedBuffer> memory;
    std::vector<OrtValue*> in, out;
    std::vector<const char*> in_names, out_names;
    std::vector<float*> found;
    const auto add = [&](const Tensor& t, std::vector<OrtValue*>& to) -> Status {
      const auto bytes = static_cast<size_t>(t.elements()) * sizeof(float);
      memory.emplace_back(static_cast<int64_t>(bytes + shift));
      char* const data = static_cast<char*>(memory.back().data()) + (memory.size() > first ? shift : 0);
      if (!t.numbers.empty()) std::memcpy(data, t.numbers.data(), bytes);
      found.push_back(reinterpret_cast<float*>(data));
      to.push_back(nullptr);
      return api_.ok(
          api_.create_tensor(api_.memory, data, bytes, t.shape.data(), t.shape.size(), 1, &to.back()),
          "tensor");
    };
    for (const Tensor& t : inputs) {
      RETURN_IF_ERROR(add(t, in));
      in_names.push_back(t.name.c_str());
    }
    for (const Tensor& t : outputs) {
      RETURN_IF_ERROR(add(t, out));
      out_names.push_back(t.name.c_str());
    }
    const Status ran = api_.ok(api_.run(session_, nullptr, in_names.data(), in.data(), in.size(),
                                        out_names.data(), out.size(), out.data()),
                               "run");
    for (OrtValue* value : in) api_.release_value(value);
    for (OrtValue* value : out) api_.release_value(value);
    if (!ran) return ran;
    std::vector<Numbers> numbers;
    for (size_t o = 0; o < outputs.size(); ++o) {
      const float* const from = found[inputs.size() + o];
      numbers.emplace_back(from, from + outputs[o].elements());
    }
    return numbers;
  }

 private:
  const OnnxRuntimeApi& api_;
  OrtSession* session_;
};

class ProviderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("BENCH_LIBONNXRUNTIME") == nullptr)
      GTEST_SKIP() << "BENCH_LIBONNXRUNTIME does not name the library";
    std::string why;
    api_ = library(why);
    ASSERT_NE(api_, nullptr) << why;
    options_ = {{"cache", folder_.file("cache")}, {"program", TUNER_BINARY}, {"db", folder_.file("none.db")}};
  }

  Result<std::unique_ptr<Session>> open(const std::string& model, bool with_provider,
                                        const Options& more = {}) {
    OnnxRuntimeApi::SessionOptions options;
    options.all_optimizations = false;
    if (with_provider) {
      options.provider = "TunerExecutionProvider";
      options.provider_options = options_;
      options.provider_options.insert(options.provider_options.end(), more.begin(), more.end());
    }
    ASSIGN_OR_RETURN(OrtSession * session, api_->session(model, options));
    return std::make_unique<Session>(*api_, session);
  }
  // Folders of libraries in the cache.
  std::vector<std::string> parts() const {
    std::vector<std::string> found;
    if (!std::filesystem::exists(folder_.file("cache"))) return found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.file("cache")))
      found.push_back(entry.path().string());
    return found;
  }
  // Libraries of parts that this process has loaded from this test's cache.
  size_t loaded() const {
    std::ifstream maps("/proc/self/maps");
    std::set<std::string> found;
    for (std::string line; std::getline(maps, line);)
      if (const size_t at = line.find(folder_.file("cache"));
          at != std::string::npos && line.ends_with(".so"))
        found.insert(line.substr(at));
    return found.size();
  }

  static void expect_near(const std::vector<Numbers>& found, const std::vector<Numbers>& expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (size_t o = 0; o < found.size(); ++o) {
      ASSERT_EQ(found[o].size(), expected[o].size());
      for (size_t e = 0; e < found[o].size(); ++e)
        ASSERT_LE(std::fabs(found[o][e] - expected[o][e]), 1e-3 * (1e-2 + std::fabs(expected[o][e])))
            << "output " << o << ", element " << e << ": found " << found[o][e] << ", expected "
            << expected[o][e];
    }
  }
  // The provider computes what the library computes alone.
  void expect_same(const std::string& model, const std::vector<Tensor>& inputs,
                   const std::vector<Tensor>& outputs, const Options& more = {}) {
    const auto alone = open(model, false), ours = open(model, true, more);
    ASSERT_TRUE(alone.is_ok()) << alone.message();
    ASSERT_TRUE(ours.is_ok()) << ours.message();
    const auto expected = (*alone)->run(inputs, outputs), found = (*ours)->run(inputs, outputs);
    ASSERT_TRUE(expected.is_ok()) << expected.message();
    ASSERT_TRUE(found.is_ok()) << found.message();
    expect_near(*found, *expected);
    loaded_ = loaded();
  }

  size_t loaded_ = 0;  // in the last session of expect_same()
  const OnnxRuntimeApi* api_ = nullptr;
  TemporaryFolder folder_;
  Options options_;
};

// image -> two convolutions with a shortcut, pooled -> scores.
OnnxModel classifier() {
  OnnxModel model;
  model.input("image", DType::kFloat32, {1, 3, 16, 16});
  weights(model, "w1", {8, 3, 3, 3}, 1), weights(model, "b1", {8}, 2), weights(model, "w2", {8, 8, 3, 3}, 3);
  weights(model, "fc", {8, 5}, 4);
  model.node("Conv", {"image", "w1", "b1"}, {"c1"}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  model.node("Relu", {"c1"}, {"r1"});
  model.node("Conv", {"r1", "w2"}, {"c2"}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  model.node("Add", {"c2", "r1"}, {"sum"});
  model.node("GlobalAveragePool", {"sum"}, {"mean"});
  model.node("Flatten", {"mean"}, {"flat"}, {{"axis", int64_t{1}}});
  model.node("MatMul", {"flat", "fc"}, {"scores"});
  model.output("scores", DType::kFloat32, {1, 5});
  return model;
}
const Tensor kScores{"scores", {1, 5}, {}};

TEST_F(ProviderTest, AWholeModelRunsOnOneLibrary) {
  const Tensor image = drawn("image", {1, 3, 16, 16}, 7);
  expect_same(classifier().bytes(), {image}, {kScores});
  EXPECT_THAT(parts(), SizeIs(1));
  EXPECT_EQ(loaded_, 1u);
}

TEST_F(ProviderTest, ASecondSessionFindsTheLibrary) {
  const std::string model = classifier().bytes();
  ASSERT_TRUE(open(model, true).is_ok());
  const auto first = parts();
  ASSERT_THAT(first, SizeIs(1));
  options_[1].second = "/bin/false";  // as the compiler
  expect_same(model, {drawn("image", {1, 3, 16, 16}, 8)}, {kScores}, {{"strict", "1"}});
  EXPECT_EQ(parts(), first);
}

TEST_F(ProviderTest, OtherWeightsAreAnotherLibrary) {
  const auto model = [](uint32_t seed) {
    OnnxModel made;
    made.input("x", DType::kFloat32, {4, 32});
    weights(made, "w", {32, 32}, seed);
    made.node("MatMul", {"x", "w"}, {"y"});
    made.output("y", DType::kFloat32, {4, 32});
    return made.bytes();
  };
  const Tensor x = drawn("x", {4, 32}, 5), y{"y", {4, 32}, {}};
  expect_same(model(1), {x}, {y});
  expect_same(model(2), {x}, {y});
  EXPECT_THAT(parts(), SizeIs(2));
}

// A sequence is nothing that we serve; what is before and behind it are two libraries.
OnnxModel with_a_sequence() {
  OnnxModel model;
  model.input("x", DType::kFloat32, {4, 8});
  weights(model, "w", {8, 8}, 1), weights(model, "v", {8, 8}, 2);
  const int64_t zero = 0;
  model.weights("zero", DType::kInt64, {}, {reinterpret_cast<const char*>(&zero), sizeof zero});
  model.node("MatMul", {"x", "w"}, {"a"});
  model.node("Relu", {"a"}, {"b"});
  model.node("SequenceConstruct", {"b", "b"}, {"list"});
  model.node("SequenceAt", {"list", "zero"}, {"c"});
  model.node("Reshape", {"c", "shape"}, {"d"});
  const int64_t shape[] = {4, 8};
  model.weights("shape", DType::kInt64, {2}, {reinterpret_cast<const char*>(shape), sizeof shape});
  model.node("MatMul", {"d", "v"}, {"e"});
  model.node("Add", {"e", "b"}, {"y"});
  model.output("y", DType::kFloat32, {4, 8});
  return model;
}

TEST_F(ProviderTest, NodesThatWeDoNotServeStayWithTheLibrary) {
  expect_same(with_a_sequence().bytes(), {drawn("x", {4, 8}, 9)}, {{"y", {4, 8}, {}}}, {{"strict", "1"}});
  EXPECT_THAT(parts(), SizeIs(2));
  EXPECT_EQ(loaded_, 2u);
}

// The first extent of the input is open.
TEST_F(ProviderTest, ShapesThatVaryStayWithTheLibrary) {
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(classifier().bytes()));
  for (auto* value : {model.mutable_graph()->mutable_input(0), model.mutable_graph()->mutable_output(0)})
    value->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_param("n");
  const std::string bytes = model.SerializeAsString();
  expect_same(bytes, {drawn("image", {1, 3, 16, 16}, 3)}, {kScores}, {{"strict", "1"}});
  expect_same(bytes, {drawn("image", {3, 3, 16, 16}, 3)}, {{"scores", {3, 5}, {}}}, {{"strict", "1"}});
  EXPECT_THAT(parts(), SizeIs(0));
}

// An If reads a value that a part makes, and its branches stay with the library.
TEST_F(ProviderTest, GraphsWithinNodesReadWhatPartsMake) {
  OnnxModel model;
  OnnxGraph yes("yes"), no("no");
  yes.node("Neg", {"a"}, {"t"});
  yes.output("t", DType::kFloat32, {4, 8});
  no.node("Abs", {"a"}, {"e"});
  no.output("e", DType::kFloat32, {4, 8});
  model.input("x", DType::kFloat32, {4, 8});
  model.input("limit", DType::kFloat32, {});
  weights(model, "w", {8, 8}, 1);
  model.node("MatMul", {"x", "w"}, {"a"});
  model.node("ReduceSum", {"a"}, {"total"}, {{"keepdims", int64_t{0}}});
  model.node("Greater", {"total", "limit"}, {"is_more"});
  model.node("If", {"is_more"}, {"y"},
             {{"then_branch", yes.as_attribute()}, {"else_branch", no.as_attribute()}});
  model.output("y", DType::kFloat32, {4, 8});
  const Tensor x = drawn("x", {4, 8}, 11), y{"y", {4, 8}, {}};
  for (const float limit : {-1e6f, 1e6f})
    expect_same(model.bytes(), {x, {"limit", {}, {limit}}}, {y}, {{"strict", "1"}});
  EXPECT_THAT(parts(), SizeIs(1));
}

TEST_F(ProviderTest, OperandsMayLieAnywhere) {
  const std::string model = classifier().bytes();
  const auto alone = open(model, false), ours = open(model, true);
  ASSERT_TRUE(ours.is_ok()) << ours.message();
  const Tensor image = drawn("image", {1, 3, 16, 16}, 12);
  const auto expected = (*alone)->run({image}, {kScores});
  for (const size_t shift : {4, 20, 60}) {
    const auto found = (*ours)->run({image}, {kScores}, shift);
    ASSERT_TRUE(found.is_ok()) << found.message();
    expect_near(*found, *expected);
  }
}

// Of two operands one is aligned.
TEST_F(ProviderTest, EachOperandLiesWhereItLies) {
  OnnxModel model;
  model.input("x", DType::kFloat32, {16, 64}), model.input("y", DType::kFloat32, {64, 64});
  model.node("MatMul", {"x", "y"}, {"z"});
  model.output("z", DType::kFloat32, {16, 64});
  const auto alone = open(model.bytes(), false), ours = open(model.bytes(), true, {{"strict", "1"}});
  ASSERT_TRUE(ours.is_ok()) << ours.message();
  const std::vector<Tensor> inputs = {drawn("x", {16, 64}, 14), drawn("y", {64, 64}, 15)};
  const std::vector<Tensor> outputs = {{"z", {16, 64}, {}}};
  const auto expected = (*alone)->run(inputs, outputs);
  for (const size_t first : {1, 2}) {
    const auto found = (*ours)->run(inputs, outputs, 4, first);
    ASSERT_TRUE(found.is_ok()) << found.message();
    expect_near(*found, *expected);
  }
}

TEST_F(ProviderTest, TheCompilerIsFoundBesideThePlugin) {
  options_.erase(options_.begin() + 1);  // the option program
  ASSERT_EQ(std::getenv("TUNER_BIN_DIR"), nullptr);
  expect_same(classifier().bytes(), {drawn("image", {1, 3, 16, 16}, 7)}, {kScores}, {{"strict", "1"}});
  EXPECT_THAT(parts(), SizeIs(1));
}

// The library lists operands by the names of what is made of them, ONNX Runtime by its own order.
TEST_F(ProviderTest, OperandsOfAFusedNodeHaveAnOrderOfTheirOwn) {
  for (const auto& [first, second] : {std::pair("z", "a"), std::pair("a", "z")}) {
    OnnxModel model;
    model.input("x", DType::kFloat32, {4, 8}), model.input("y", DType::kFloat32, {4, 8});
    weights(model, "v", {8, 8}, 1), weights(model, "w", {8, 8}, 2);
    model.node("MatMul", {"x", "v"}, {first});
    model.node("MatMul", {"y", "w"}, {second});
    model.node("Sub", {first, second}, {"m"});
    std::vector<Tensor> outputs;
    for (const char* name : {"m", "a", "z"}) {
      model.output(name, DType::kFloat32, {4, 8});
      outputs.push_back({name, {4, 8}, {}});
    }
    expect_same(model.bytes(), {drawn("x", {4, 8}, 16), drawn("y", {4, 8}, 17)}, outputs, {{"strict", "1"}});
  }
  EXPECT_THAT(parts(), SizeIs(2));
}

TEST_F(ProviderTest, RunsAtTheSameTimeHaveMemoryOfTheirOwn) {
  const std::string model = classifier().bytes();
  const auto alone = open(model, false), ours = open(model, true, {{"threads", "2"}});
  ASSERT_TRUE(ours.is_ok()) << ours.message();
  constexpr uint32_t kThreads = 4, kRuns = 50;
  std::vector<std::vector<Numbers>> expected;
  for (uint32_t t = 0; t < kThreads; ++t)
    expected.push_back(*(*alone)->run({drawn("image", {1, 3, 16, 16}, t)}, {kScores}));
  std::vector<int> right(kThreads);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      const Tensor image = drawn("image", {1, 3, 16, 16}, t);
      for (uint32_t run = 0; run < kRuns; ++run) {
        const auto found = (*ours)->run({image}, {kScores});
        bool same = found.is_ok();
        for (size_t e = 0; same && e < expected[t][0].size(); ++e)
          same = std::fabs((*found)[0][e] - expected[t][0][e]) <= 1e-3 * (1 + std::fabs(expected[t][0][e]));
        right[t] += same ? 1 : 0;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(right, ::testing::Each(static_cast<int>(kRuns)));
}

TEST_F(ProviderTest, AReadyFolderNeedsNoCompiler) {
  const std::string model = classifier().bytes();
  ASSERT_TRUE(open(model, true).is_ok());
  std::filesystem::rename(folder_.file("cache"), folder_.file("ready"));
  options_[0].second = folder_.file("ready");
  options_[1].second = "/nowhere/tuner";
  const Options ready = {{"compile", "0"}, {"strict", "1"}};
  expect_same(model, {drawn("image", {1, 3, 16, 16}, 13)}, {kScores}, ready);

  const auto missing = open(with_a_sequence().bytes(), true, ready);
  ASSERT_FALSE(missing.is_ok());
  EXPECT_THAT(missing.message(), HasSubstr("is not there, and option compile is 0"));
  expect_same(with_a_sequence().bytes(), {drawn("x", {4, 8}, 9)}, {{"y", {4, 8}, {}}}, {{"compile", "0"}});
}

TEST_F(ProviderTest, WhatIsWrongIsToldInALine) {
  const std::string model = classifier().bytes();
  const auto message = [&](const Options& more) {
    const auto opened = open(model, true, more);
    EXPECT_FALSE(opened.is_ok());
    EXPECT_EQ(opened.message().find('\n'), std::string::npos) << opened.message();
    return opened.message();
  };
  EXPECT_THAT(message({{"thread", "2"}}),
              HasSubstr("tuner: option thread is unknown; did you mean threads?"));
  options_[1].second = "/nowhere/tuner";
  EXPECT_THAT(message({{"strict", "1"}}), HasSubstr("option program: found no program /nowhere/tuner"));
  EXPECT_TRUE(open(model, true).is_ok()) << "without strict the library runs it";
  options_[1].second = TUNER_BINARY;
  EXPECT_THAT(message({{"strict", "1"}, {"target", "cpu -mcpu=none"}}), HasSubstr("tuner compile: "));
}

TEST_F(ProviderTest, ALibraryThatOthersCouldChangeIsNotLoaded) {
  const std::string model = classifier().bytes();
  ASSERT_TRUE(open(model, true).is_ok());
  ASSERT_THAT(parts(), SizeIs(1));
  ::chmod(parts()[0].c_str(), 0777);
  const auto refused = open(model, true, {{"strict", "1"}});
  ASSERT_FALSE(refused.is_ok());
  EXPECT_THAT(refused.message(), HasSubstr("others can write to it"));
  ::chmod(parts()[0].c_str(), 0755);
  std::filesystem::resize_file(parts()[0] + "/plan.json", 20);
  const auto damaged = open(model, true, {{"strict", "1"}});
  ASSERT_FALSE(damaged.is_ok());
  EXPECT_THAT(damaged.message(), HasSubstr("plan.json"));
}

}  // namespace
}  // namespace tuner
