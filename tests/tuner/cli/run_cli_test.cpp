// `tuner run` and `tuner show` on a compiled model: tensors from and to files, times, and what is refused.
#include <gmock/gmock.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "compiler_core/codegen/compile.h"
#include "tests/tuner/command_line.h"
#include "tests/tuner/small_model.h"
#include "tuner/model/tensor_file.h"

namespace tuner {
namespace {

using nlohmann::json;
using testing::CommandResult;
using ::testing::HasSubstr;
using testing::Numbers;
using testing::SmallModel;

class RunCommand : public ::testing::Test {
 protected:
  RunCommand() { CHECK(network_.write(shell_.folder() / "out", "net", host_target()).is_ok()); }

  CommandResult tuner(const std::string& words) const { return shell_.run("tuner " + words); }
  std::vector<float> floats(const std::string& bytes, size_t from = 0) const {
    std::vector<float> out((bytes.size() - from) / 4);
    std::memcpy(out.data(), bytes.data() + from, out.size() * 4);
    return out;
  }
  void expect_near(const std::vector<float>& found, const Numbers& expected) const {
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-4) << i;
  }
  static void expect_narrow(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  }

  const SmallModel network_;
  testing::CommandLine shell_{TUNER_BIN_DIR};
};

tuner_arg tensor(const char* name, const char* dtype, std::vector<int64_t> shape) {
  tuner_arg out{
      .name = name, .role = "input", .dtype = dtype, .layout = "", .rank = 0, .shape = {}, .bytes = 0};
  out.rank = static_cast<int32_t>(shape.size());
  out.bytes = dtype_bytes(*dtype_from_name(dtype));
  for (size_t d = 0; d < shape.size(); ++d) out.bytes *= out.shape[d] = shape[d];
  return out;
}

TEST_F(RunCommand, ReadsAndWritesTensorsOfFiles) {
  const Numbers x = network_.input(7);
  const std::vector<float> numbers(x.begin(), x.end());
  const std::vector<Numbers> answer = network_.answer(x);
  shell_.write("x.raw", {reinterpret_cast<const char*>(numbers.data()), numbers.size() * 4});
  // NumPy without the batch.
  shell_.write("x.npy", npy_bytes(tensor("x", "float32", {3, 10, 12}), numbers.data()));
  for (const char* file : {"x.raw", "x.npy"}) {
    const CommandResult ran =
        tuner(str("run --input x=", file, " out --output y=y.npy --output features=features.raw"));
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
    const std::string y = shell_.read("y.npy");
    EXPECT_THAT(y.substr(0, 128), HasSubstr("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 10,), }"));
    expect_near(floats(y, 128), answer[0]);
    expect_near(floats(shell_.read("features.raw")), answer[1]);
    EXPECT_THAT(ran.out, HasSubstr("float32[1, 8, 10, 12]"));
    expect_narrow(ran.out);
  }
}

TEST_F(RunCommand, DrawsTheSameInputsOfASeed) {
  const CommandResult first = tuner("run out --seed 3"), again = tuner("run out --seed 3 --threads 2"),
                      other = tuner("run out --seed 4");
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(first.out, again.out) << "threads change no result";
  EXPECT_NE(first.out, other.out);
}

TEST_F(RunCommand, TimesStepsAndComparesModels) {
  const CommandResult profile = tuner("run out --profile --runs 3");
  ASSERT_EQ(profile.exit_code, 0) << profile.err;
  for (const char* step : {"Relu_2", "Relu_4", "Relu_6", "Relu_9", "3 rounds on 1 thread", "% of the sum"})
    EXPECT_THAT(profile.out, HasSubstr(step));
  expect_narrow(profile.out);
  const CommandResult ran = tuner("run out --profile --runs 3 --json");
  const json facts = json::parse(ran.out);
  EXPECT_EQ(facts["times"]["steps"].size(), 4u);
  double sum = 0;
  for (const json& step : facts["times"]["steps"]) sum += step["time_ns"].get<double>();
  EXPECT_DOUBLE_EQ(sum, facts["times"]["sum_ns"]);
  EXPECT_GT(facts["times"]["whole_ns"], 0);
  EXPECT_EQ(facts["outputs"][0]["name"], "y");
  // Another model of the same name, in the same process.
  ASSERT_TRUE(SmallModel(9).write(shell_.folder() / "before", "net", host_target()));
  const CommandResult both = tuner("run out --before before --runs 3");
  ASSERT_EQ(both.exit_code, 0) << both.err;
  EXPECT_THAT(both.out, HasSubstr("whole, before/now: "));
  expect_narrow(both.out);
  EXPECT_TRUE(json::parse(tuner("run out --before before --runs 2 --json").out).contains("before"));
}

TEST_F(RunCommand, ShowsPlanLayersAndMemory) {
  const CommandResult plan = tuner("show out");
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_EQ(plan.out, tuner("show out --as plan").out);
  for (const char* words :
       {"net: 4 steps, 3 kernels, from small.onnx", "input  x float32[1, 3, 10, 12]",
        "    nodes  Conv_1, Relu_2", "    reads  x input 0 (1440 bytes)", "output 1 (3840 bytes)"})
    EXPECT_THAT(plan.out, HasSubstr(words));
  expect_narrow(plan.out);
  const CommandResult graph = tuner("show out --as graph");
  EXPECT_EQ(graph.exit_code, 0) << graph.err;
  EXPECT_THAT(graph.out, HasSubstr("[1] Relu_2: conv2d\n"
                                   "    reads   input x\n"
                                   "    weights w1, b1\n"
                                   "    writes  Relu_2_out (3840 bytes) to [2]\n"
                                   "[2] Relu_4: conv2d\n"
                                   "    reads   [1] Relu_2_out\n"));
  EXPECT_THAT(graph.out, HasSubstr("    writes  features (3840 bytes) to [4], an output\n"));
  expect_narrow(graph.out);
  const CommandResult layers = tuner("show out --as layers");
  EXPECT_EQ(layers.exit_code, 0) << layers.err;
  EXPECT_THAT(layers.out, HasSubstr("No step was tuned for just its workload"));
  expect_narrow(layers.out);
  const CommandResult memory = tuner("show out --as memory");
  EXPECT_EQ(memory.exit_code, 0) << memory.err;
  EXPECT_THAT(memory.out,
              HasSubstr("arena      7680 bytes, a context; largest live set 7680 bytes (100.0 % of it)"));
  EXPECT_THAT(memory.out, HasSubstr("6 entries, shared by all"));
  expect_narrow(memory.out);
}

TEST_F(RunCommand, WrongUseIsToldInOneLine) {
  shell_.write("short", "1234");
  shell_.write("text.npy", "no tensor");
  shell_.write("other.npy",
               npy_bytes(tensor("x", "float32", {1, 3, 12, 10}), std::string(1440, '\0').data()));
  std::string big = npy_bytes(tensor("x", "float32", {1, 3, 10, 12}), std::string(1440, '\0').data());
  shell_.write("big.npy", big.replace(big.find("<f4"), 3, ">f4"));
  shell_.write("int.npy", npy_bytes(tensor("x", "int32", {1, 3, 10, 12}), std::string(1440, '\0').data()));
  shell_.write("text.pb", "no tensor");
  std::filesystem::create_directories(shell_.folder() / "empty");
  const std::pair<const char*, const char*> cases[] = {
      {"run none", "plan.json"},
      {"run empty", "empty/plan.json: "},
      {"run out --input z=short", "--input: no input is called \"z\"; expected x"},
      {"run out --input x", "--input: expected NAME=FILE, found \"x\""},
      {"run out --input x=short --input x=short", "\"x\" is given twice"},
      {"run out --input x=none", "none: cannot be read"},
      {"run out --input x=short", "short: has 4 bytes of elements, expected 1440 for float32[1, 3, 10, 12]"},
      {"run out --input x=text.npy", "text.npy: is no .npy file, or a damaged one"},
      {"run out --input x=big.npy",
       "big.npy: has big-endian elements (>f4), expected <f4; write it with astype('<f4')"},
      {"run out --input x=other.npy", "other.npy: has shape [1, 3, 12, 10], expected [1, 3, 10, 12]"},
      {"run out --input x=int.npy", "int.npy: has elements of type <i4, expected <f4"},
      {"run out --output z=z.npy", "--output: no output is called \"z\"; expected y, features"},
      {"run out --output y=none/y.npy", "none"},
      {"run out --threads 0", "--threads"},
      {"run out --before empty", "empty/plan.json: "},
      {"show empty", "empty: is a folder, expected a job file, or a folder with plan.json"},
      {"show out --as loops", "--as loops: not for a compiled model"},
      {"show out --as graph --after all", "--after, --batch, --dim: not for a compiled model; found out"},
      {"show short --as layers", "--as layers: for the folder of a compiled model; found short"},
  };
  for (const auto& [words, reason] : cases) {
    const CommandResult refused = tuner(words);
    EXPECT_EQ(refused.exit_code, 2) << words << "\n" << refused.err;
    EXPECT_THAT(refused.err, HasSubstr(reason)) << words;
    EXPECT_EQ(std::ranges::count(refused.err, '\n'), 1) << refused.err;
    EXPECT_EQ(refused.out, "") << words;
  }
  EXPECT_NE(tuner("run out --input x=text.pb").exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(shell_.folder() / "z.npy"));
}

// What is written is read back, in every type.
TEST(TensorFile, KeepsEveryElement) {
  const TemporaryFolder folder;
  for (const char* dtype :
       {"bool", "int8", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64"}) {
    const tuner_arg described = tensor("t", dtype, {2, 3, 5});
    const AlignedBuffer drawn = random_tensor(described, first_seed(1));
    const std::string bytes(drawn.as<char>(), static_cast<size_t>(described.bytes));
    EXPECT_GT(std::set<char>(bytes.begin(), bytes.end()).size(), 1u) << dtype;
    for (const char* ending : {".npy", ".raw"}) {
      const std::string path = folder.file("t") + ending;
      ASSERT_TRUE(write_tensor_file(path, described, drawn.data()));
      const auto read = read_tensor_file(path, described);
      ASSERT_TRUE(read.is_ok()) << read.message();
      EXPECT_EQ(std::string(read->as<char>(), bytes.size()), bytes) << dtype << ending;
    }
  }
}

}  // namespace
}  // namespace tuner
