// Networks in 8 bits on CPUs: between two layers lie bytes, whatever form the network has, and the answer is
// that of the network.
#include <gtest/gtest.h>

#include <cmath>

#include "compiler_core/graph/passes.h"
#include "compiler_core/graph/reference.h"
#include "tests/models/quantized_networks.h"
#include "tests/random_seed.h"
#include "tests/tuner/model/carried_out.h"
#include "tuner/model/model_file.h"

namespace tuner {
namespace {

using testing::Numbers;

class QuantizedModel : public ::testing::TestWithParam<std::string> {};

TEST_P(QuantizedModel, HasNoFloatsBetweenLayers) {
  const auto bytes =
      testing::quantized_network(GetParam(), {.image = 32, .batch = 2, .narrower = 8, .seed = first_seed(3)});
  ASSERT_TRUE(bytes.is_ok()) << bytes.message();
  const auto before = read_model(*bytes, nullptr, {}, model_evaluator());
  ASSERT_TRUE(before.is_ok()) << before.message();
  graph::Graph graph = *before;
  ASSERT_TRUE(optimize(graph, model_evaluator()));
  auto model = partition(std::move(graph));
  ASSERT_TRUE(model.is_ok()) << model.message();
  int64_t floats = 0, products = 0;
  for (const ModelStep& step : model->steps) {
    floats += model->graph[step.writes].type.dtype == DType::kFloat32 ? 1 : 0;
    const auto* conv = step.workload.get_if<Conv2dWorkload>();
    products += conv != nullptr && conv->dtype == DType::kInt8 ? 1 : 0;
  }
  EXPECT_EQ(floats, 1) << "the scores";
  EXPECT_GE(products, GetParam().starts_with("mobilenetv2") ? 50 : 53);

  std::mt19937 random(first_seed(4));
  std::uniform_real_distribution<float> number(0, 2);
  Numbers data(static_cast<size_t>((*before)[before->inputs[0]].type.elements()));
  for (double& x : data) x = static_cast<double>(number(random));
  const auto expected = run_reference(*before, {data}, model_evaluator());
  ASSERT_TRUE(expected.is_ok()) << expected.message();
  const MemoryPlan plan = plan_memory(*model, *parse_target("llvm -mcpu=haswell"), "");
  const std::vector<Numbers> found = testing::carry_out(*model, plan, {data});
  ASSERT_EQ(found[0].size(), (*expected)[0].size());
  // A tie between two bytes of a layer may go either way, which the layers behind it carry on.
  double most = 0, error = 0;
  for (size_t k = 0; k < found[0].size(); ++k) {
    most = std::max(most, std::fabs((*expected)[0][k]));
    error = std::max(error, std::fabs(found[0][k] - (*expected)[0][k]));
  }
  ASSERT_GT(most, 0);
  EXPECT_LE(error, (GetParam().ends_with("_qdq") ? 0.05 : 1e-6) * most);
}
INSTANTIATE_TEST_SUITE_P(All, QuantizedModel,
                         ::testing::Values("resnet50_int8", "mobilenetv2_int8", "resnet50_qdq",
                                           "mobilenetv2_qdq"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tuner
