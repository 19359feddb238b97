// `tuner compile` as a person runs it, on small networks: each of them end to end, tuned twice over, wrong
// use, and a folder that nothing but a whole library ever changes.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "compiler_core/base/npy.h"
#include "compiler_core/graph/reference.h"
#include "db/store.h"
#include "tests/models/networks.h"
#include "tests/models/onnx_model.h"
#include "tests/random_seed.h"
#include "tests/tuner/command_line.h"
#include "tests/tuner/processes.h"
#include "tuner/model/model_file.h"

namespace tuner {
namespace {

using namespace std::chrono_literals;
using testing::CommandResult;
using testing::eventually;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Process;

// Folders and files, as a whole: nothing may be left behind.
std::map<std::string, std::string> without_home(const testing::CommandLine& shell) {
  auto files = shell.tree(".");
  std::erase_if(files, [](const auto& file) { return file.first.starts_with(".home"); });
  return files;
}

class CompileCommand : public ::testing::Test {
 protected:
  // The network in NAME.onnx: a small image, few channels.
  void save(const std::string& name, uint32_t seed = 1) const {
    const int64_t image = name == "mlp" ? 28 : 32;
    const auto bytes = testing::network(name, {.image = image, .narrower = 16, .seed = seed});
    CHECK(bytes.is_ok()) << bytes.message();
    shell_.write(name + ".onnx", *bytes);
  }
  CommandResult tuner(const std::string& words) const { return shell_.run("tuner " + words); }
  std::string at(const std::string& name) const { return (shell_.folder() / name).string(); }

  void expect_refused(const std::string& words, const std::string& reason) const {
    SCOPED_TRACE(words);
    const auto before = without_home(shell_);
    const bool there = std::filesystem::exists(at("out"));
    const CommandResult refused = tuner(words);
    EXPECT_EQ(refused.exit_code, 2) << refused.out << refused.err;
    EXPECT_THAT(refused.err, HasSubstr(reason));
    EXPECT_EQ(std::ranges::count(refused.err, '\n'), 1) << refused.err;
    EXPECT_EQ(refused.out, "");
    EXPECT_EQ(without_home(shell_), before) << "something was written";
    EXPECT_EQ(std::filesystem::exists(at("out")), there) << "a folder was left behind";
  }

  // A process of its own, with the same home as tuner()'s.
  std::unique_ptr<Process> start(const std::vector<std::string>& words, const std::string& log) const {
    setenv("HOME", at(".home").c_str(), 1);
    setenv("XDG_DATA_HOME", at(".home/data").c_str(), 1);
    setenv("XDG_CACHE_HOME", at(".home/cache").c_str(), 1);
    setenv("XDG_RUNTIME_DIR", at(".home/run").c_str(), 1);
    std::vector<std::string> all{std::string(TUNER_BIN_DIR) + "/tuner"};
    all.insert(all.end(), words.begin(), words.end());
    return std::make_unique<Process>(all, at(log));
  }
  // Each trial of a database, and how often its config was leased.
  std::map<std::string, int> trials(const std::string& db) const {
    std::map<std::string, int> found;
    const auto store = Store::open(at(db), Store::Mode::kRead);
    if (!store) return found;
    const Status read = (*store)->for_each_record("", [&](const TrialWithRecord& t) {
      found[str(t.task.workload_key, " ", t.trial.template_name, " ", t.trial.config)] += t.trial.attempt;
      return true;
    });
    EXPECT_TRUE(read) << read.message();
    return found;
  }

  testing::CommandLine shell_{TUNER_BIN_DIR};
};

// The largest error that a compile printed, of the largest output.
double printed_error(const std::string& out) {
  double error = 1e300;
  const size_t at = out.find("checked: ");
  if (at == std::string::npos || std::sscanf(out.c_str() + at, "checked: largest error %lf", &error) != 1)
    ADD_FAILURE() << "no error was printed: " << out;
  return error;
}

class EachNetwork : public CompileCommand, public ::testing::WithParamInterface<std::string> {};

// The library computes what the graph does, for inputs that only this test knows.
TEST_P(EachNetwork, IsCompiledCheckedAndRun) {
  save(GetParam());
  const CommandResult compiled = tuner("compile " + GetParam() + ".onnx -o out --no-tune");
  ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
  EXPECT_LE(printed_error(compiled.out), 1e-4);
  EXPECT_THAT(compiled.out, HasSubstr("next: tuner run out"));

  const auto graph = read_model_file(at(GetParam() + ".onnx"), {});
  ASSERT_TRUE(graph.is_ok()) << graph.message();
  std::mt19937 random(first_seed(11));
  std::normal_distribution<float> numbers;
  std::vector<float> data(static_cast<size_t>((*graph)[graph->inputs[0]].type.elements()));
  for (float& x : data) x = numbers(random);
  shell_.write("data.raw", {reinterpret_cast<const char*>(data.data()), data.size() * 4});
  const std::string output = (*graph)[graph->outputs[0]].name;
  const CommandResult ran = tuner(str("run out --input data=data.raw --output ", output, "=y.raw"));
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr(output));
  const auto expected = run_reference(*graph, {{data.begin(), data.end()}}, model_evaluator());
  ASSERT_TRUE(expected.is_ok()) << expected.message();
  const std::string bytes = shell_.read("y.raw");
  ASSERT_EQ(bytes.size(), 4 * (*expected)[0].size());
  std::vector<float> found((*expected)[0].size());
  std::memcpy(found.data(), bytes.data(), bytes.size());
  double most = 0, error = 0;
  for (size_t k = 0; k < found.size(); ++k) {
    most = std::max(most, std::fabs((*expected)[0][k]));
    error = std::max(error, std::fabs(found[k] - (*expected)[0][k]));
  }
  EXPECT_GT(most, 0);
  EXPECT_LE(error, 1e-4 * most);
}

INSTANTIATE_TEST_SUITE_P(All, EachNetwork, ::testing::ValuesIn(testing::network_names()),
                         [](const auto& network) { return network.param; });

TEST_F(CompileCommand, ShowPrintsAModelsGraphAfterItsPasses) {
  save("resnet50");
  const std::string plain = tuner("show resnet50.onnx").out;
  EXPECT_THAT(plain, HasSubstr("BatchNormalization"));
  EXPECT_THAT(tuner("show resnet50.onnx --after plain-gemms").out, HasSubstr("BatchNormalization"));
  const CommandResult folded = tuner("show resnet50.onnx --after fold-scales");
  EXPECT_EQ(folded.exit_code, 0) << folded.err;
  EXPECT_THAT(folded.out, Not(HasSubstr("BatchNormalization")));
  EXPECT_EQ(tuner("show resnet50.onnx --after all").out, tuner("show resnet50.onnx --after drop-dead").out);
}

// An extracted job, once submitted, holds answers for each step that is compiled: the same workloads, equally
// often.
TEST_F(CompileCommand, ExtractListsTheStepsThatAreCompiled) {
  save("resnet50");
  const CommandResult extracted = tuner("extract resnet50.onnx -o tasks.json");
  ASSERT_EQ(extracted.exit_code, 0) << extracted.err;
  EXPECT_THAT(shell_.read("tasks.json"), HasSubstr(R"("constants":"cold")"));
  ASSERT_EQ(tuner("compile resnet50.onnx -o out --no-tune").exit_code, 0);
  const std::string whole = shell_.read("out/plan.json"), plan = whole.substr(0, whole.find("\"kernels\""));
  const auto steps_with = [&](const std::string& start) {
    int found = 0;
    for (size_t at = 0; (at = plan.find("\"workload\": \"" + start, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  std::istringstream lines(extracted.out);
  std::string line;
  int steps = 0;
  bool accumulates = false;
  while (std::getline(lines, line)) {
    int uses = 0, key_at = 0;
    if (std::sscanf(line.c_str(), " %d x %n", &uses, &key_at) != 1 || key_at == 0) continue;
    const std::string key = line.substr(static_cast<size_t>(key_at));
    EXPECT_EQ(steps_with(key + '"'), uses) << key;
    steps += uses;
    accumulates |= key.find(" accumulate=1 ") != std::string::npos;
  }
  EXPECT_EQ(steps_with(""), steps);
  EXPECT_TRUE(accumulates) << extracted.out;
}

TEST_F(CompileCommand, ASecondRunContinuesAndRepeatsNoTrial) {
  save("mlp");
  setenv("TUNER_RACE_LIMIT_S", "0.001", 1);
  const std::string command = "compile mlp.onnx -o out --trials 4 --time-limit 20 --db a.db";
  const CommandResult first = tuner(command);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_LE(printed_error(first.out), 1e-4);
  const auto before = trials("a.db");
  EXPECT_GE(before.size(), 4u);
  const CommandResult again = tuner(command);
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_LE(printed_error(again.out), 1e-4);
  const auto after = trials("a.db");
  for (const auto& [config, attempts] : before) {
    ASSERT_TRUE(after.contains(config)) << config;
    EXPECT_EQ(after.at(config), attempts) << config << " was measured again";
  }
  EXPECT_EQ(tuner("run out").exit_code, 0);
  // Times of layers are known now.
  const CommandResult layers = tuner("show out --as layers");
  EXPECT_THAT(layers.out, HasSubstr("sum of all steps, each alone: "));
  EXPECT_THAT(layers.out, HasSubstr("with constants cold"));
  // Alone and inside the model: what it loses there.
  EXPECT_THAT(layers.out, ::testing::ContainsRegex("the same inside the model: .*, [+-][0-9.]+ %"));
  EXPECT_THAT(layers.out, HasSubstr("whole: "));
  const auto plan = nlohmann::json::parse(shell_.read("out/plan.json"));
  EXPECT_GT(plan["inside"]["whole_ns"], 0);
  for (const auto& step : plan["steps"]) EXPECT_GT(step["inside_ns"], 0) << step;
}

TEST_F(CompileCommand, WrongUseIsToldInOneLineAndWritesNothing) {
  save("mlp");
  save("unet");
  shell_.write("text.onnx", "this is a line of text\n");
  shell_.write("cut.onnx", shell_.read("mlp.onnx").substr(0, 1000));
  const std::vector<float> four(4);
  const std::string array = npy_bytes(DType::kFloat32, {4}, four.data(), 16);
  shell_.write("four.npy", array);
  shell_.write("cut.npy", array.substr(0, array.size() - 4));
  shell_.write("text.npy", "this is a line of text\n");
  std::filesystem::create_directory(at("other"));
  shell_.write("other/manifest.json", "{}");
  const std::pair<const char*, const char*> cases[] = {
      {"missing.onnx -o out", "missing.onnx: cannot be read: No such file"},
      {"text.onnx -o out", "text.onnx: this is no ONNX model, or a damaged one"},
      {"cut.onnx -o out", "cut.onnx: this is no ONNX model, or a damaged one: 1000 bytes"},
      {"missing.onnx -o out --target npu --blocks", "--blocks: images lie in NHWC where \"npu\""},
      {"missing.onnx -o out --no-tune --blocks --target 'cuda -arch=sm_80'",
       "--blocks: images of models for GPUs"},
      {"mlp.onnx -o out --no-tune --target cpu --target 'cuda -arch=sm_80'",
       "a library is for one CPU, or for several"},
      {"mlp.onnx -o out --target abacus", "abacus"},
      {"mlp.onnx -o text.onnx", "text.onnx: is a file; expected a folder for -o"},
      {"mlp.onnx -o text.onnx/out", "text.onnx/out: cannot be made: Not a directory"},
      {"mlp.onnx -o other", "other: holds manifest.json, and so a library of another kind"},
      {"mlp.onnx -o out --name 3d", "--name: expected a name for C"},
      {"mlp.onnx -o out --dim N", "--dim: expected NAME=N, as sequence=128, found \"N\""},
      {"mlp.onnx -o out --dim N=-1", "--dim: expected NAME=N, as sequence=128, found \"N=-1\""},
      {"mlp.onnx -o out --dim N=2", "--dim N: no input of the model has an extent of that name"},
      {"mlp.onnx -o out --constant x", "--constant: expected NAME=FILE"},
      {"mlp.onnx -o out --constant data=none.pb", "none.pb: cannot be read: No such file"},
      {"mlp.onnx -o out --constant data=text.onnx", "text.onnx: this is no tensor of ONNX"},
      {"mlp.onnx -o out --constant data=text.npy", "text.npy: is no .npy file, or a damaged one"},
      {"mlp.onnx -o out --constant data=cut.npy",
       "cut.npy: has 12 bytes of elements, expected 16 for float32[4]"},
      {"mlp.onnx -o out --constant data=four.npy", "--constant data: found float32[4], expected float32["},
      {"mlp.onnx -o out --constant data=none.npy", "none.npy: cannot be read: No such file"},
      {"mlp.onnx -o out --algorithms magic", "magic"},
  };
  for (const auto& [words, reason] : cases) {
    expect_refused(str("compile ", words, " --no-tune"), reason);
    expect_refused(str("compile ", words), reason);  // before anything is tuned
  }
  for (const char* words :
       {"mlp.onnx -o out --batch 0", "mlp.onnx -o out --trials 0", "mlp.onnx -o out --threads 0",
        "mlp.onnx -o out --time-limit -1", "mlp.onnx", "-o out"}) {
    const CommandResult refused = tuner(str("compile ", words));
    EXPECT_EQ(refused.exit_code, 2) << words;
    EXPECT_FALSE(std::filesystem::exists(at("out"))) << words;
  }
}

// As Silero's voice detector asks for the rate: y = -x for 16000, else what no tool reads.
TEST_F(CompileCommand, AConstantChoosesTheBranchOfAnIf) {
  OnnxGraph then("then"), otherwise("else");
  then.node("Neg", {"x"}, {"minus"});
  then.output("minus", DType::kFloat32, {1, 4});
  otherwise.node("SequenceEmpty", {}, {"none"});
  otherwise.output("none", DType::kFloat32, {1, 4});
  OnnxModel model;
  const int64_t rate = 16000;
  model.input("x", DType::kFloat32, {1, 4});
  model.input("rate", DType::kInt64, {});
  model.weights("wanted", DType::kInt64, {}, {reinterpret_cast<const char*>(&rate), sizeof rate});
  model.node("Equal", {"rate", "wanted"}, {"fits"});
  model.node("If", {"fits"}, {"y"},
             {{"then_branch", then.as_attribute()}, {"else_branch", otherwise.as_attribute()}});
  model.output("y", DType::kFloat32, {1, 4});
  shell_.write("net.onnx", model.bytes());
  shell_.write("rate.npy", npy_bytes(DType::kInt64, {}, &rate, sizeof rate));
  for (const char* words : {"compile net.onnx -o out --no-tune", "show net.onnx", "extract net.onnx -o out"})
    expect_refused(
        words,
        "net.onnx: node node1 (If): else_branch: node else_node0 (SequenceEmpty): this operator is "
        "not served. If its condition is the same in every run: --constant rate=FILE");
  const CommandResult compiled = tuner("compile net.onnx -o out --no-tune --constant rate=rate.npy");
  ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
  EXPECT_THAT(compiled.out, HasSubstr("; all outputs, 1 steps\n"));
  EXPECT_EQ(tuner("run out").exit_code, 0);
}

TEST_F(CompileCommand, AConstantOfAFileIsPartOfTheModel) {
  OnnxModel model;
  model.input("x", DType::kFloat32, {1, 4});
  model.input("mask", DType::kFloat32, {1, 4});
  model.node("Mul", {"x", "mask"}, {"y"});
  model.output("y", DType::kFloat32, {1, 4});
  shell_.write("net.onnx", model.bytes());
  const std::vector<float> mask{1, 0, 2, -1}, x{3, 4, 5, 6};
  shell_.write("mask.npy", npy_bytes(DType::kFloat32, {1, 4}, mask.data(), 16));
  shell_.write("x.npy", npy_bytes(DType::kFloat32, {1, 4}, x.data(), 16));
  const CommandResult compiled = tuner("compile net.onnx -o out --no-tune --constant mask=mask.npy");
  ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
  const CommandResult ran = tuner("run out --input x=x.npy --output y=y.raw");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const std::string y = shell_.read("y.raw");
  std::vector<float> found(4);
  ASSERT_EQ(y.size(), 16u);
  std::memcpy(found.data(), y.data(), y.size());
  EXPECT_EQ(found, (std::vector<float>{3, 0, 10, -6}));
  EXPECT_EQ(tuner("run out --input mask=mask.npy").exit_code, 2) << "it is no input any more";
}

// Their roundings are no fault of the library, which is held against a reference that has none.
TEST_F(CompileCommand, ModelsOf16BitNumbersAreCompiled) {
  for (const auto& [dtype, most] : {std::pair(DType::kFloat16, 4.1e-3), std::pair(DType::kBFloat16, 0.032)}) {
    SCOPED_TRACE(dtype);
    OnnxModel model;
    model.input("x", dtype, {1, 96});
    model.input("y", dtype, {1, 96});
    model.node("Mul", {"x", "y"}, {"product"});
    model.node("Add", {"product", "x"}, {"sum"});
    model.output("sum", dtype, {1, 96});
    shell_.write("half.onnx", model.bytes());
    const CommandResult compiled = tuner("compile half.onnx -o out --no-tune");
    ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
    EXPECT_LE(printed_error(compiled.out), most);
  }
}

TEST_F(CompileCommand, ModelsThatAreNotServedAreRefusedWithNodeAndReason) {
  const DType dtype = DType::kFloat32;
  OnnxModel unknown;
  unknown.input("x", dtype, {1, 4});
  unknown.node("Relu", {"x"}, {"r"});
  unknown.node("FourierTransform", {"r"}, {"y"});
  unknown.output("y", dtype, {1, 4});
  shell_.write("unknown.onnx", unknown.bytes());
  expect_refused("compile unknown.onnx -o out", "unknown.onnx: node node1 (FourierTransform): ");

  OnnxModel wrong;
  wrong.input("x", dtype, {1, 4});
  wrong.node("Relu", {"x"}, {"y"});
  wrong.output("y", dtype, {1, 5});
  shell_.write("wrong.onnx", wrong.bytes());
  expect_refused("compile wrong.onnx -o out",
                 "wrong.onnx: output \"y\": found shape [1, 5] in the model, expected that of float32[1, 4]");

  OnnxModel none;
  none.input("x", dtype, {1, 4, -1});
  none.node("Relu", {"x"}, {"y"});
  none.output("y", dtype, {1, 4, 1});
  shell_.write("none.onnx", none.bytes());
  expect_refused("compile none.onnx -o out", "none.onnx: input \"x\": extent 2 is -1, expected 0 to ");
}

TEST_F(CompileCommand, OpenExtentsAreClosedByOptions) {
  OnnxModel model;
  model.input("x", DType::kFloat32, {200, 4});
  model.node("Relu", {"x"}, {"y"});
  model.output("y", DType::kFloat32, {200, 4});
  std::string bytes = model.bytes();
  const std::string number = "\x08\xc8\x01",
                    name = "\x12\x01N";  // an extent as 200, and one that is called N
  for (size_t at = bytes.find(number); at != std::string::npos; at = bytes.find(number))
    bytes.replace(at, number.size(), name);
  shell_.write("open.onnx", bytes);
  expect_refused("compile open.onnx -o out",
                 "open.onnx: input \"x\": extent 0 (N) is open. Give it: --batch N, or --dim N=N");
  for (const char* option : {"--batch 3", "--dim N=3"}) {
    const CommandResult compiled = tuner(str("compile open.onnx -o out --no-tune ", option));
    EXPECT_EQ(compiled.exit_code, 0) << option << "\n" << compiled.err;
    EXPECT_THAT(tuner("run out").out, HasSubstr("float32[3, 4]")) << option;
  }
}

// A sparse file: nobody reads it.
TEST_F(CompileCommand, AModelAbove2GbIsRefusedAtOnce) {
  save("mlp");
  std::filesystem::resize_file(at("mlp.onnx"), (uintmax_t{1} << 31) + 1);
  const CommandResult refused = tuner("compile mlp.onnx -o out");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err,
              HasSubstr("mlp.onnx: the file has 2147483649 bytes, a protobuf message at most 2^31 - 1"));
  EXPECT_EQ(std::ranges::count(refused.err, '\n'), 1) << refused.err;
  EXPECT_FALSE(std::filesystem::exists(at("out")));
}

TEST_F(CompileCommand, AFailedCompileLeavesTheFormerModel) {
  save("mlp");
  ASSERT_EQ(tuner("compile mlp.onnx -o out --no-tune").exit_code, 0);
  const auto good = shell_.tree("out");
  const std::string ran = tuner("run out").out;
  save("unet");
  expect_refused("compile unet.onnx -o out --no-tune",
                 "out: holds the library \"mlp\", and a folder holds one; give \"unet\" a folder of its own");
  shell_.write("mlp.onnx", shell_.read("mlp.onnx").substr(0, 5000));
  expect_refused("compile mlp.onnx -o out --no-tune", "mlp.onnx: this is no ONNX model");
  EXPECT_EQ(shell_.tree("out"), good);
  EXPECT_EQ(tuner("run out").out, ran);
  save("mlp", 2);
  EXPECT_EQ(tuner("compile mlp.onnx -o out --no-tune").exit_code, 0)
      << "another model of the same name replaces it";
  EXPECT_NE(tuner("run out").out, ran);
}

// Killed in the middle of tuning, over a folder with a former model; meanwhile nobody else may write there.
// The same command completes it.
TEST_F(CompileCommand, KilledAndStartedAgainItCompletes) {
  save("mlp");
  ASSERT_EQ(tuner("compile mlp.onnx -o out --no-tune").exit_code, 0);
  const auto good = shell_.tree("out");
  const auto command = [&](const char* trials) {
    return std::vector<std::string>{"compile",  at("mlp.onnx"), "-o",   at("out"),      "--db",
                                    at("a.db"), "--trials",     trials, "--time-limit", "120"};
  };
  std::unique_ptr<Process> first = start(command("20000"), "first");
  ASSERT_TRUE(eventually(120s, [&] { return trials("a.db").size() >= 8; })) << first->err();
  const CommandResult busy = tuner("compile mlp.onnx -o out --no-tune");
  EXPECT_EQ(busy.exit_code, 2);
  EXPECT_EQ(busy.err, "tuner: out: another build is writing there; run this again when it is done\n");
  first->kill_tree();
  const auto before = trials("a.db");
  std::map<std::string, std::string> left = shell_.tree("out");
  std::erase_if(left, [](const auto& file) { return file.first.starts_with(".tuner-build-"); });
  EXPECT_EQ(left, good) << "the former model is not whole";
  EXPECT_EQ(tuner("run out").exit_code, 0);

  std::unique_ptr<Process> second = start(command("8"), "second");
  EXPECT_EQ(second->wait(240s), 0) << second->err();
  EXPECT_LE(printed_error(second->out()), 1e-4);
  const auto after = trials("a.db");
  for (const auto& [config, attempts] : before) {
    ASSERT_TRUE(after.contains(config)) << config << " was recorded, then lost";
    EXPECT_EQ(after.at(config), attempts) << config << " was measured again";
  }
  for (const auto& [file, bytes] : shell_.tree("out"))
    EXPECT_FALSE(file.starts_with(".tuner-build-")) << file << " was left behind";
  EXPECT_EQ(tuner("run out").exit_code, 0);
}

TEST_F(CompileCommand, WeightsOfAnotherModelOrDamagedAreRefused) {
  save("mlp");
  ASSERT_EQ(tuner("compile mlp.onnx -o out --no-tune").exit_code, 0);
  const std::string good = shell_.read("out/mlp.weights");
  save("mlp", 2);
  ASSERT_EQ(tuner("compile mlp.onnx -o second --no-tune").exit_code, 0);
  std::string damaged = good;
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 1);
  const std::pair<std::string, const char*> cases[] = {
      {damaged, "out/mlp.weights: is damaged"},
      {good.substr(0, good.size() / 2), "out/mlp.weights: has another length"},
      {"", "out/mlp.weights: is no weights file"},
      {shell_.read("second/mlp.weights"), "out/mlp.weights: belongs to another model"}};
  for (const auto& [bytes, reason] : cases) {
    shell_.write("out/mlp.weights", bytes);
    expect_refused("run out", reason);
  }
  std::filesystem::remove(at("out/mlp.weights"));
  expect_refused("run out", "out/mlp.weights: there is no such file");
  shell_.write("out/mlp.weights", good);
  EXPECT_EQ(tuner("run out").exit_code, 0);
}

}  // namespace
}  // namespace tuner
