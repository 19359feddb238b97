// ONNX's own test data (Debian's libonnx-testdata): a model of mostly one operator each, with inputs and
// answers. Every model that can be read gives the right answers; every other one is refused in one line.
#include <gtest/gtest.h>

#include "compiler_core/codegen/reference.h"
#include "compiler_core/graph/reference.h"
#include "compiler_core/oracle/oracle.h"
#include "tests/random_seed.h"
#include "tests/tuner/onnx_data.h"

#ifndef TUNER_ONNX_TESTDATA

TEST(OnnxData, NeedsItsModels) {
  GTEST_SKIP() << "libonnx-testdata is not installed: deploy/install.sh --onnx-testdata";
}

#else

namespace tuner {
namespace {

using testing::OnnxData;
using testing::OnnxOutcome;

// Empty: right; else what is wrong.
std::string wrong(const graph::Graph& graph, const OnnxData& data, const graph::Evaluator& evaluate) {
  std::vector<std::vector<double> > inputs;
  for (size_t k = 0; k < graph.inputs.size(); ++k) {
    const graph::Value& wanted = graph[graph.inputs[k]];
    inputs.push_back(data.input(wanted.name, k).constant->numbers(wanted.type.dtype));
  }
  const auto answers = graph::run_reference(graph, std::move(inputs), evaluate);
  if (!answers) return answers.message();
  std::vector<graph::TensorType> types;
  for (const graph::ValueId v : graph.outputs) types.push_back(graph[v].type);
  return difference(data, types, *answers);
}

void check_all(const graph::Evaluator& evaluate) {
  testing::try_onnx_data(TUNER_ONNX_TESTDATA,
                         [&](const std::filesystem::path& model, const OnnxData& data) -> OnnxOutcome {
                           const auto bytes = read_whole(model.string());
                           if (!bytes) return {.refused = bytes.message()};
                           const auto graph = testing::read_with(data, [&](const ModelOptions& options) {
                             return read_model(*bytes, nullptr, options, interpret);
                           });
                           if (!graph) return {.refused = graph.message()};
                           if (const Status valid = check(*graph); !valid) return {.wrong = valid.message()};
                           const auto fitting = testing::fitted(data, *graph);
                           if (!fitting) return {.refused = fitting.message()};
                           const std::string found = wrong(*graph, *fitting, evaluate);
                           return {.right = found.empty(), .wrong = found};
                         });
}

TEST(OnnxData, EveryModelThatIsReadIsRight) { check_all(interpret); }

// The same, each operator as machine code.
TEST(OnnxData, EveryModelThatIsReadIsRightWhenCompiled) { check_all(evaluate_compiled); }

// Bytes of those models changed at random: nothing crashes, and what is read is a graph.
TEST(OnnxData, DamagedModelsAreRefusedOrRead) {
  std::vector<std::string> models;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(TUNER_ONNX_TESTDATA) / "node"))
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
