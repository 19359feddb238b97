// Networks people run, as exporters write them: read, rewritten by all passes, and run. What the passes leave
// is counted; what it computes stays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "compiler_core/graph/passes.h"
#include "compiler_core/graph/reference.h"
#include "tests/models/networks.h"
#include "tests/random_seed.h"
#include "tuner/model/model_file.h"

namespace tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

graph::Graph read(const std::string& bytes) {
  auto graph = read_model(bytes, nullptr, {}, model_evaluator());
  CHECK(graph.is_ok()) << graph.message();
  return *std::move(graph);
}
std::map<std::string, int> counts(const graph::Graph& graph) {
  std::map<std::string, int> found;
  for (const graph::Node& node : graph.nodes) ++found[node.op];
  return found;
}

class ModelNetworks : public ::testing::TestWithParam<std::string> {};

// Small images and few channels: the structure is that of the whole.
TEST_P(ModelNetworks, ComputeTheSameAfterAllPasses) {
  const int64_t image = GetParam() == "mlp" ? 28 : 64;
  const auto bytes =
      testing::network(GetParam(), {.image = image, .batch = 2, .narrower = 8, .seed = first_seed(5)});
  ASSERT_TRUE(bytes.is_ok()) << bytes.message();
  const graph::Graph before = read(*bytes);
  graph::Graph after = before;
  ASSERT_TRUE(optimize(after, model_evaluator()));
  ASSERT_TRUE(check(after)) << check(after).message();
  EXPECT_LT(after.nodes.size(), before.nodes.size() + 1);

  std::mt19937 random(first_seed(6));
  std::normal_distribution<double> numbers;
  std::vector<double> data(static_cast<size_t>(before[before.inputs[0]].type.elements()));
  for (double& x : data) x = static_cast<float>(numbers(random));
  const auto expected = run_reference(before, {data}, model_evaluator()),
             found = run_reference(after, {data}, model_evaluator());
  ASSERT_TRUE(expected.is_ok()) << expected.message();
  ASSERT_TRUE(found.is_ok()) << found.message();
  double most = 0, error = 0;
  for (size_t k = 0; k < (*expected)[0].size(); ++k) {
    most = std::max(most, std::fabs((*expected)[0][k]));
    error = std::max(error, std::fabs((*expected)[0][k] - (*found)[0][k]));
  }
  ASSERT_GT(most, 0);
  // Weights were rounded to float32 once more.
  EXPECT_LE(error, 1e-5 * most);
}
INSTANTIATE_TEST_SUITE_P(All, ModelNetworks, ::testing::ValuesIn(testing::network_names()),
                         [](const auto& info) { return info.param; });

TEST(Networks, NormalizationsActivationsAndShapesAreGone) {
  const auto left = [](const std::string& name) {
    const auto bytes = testing::network(name, {.narrower = 4});
    CHECK(bytes.is_ok()) << bytes.message();
    graph::Graph graph = read(*bytes);  // its constants are views of them
    EXPECT_TRUE(optimize(graph, model_evaluator()));
    return counts(graph);
  };
  EXPECT_THAT(left("resnet50"),
              ElementsAre(Pair("Add", 16), Pair("Conv", 53), Pair("Gemm", 1), Pair("GlobalAveragePool", 1),
                          Pair("MaxPool", 1), Pair("Relu", 49), Pair("tuner.View", 1)));
  EXPECT_THAT(left("mobilenetv2"),
              ElementsAre(Pair("Add", 10), Pair("Clip", 35), Pair("Conv", 52), Pair("Gemm", 1),
                          Pair("GlobalAveragePool", 1), Pair("tuner.View", 1)));
  EXPECT_THAT(left("efficientnet_b0"),
              ElementsAre(Pair("Add", 9), Pair("Conv", 81), Pair("Gemm", 1), Pair("GlobalAveragePool", 17),
                          Pair("Mul", 16), Pair("Sigmoid", 16), Pair("Swish", 49), Pair("tuner.View", 1)));
  EXPECT_THAT(left("vgg16"), ElementsAre(Pair("Conv", 13), Pair("Gemm", 3), Pair("MaxPool", 5),
                                         Pair("Relu", 15), Pair("tuner.View", 1)));
  EXPECT_THAT(left("mlp"),
              ElementsAre(Pair("Gemm", 2), Pair("Relu", 1), Pair("Softmax", 1), Pair("tuner.View", 1)));
}

}  // namespace
}  // namespace tuner
