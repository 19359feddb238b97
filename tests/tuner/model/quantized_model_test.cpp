// Networks in 8 bits on CPUs: between two layers lie bytes, whatever form the network has, and the answer is
// that of the network.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "compiler_core/graph/passes.h"
#include "compiler_core/graph/reference.h"
#include "tests/models/quantized_networks.h"
#include "tests/models/transformer_networks.h"
#include "tests/random_seed.h"
#include "tests/tuner/model/carried_out.h"
#include "tuner/model/layouts.h"
#include "tuner/model/model_file.h"

namespace tuner {
namespace {

using testing::Numbers;

class QuantizedModel : public ::testing::TestWithParam<std::string> {};

// Constants are views of the bytes.
struct Network {
  Network(const std::string& name, int64_t narrower)
      : bytes(testing::quantized_network(
            name, {.image = 32, .batch = 2, .narrower = narrower, .seed = first_seed(3)})) {
    CHECK(bytes.is_ok()) << bytes.message();
    auto read = read_model(*bytes, nullptr, {}, model_evaluator());
    CHECK(read.is_ok()) << read.message();
    graph = *std::move(read);
  }
  Result<std::string> bytes;
  graph::Graph graph;
};

ModelSteps steps_of(graph::Graph graph) {
  CHECK(optimize(graph, model_evaluator()).is_ok());
  auto model = partition(std::move(graph));
  CHECK(model.is_ok()) << model.message();
  return *std::move(model);
}

// `model`, planned for `target`, carried out on random numbers, beside the reference of the network.
void expect_right(const std::string& name, const graph::Graph& network, ModelSteps model,
                  const Target& target) {
  std::mt19937 random(first_seed(4));
  std::uniform_real_distribution<float> number(0, 2);
  Numbers data(static_cast<size_t>(network[network.inputs[0]].type.elements()));
  for (double& x : data) x = static_cast<double>(number(random));
  const auto expected = run_reference(network, {data}, model_evaluator());
  ASSERT_TRUE(expected.is_ok()) << expected.message();
  const MemoryPlan plan = plan_memory(model, target, "");
  const std::vector<Numbers> found = testing::carry_out(model, plan, {data});
  ASSERT_EQ(found[0].size(), (*expected)[0].size());
  // A tie between two bytes of a layer may go either way, which the layers behind it carry on.
  double most = 0, error = 0;
  for (size_t k = 0; k < found[0].size(); ++k) {
    most = std::max(most, std::fabs((*expected)[0][k]));
    error = std::max(error, std::fabs(found[0][k] - (*expected)[0][k]));
  }
  ASSERT_GT(most, 0);
  EXPECT_LE(error, (name.ends_with("_qdq") ? 0.05 : 1e-6) * most);
}

TEST_P(QuantizedModel, HasNoFloatsBetweenLayers) {
  const Network network(GetParam(), 8);
  const ModelSteps model = steps_of(network.graph);
  int64_t floats = 0, products = 0;
  for (const ModelStep& step : model.steps) {
    floats += model.graph[step.writes].type.dtype == DType::kFloat32 ? 1 : 0;
    const auto* conv = step.workload.get_if<Conv2dWorkload>();
    products += conv != nullptr && conv->dtype == DType::kInt8 ? 1 : 0;
  }
  EXPECT_EQ(floats, 1) << "the scores";
  EXPECT_GE(products, GetParam().starts_with("mobilenetv2") ? 50 : 53);
  expect_right(GetParam(), network.graph, model, *parse_target("llvm -mcpu=haswell"));
}

// A matrix unit takes the pixels of bytes in NHWC: from the first convolution to the last one of a residual
// network, through its pooling and its sums. Depthwise convolutions have planes.
TEST_P(QuantizedModel, LiesInNhwcForAMatrixUnit) {
  const Network network(GetParam(), 4);
  ModelSteps model = steps_of(network.graph);
  const Target amx = *parse_target("llvm -mcpu=sapphirerapids"),
               without = *parse_target("llvm -mcpu=icelake-server");
  EXPECT_EQ(chosen_layouts(model, without), plain_layouts(model));
  const Status applied = apply_layouts(model, chosen_layouts(model, amx), amx);
  ASSERT_TRUE(applied.is_ok()) << applied.message();
  std::map<std::string, int> layouts;
  for (const ModelStep& step : model.steps) {
    if (const auto* conv = step.workload.get_if<Conv2dWorkload>())
      ++layouts[str(conv->groups > 1 ? "grouped " : "", conv->layout, " to ", conv->out_layout)];
    if (const auto* pool = step.workload.get_if<Pool2dWorkload>()) ++layouts["pooling " + pool->layout];
    if (step.name.ends_with(" as NHWC") || step.name.ends_with(" as NCHW")) ++layouts["moved"];
  }
  if (GetParam().starts_with("resnet50")) {
    EXPECT_EQ(layouts["pooling NHWC"], 1);
    EXPECT_EQ(layouts["NCHW to NHWC"], 1) << "the first one";
    EXPECT_GE(layouts["NHWC to NHWC"], 40) << "all but those on images of one pixel, which are both";
    EXPECT_LE(layouts["moved"], 1) << "what the last sum adds";
    EXPECT_EQ(layouts["grouped NHWC to NHWC"], 0);
  } else {
    EXPECT_EQ(layouts["moved"], 0);
  }
  expect_right(GetParam(), network.graph, model, amx);
}

INSTANTIATE_TEST_SUITE_P(All, QuantizedModel,
                         ::testing::Values("resnet50_int8", "mobilenetv2_int8", "resnet50_qdq",
                                           "mobilenetv2_qdq"),
                         [](const auto& info) { return info.param; });

// One layer, since behind several a rounding that went the other way has reached all elements.
class TransformerInBytes : public ::testing::TestWithParam<std::string> {};

TEST_P(TransformerInBytes, MultipliesBytes) {
  const auto bytes = testing::transformer(
      GetParam(), {.layers = 1, .tokens = 9, .batch = 2, .narrower = 8, .seed = first_seed(5)});
  ASSERT_TRUE(bytes.is_ok()) << bytes.message();
  const auto network = read_model(*bytes, nullptr, {}, model_evaluator());
  ASSERT_TRUE(network.is_ok()) << network.message();
  ModelSteps model = steps_of(*network);
  const bool is_dynamic = GetParam() == "bert_base_dynamic";
  int64_t in_bytes = 0, in_floats = 0, attentions = 0;
  for (const ModelStep& step : model.steps) {
    const auto* product = step.workload.get_if<MatmulWorkload>();
    if (product != nullptr && product->n > 1) ++(product->dtype == DType::kInt8 ? in_bytes : in_floats);
    attentions += step.workload.get_if<AttentionWorkload>() != nullptr ? 1 : 0;
    // Between a product that is rounded and the next one lie bytes: floats are the rows of norms and softmax.
    EXPECT_TRUE(product == nullptr || is_dynamic || model.graph[step.writes].type.dtype != DType::kFloat32)
        << step.name;
  }
  EXPECT_EQ(in_bytes, is_dynamic ? 6 : 9) << "six with weights; scores, what they weigh, and the last one";
  EXPECT_EQ(in_floats, is_dynamic ? 1 : 0) << "the last one";
  EXPECT_EQ(attentions, is_dynamic ? 1 : 0) << "roundings stand between the products of the other form";

  std::mt19937 random(first_seed(6));
  std::vector<Numbers> inputs;
  for (const graph::ValueId v : network->inputs) {
    const bool is_mask = (*network)[v].name == "attention_mask";
    std::uniform_int_distribution<int64_t> number(
        0, is_mask || (*network)[v].name == "token_type_ids" ? 1 : 3000);
    inputs.emplace_back();
    for (int64_t k = 0; k < (*network)[v].type.elements(); ++k)
      inputs.back().push_back(static_cast<double>(number(random)));
  }
  const auto expected = run_reference(*network, inputs, model_evaluator());
  ASSERT_TRUE(expected.is_ok()) << expected.message();
  const MemoryPlan plan = plan_memory(model, *parse_target("llvm -mcpu=haswell"), "");
  const std::vector<Numbers> found = testing::carry_out(model, plan, inputs);
  constexpr double kStep = 8.0 / 255;
  int64_t far = 0, all = 0;
  for (size_t o = 0; o < found.size(); ++o) {
    ASSERT_EQ(found[o].size(), (*expected)[o].size());
    for (size_t k = 0; k < found[o].size(); ++k, ++all)
      far += std::fabs(found[o][k] - (*expected)[o][k]) > 1.1 * kStep ? 1 : 0;
  }
  EXPECT_LE(far * 1000, all) << "more than one step";
}

INSTANTIATE_TEST_SUITE_P(All, TransformerInBytes, ::testing::Values("bert_base_qdq", "bert_base_dynamic"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tuner
