// ONNX's own test data (Debian's libonnx-testdata): a model of mostly one operator each, with inputs and answers. Every
// model that can be read gives the right answers; every other one is refused in one line.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>

#include "compiler_core/base/input_file.h"
#include "compiler_core/codegen/reference.h"
#include "compiler_core/graph/reference.h"
#include "compiler_core/oracle/oracle.h"
#include "tests/random_seed.h"
#include "tuner/model/read_model.h"

#if !defined(TUNER_HAVE_ONNX) || !defined(TUNER_ONNX_TESTDATA)

TEST(OnnxData, NeedsLibonnx) {
  GTEST_SKIP() << "libonnx-dev or libonnx-testdata is not installed: deploy/install.sh --onnx";
}

#else

namespace tuner {
namespace {

namespace fs = std::filesystem;

struct DataSet {
  std::vector<graph::Value> inputs, outputs;
};

Result<std::vector<graph::Value> > tensors(const fs::path& folder, const std::string& kind) {
  std::vector<graph::Value> values;
  for (size_t i = 0;; ++i) {
    const fs::path file = folder / str(kind, "_", i, ".pb");
    if (!fs::exists(file)) return values;
    ASSIGN_OR_RETURN(const std::string bytes, read_whole(file.string()));
    auto value = read_tensor(bytes);
    if (!value) return value.status().with_context(str(kind, " ", i, ": "));
    values.push_back(*std::move(value));
  }
}

Result<std::vector<DataSet> > data_sets(const fs::path& folder) {
  std::vector<DataSet> sets;
  for (size_t i = 0;; ++i) {
    const fs::path set = folder / str("test_data_set_", i);
    if (!fs::exists(set)) return sets;
    ASSIGN_OR_RETURN(std::vector<graph::Value> inputs, tensors(set, "input"));
    ASSIGN_OR_RETURN(std::vector<graph::Value> outputs, tensors(set, "output"));
    sets.push_back({std::move(inputs), std::move(outputs)});
  }
}

// The model with inputs from `first_constant` on as constants: shapes may depend on them.
Result<graph::Graph> read(const std::string& bytes, const DataSet& data, size_t first_constant) {
  ModelOptions options;
  for (size_t i = first_constant; i < data.inputs.size(); ++i)
    options.constants[data.inputs[i].name] = data.inputs[i];
  return read_model(bytes, nullptr, options, interpret);
}

// ONNX's own tolerances.
constexpr double kRelative = 1e-3, kAbsolute = 1e-7;
bool close(double found, double expected, DType dtype) {
  if (std::isnan(expected)) return std::isnan(found);
  if (found == expected) return true;
  const double relative = dtype == DType::kBFloat16 ? 1.0 / 128 : kRelative;
  return std::fabs(found - expected) <= kAbsolute + relative * std::fabs(expected);
}

// Empty: right; else what is wrong.
std::string wrong(const graph::Graph& graph, const DataSet& data, const graph::Evaluator& evaluate) {
  std::vector<std::vector<double> > inputs;
  for (size_t k = 0; k < graph.inputs.size(); ++k) {
    const graph::Value& wanted = graph[graph.inputs[k]];
    const auto named = std::ranges::find(data.inputs, wanted.name, &graph::Value::name);
    const graph::Value& given = named != data.inputs.end() ? *named : data.inputs.at(k);
    inputs.push_back(given.constant->numbers(given.type.dtype));
  }
  const auto answers = graph::run_reference(graph, std::move(inputs), evaluate);
  if (!answers) return answers.message();
  for (size_t i = 0; i < data.outputs.size(); ++i) {
    const graph::Value& expected = data.outputs[i];
    const graph::TensorType& type = graph[graph.outputs.at(i)].type;
    if (type != expected.type)
      return str("output ", i, " is ", to_text(type), ", expected ", to_text(expected.type));
    const std::vector<double> numbers = expected.constant->numbers(type.dtype);
    for (size_t e = 0; e < numbers.size(); ++e)
      if (!close((*answers)[i][e], numbers[e], type.dtype))
        return str("output ", i, ", element ", e, " is ", (*answers)[i][e], ", expected ", numbers[e]);
  }
  return "";
}

struct Outcome {
  bool read = false;
  std::string refused, wrong;
};
Outcome outcome_of(const fs::path& folder, const graph::Evaluator& evaluate) {
  const auto bytes = read_whole((folder / "model.onnx").string());
  if (!bytes) return {.refused = bytes.message()};
  const auto sets = data_sets(folder);
  if (!sets) return {.refused = sets.message()};
  if (sets->empty()) return {.refused = "no data"};
  for (const DataSet& data : *sets) {
    // Integers and scales that shapes depend on come as inputs here, where models have constants.
    Result<graph::Graph> graph = read(*bytes, data, data.inputs.size());
    for (const size_t first : {size_t{1}, size_t{0}})
      if (!graph && graph.message().find("expected a constant") != std::string::npos &&
          first < data.inputs.size())
        graph = read(*bytes, data, first);
    if (!graph) return {.refused = graph.message()};
    if (const Status valid = check(*graph); !valid) return {.wrong = valid.message()};
    if (std::string found = wrong(*graph, data, evaluate); !found.empty()) return {.wrong = std::move(found)};
  }
  return {.read = true};
}

void check_all(const graph::Evaluator& evaluate) {
  size_t right = 0, refused = 0;
  const char* only = std::getenv("TUNER_ONNX_TEST");  // a part of the name
  for (const char* kind : {"node", "simple", "pytorch-operator", "pytorch-converted"}) {
    std::vector<fs::path> folders;
    for (const auto& entry : fs::directory_iterator(fs::path(TUNER_ONNX_TESTDATA) / kind))
      folders.push_back(entry);
    std::ranges::sort(folders);
    for (const fs::path& folder : folders) {
      const std::string name = folder.filename().string();
      if (only != nullptr && name.find(only) == std::string::npos) continue;
      const Outcome outcome = outcome_of(folder, evaluate);
      EXPECT_EQ(outcome.wrong, "") << name << "; again: TUNER_ONNX_TEST=" << name << " onnx_data_test";
      EXPECT_EQ(std::ranges::count(outcome.refused, '\n'), 0) << name << ": " << outcome.refused;
      if (outcome.read) ++right;
      if (outcome.refused.empty()) continue;
      ++refused;
      std::cout << name << " is refused: " << outcome.refused << "\n";
    }
  }
  std::cout << right << " models are right, " << refused << " refused\n";
  if (only == nullptr) {
    EXPECT_GE(right, 350U);
  }
}

TEST(OnnxData, EveryModelThatIsReadIsRight) { check_all(interpret); }

// The same, each operator as machine code.
TEST(OnnxData, EveryModelThatIsReadIsRightWhenCompiled) { check_all(evaluate_compiled); }

// Bytes of those models changed at random: nothing crashes, and what is read is a graph.
TEST(OnnxData, DamagedModelsAreRefusedOrRead) {
  std::vector<std::string> models;
  for (const auto& entry : fs::directory_iterator(fs::path(TUNER_ONNX_TESTDATA) / "node"))
    models.push_back((entry.path() / "model.onnx").string());
  std::ranges::sort(models);
  for (const uint32_t seed : Seeds(300, 4000)) {
    std::mt19937 random(seed);
    std::string bytes = *read_whole(models[random() % models.size()]);
    for (uint32_t changes = 1 + random() % 4; changes > 0; --changes)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    const auto graph = read_model(bytes, nullptr, {}, interpret);
    if (graph) {
      EXPECT_TRUE(check(*graph)) << check(*graph).message();
    }
    EXPECT_EQ(std::ranges::count(graph.message(), '\n'), 0) << graph.message();
  }
}

}  // namespace
}  // namespace tuner

#endif
