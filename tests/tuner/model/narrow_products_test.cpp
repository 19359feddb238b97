// Products of weights in bfloat16: which steps change, what is rounded where, and what the steps compute.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "compiler_core/graph/passes.h"
#include "compiler_core/graph/reference.h"
#include "tests/compiler_core/graph_writer.h"
#include "tests/models/transformer_networks.h"
#include "tests/random_seed.h"
#include "tests/tuner/model/carried_out.h"
#include "tuner/model/memory_plan.h"
#include "tuner/model/model_file.h"
#include "tuner/model/narrow_products.h"

namespace tuner {
namespace {

using graph::ValueId;
using graph::testing::GraphWriter;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Numbers;
using Dims = std::vector<int64_t>;

ModelSteps steps_of(graph::Graph graph) {
  EXPECT_TRUE(optimize(graph, model_evaluator()));
  Result<ModelSteps> model = partition(std::move(graph));
  CHECK(model.is_ok()) << model.message();
  return *std::move(model);
}

// The 16 bits of a float32 that bfloat16 keeps, by its bits: to nearest, ties to even.
double as_bfloat16(double number) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(number));
  return std::bit_cast<float>((bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000U);
}

Numbers drawn(std::mt19937& random, int64_t count) {
  Numbers numbers;
  std::uniform_real_distribution<float> draw(-1, 1);
  for (int64_t k = 0; k < count; ++k) numbers.push_back(draw(random));
  return numbers;
}

// What steps compute, as words: operator, types and epilogue.
std::vector<std::string> told(const ModelSteps& model) {
  std::vector<std::string> words;
  for (const ModelStep& step : model.steps) {
    const auto* w = step.workload.get_if<MatmulWorkload>();
    words.push_back(w == nullptr ? str(step.workload.op_name(), " of ", model.graph[step.reads[0]].type.dtype)
                                 : str("matmul of ", w->dtype, " to ", w->out_dtype()));
  }
  return words;
}

class NarrowProducts : public ::testing::Test {
 protected:
  ValueId weights(int64_t rows, int64_t columns) {
    return w_.constant({rows, columns}, drawn(random_, rows * columns));
  }
  ValueId bias(int64_t columns) { return w_.constant({columns}, drawn(random_, columns)); }

  std::mt19937 random_{first_seed(1)};
  GraphWriter w_;
};

TEST_F(NarrowProducts, RoundEachOperandOnce) {
  const ValueId x = w_.input({2, 3, 8});
  // A product whose result only another one reads, both biased; then one that reads a sum that others read.
  const ValueId inner = w_.add("Relu", {w_.add("Add", {w_.add("MatMul", {x, weights(8, 16)}), bias(16)})});
  const ValueId sum = w_.add("Add", {w_.add("MatMul", {inner, weights(16, 8)}), x});
  const ValueId normal = w_.add("Softmax", {sum}, {{"axis", int64_t{2}}});
  const ValueId left = w_.add("MatMul", {normal, weights(8, 4)});
  const ValueId flat = w_.add("Reshape", {normal, w_.list({6, 8})});
  const ValueId right = w_.add("Sigmoid", {w_.add("MatMul", {flat, weights(8, 5)})});
  ModelSteps model = steps_of(w_.finish({left, right, normal}));
  EXPECT_EQ(narrow_products(model, DType::kBFloat16), 4U);
  EXPECT_THAT(told(model),
              ElementsAre("program of float32", "matmul of bfloat16 to bfloat16",
                          "matmul of bfloat16 to float32", "softmax of float32", "program of float32",
                          "matmul of bfloat16 to float32", "matmul of bfloat16 to float32"));
  for (const ModelStep& step : model.steps) EXPECT_TRUE(validate(step.workload)) << step.workload.key();
}

TEST_F(NarrowProducts, ComputeWhatRoundedOperandsGive) {
  constexpr int64_t kRows = 3, kTerms = 7, kColumns = 5;
  const Numbers weights = drawn(random_, kTerms * kColumns), offsets = drawn(random_, kColumns);
  const ValueId x = w_.input({kRows, kTerms});
  const ValueId y =
      w_.add("Gemm", {x, w_.constant({kTerms, kColumns}, weights), w_.constant({kColumns}, offsets)});
  ModelSteps model = steps_of(w_.finish({y}));
  ASSERT_EQ(narrow_products(model, DType::kBFloat16), 1U);
  const Numbers in = drawn(random_, kRows * kTerms);
  const MemoryPlan plan = plan_memory(model, any_cpu(), "");
  const Numbers found = testing::carry_out(model, plan, {in}).at(0);
  ASSERT_EQ(found.size(), kRows * kColumns);
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 0; j < kColumns; ++j) {
      double expected = offsets[static_cast<size_t>(j)];  // not rounded to 16 bits
      for (int64_t k = 0; k < kTerms; ++k)
        expected += as_bfloat16(in[static_cast<size_t>(i * kTerms + k)]) *
                    as_bfloat16(weights[static_cast<size_t>(k * kColumns + j)]);
      EXPECT_NEAR(found[static_cast<size_t>(i * kColumns + j)], expected, 1e-5);
    }
}

TEST_F(NarrowProducts, LeaveOthersAsTheyAre) {
  const ValueId x = w_.input({4, 8}), other = w_.input({8, 4});
  const ValueId image = w_.input({1, 2, 4, 4});
  const ValueId product = w_.add("MatMul", {x, other});
  const ValueId conv = w_.add("Conv", {image, w_.constant({3, 2, 3, 3}, drawn(random_, 54))});
  ModelSteps model = steps_of(w_.finish({product, conv}));
  EXPECT_EQ(narrow_products(model, DType::kBFloat16), 0U);
  EXPECT_THAT(told(model), ElementsAre("matmul of float32 to float32", "conv2d of float32"));
}

// A part of a value is rounded by itself; a result of the model stays float32.
TEST_F(NarrowProducts, ReadPartsOfValues) {
  const ValueId x = w_.input({2, 16, 8});
  const ValueId whole = w_.add("MatMul", {x, weights(8, 8)});
  const ValueId lower = w_.add("Slice", {whole, w_.list({1}), w_.list({2}), w_.list({0})});
  const ValueId upper = w_.add("Slice", {whole, w_.list({0}), w_.list({1}), w_.list({0})});
  const ValueId other = w_.add("MatMul", {upper, weights(8, 3)});
  const ValueId first = w_.add("MatMul", {lower, weights(8, 4)}),
                second = w_.add("MatMul", {whole, weights(8, 4)});
  const ValueId shown = w_.add("MatMul", {x, weights(8, 6)}), last = w_.add("MatMul", {shown, weights(6, 3)});
  // A sum with a residual of float32 stays float32, though only a product reads it.
  const ValueId sum = w_.add("Add", {w_.add("MatMul", {x, weights(8, 8)}), x});
  graph::Graph graph = w_.finish({first, second, shown, other, last, w_.add("MatMul", {sum, weights(8, 2)})});
  ModelSteps model = steps_of(graph);
  EXPECT_EQ(narrow_products(model, DType::kBFloat16), 8U);
  const Numbers in = drawn(random_, 2 * 16 * 8);
  const auto expected = run_reference(graph, {in}, model_evaluator());
  ASSERT_TRUE(expected.is_ok()) << expected.message();
  const MemoryPlan plan = plan_memory(model, any_cpu(), "");
  const std::vector<Numbers> found = testing::carry_out(model, plan, {in});
  for (size_t o = 0; o < found.size(); ++o) {
    ASSERT_EQ(found[o].size(), (*expected)[o].size());
    for (size_t k = 0; k < found[o].size(); ++k) EXPECT_NEAR(found[o][k], (*expected)[o][k], 0.1);
  }
}

class NarrowTransformers : public ::testing::TestWithParam<std::string> {};

// Small ones: as a whole near the model, and not the model itself.
TEST_P(NarrowTransformers, AreNear) {
  const bool is_image = GetParam() == "vit_b16" || GetParam() == "swin_block";
  const int64_t tokens = GetParam() == "vit_b16" ? 48 : is_image ? 14 : GetParam() == "llama_step" ? 1 : 9;
  const auto bytes = testing::transformer(
      GetParam(),
      {.layers = 2, .tokens = tokens, .past = 5, .batch = 2, .narrower = 8, .seed = first_seed(3)});
  ASSERT_TRUE(bytes.is_ok()) << bytes.message();
  const auto graph = read_model(*bytes, nullptr, {}, model_evaluator());
  ASSERT_TRUE(graph.is_ok()) << graph.message();
  ModelSteps model = steps_of(*graph);
  EXPECT_GT(narrow_products(model, DType::kBFloat16), 0U);
  std::mt19937 random(first_seed(4));
  std::vector<Numbers> inputs;
  for (const ValueId v : graph->inputs) {
    inputs.push_back(drawn(random, (*graph)[v].type.elements()));
    if ((*graph)[v].type.dtype != DType::kFloat32)
      for (double& x : inputs.back()) x = x > 0 ? 1 : 0;
  }
  const auto expected = run_reference(*graph, inputs, model_evaluator());
  ASSERT_TRUE(expected.is_ok()) << expected.message();
  const MemoryPlan plan = plan_memory(model, any_cpu(), "");
  const std::vector<Numbers> found = testing::carry_out(model, plan, inputs);
  double most = 0, off = 0;
  for (size_t o = 0; o < found.size(); ++o)
    for (size_t k = 0; k < found[o].size(); ++k) {
      most = std::max(most, std::fabs((*expected)[o][k]));
      off = std::max(off, std::fabs(found[o][k] - (*expected)[o][k]));
    }
  EXPECT_LE(off, 0.05 * most);
  EXPECT_GE(off, 1e-4 * most);
}
INSTANTIATE_TEST_SUITE_P(All, NarrowTransformers, ::testing::ValuesIn(testing::transformer_names()),
                         [](const auto& info) { return info.param; });

TEST(NarrowProductsUnit, IsAskedFor) {
  for (const char* has : {"llvm -mcpu=znver4", "llvm -mcpu=sapphirerapids", "llvm -mcpu=cooperlake"})
    EXPECT_TRUE(check_has_unit(*parse_target(has), DType::kBFloat16)) << has;
  const Status none = check_has_unit(*parse_target("llvm -mcpu=haswell"), DType::kBFloat16);
  EXPECT_EQ(none.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(none.message(),
              AllOf(HasSubstr("--precision bfloat16: \"llvm -mcpu=haswell"),
                    HasSubstr("multiplies no bfloat16 (expected AVX512-BF16"), HasSubstr("leave it out")));
  const Status gpu = check_has_unit(*parse_target("cuda -arch=sm_80"), DType::kBFloat16);
  EXPECT_THAT(gpu.message(), HasSubstr("is for CPUs, found \"cuda -arch=sm_80\""));
}

}  // namespace
}  // namespace tuner
