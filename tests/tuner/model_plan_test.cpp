// Plans: a network as steps and places. Each plan is carried out, step by step, in one piece of memory as large as it says, and
// must compute what the network computes: an operand that was written over, a part that is not where it should be, or an
// epilogue that means something else shows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "compiler_core/graph/passes.h"
#include "compiler_core/graph/reference.h"
#include "tests/models/networks.h"
#include "tests/random_seed.h"
#include "tuner/model/layouts.h"
#include "tuner/model/memory_plan.h"
#include "tuner/model/model_file.h"

#ifndef TUNER_HAVE_ONNX

TEST(ModelPlan, NeedsLibonnx) { GTEST_SKIP() << "libonnx-dev is not installed: deploy/install.sh --onnx"; }

#else

namespace tuner {
namespace {

using graph::ValueId;
using Numbers = std::vector<double>;
using Where = ValuePlace::Where;

// Elements as they lie in memory.
void store(std::byte* to, DType dtype, const Numbers& numbers) {
  const graph::Constant elements = graph::Constant::of(numbers, dtype);
  std::memcpy(to, elements.bytes().data(), elements.bytes().size());
}
Numbers fetch(const std::byte* from, const graph::TensorType& type) {
  return graph::Constant({from, static_cast<size_t>(type.bytes())}, nullptr).numbers(type.dtype);
}

// Memory as a context of the model has it.
class Memory {
 public:
  Memory(const ModelSteps& model, const MemoryPlan& plan, const std::vector<Numbers>& inputs)
      : model_(model), plan_(plan), arena_(static_cast<size_t>(plan.arena_bytes), std::byte{0xff}) {
    for (const ValueId v : model.graph.inputs) {
      inputs_.emplace_back(static_cast<size_t>(model.graph[v].type.bytes()));
      store(inputs_.back().data(), model.graph[v].type.dtype, inputs[inputs_.size() - 1]);
    }
    for (const ValueId v : model.graph.outputs)
      outputs_.emplace_back(static_cast<size_t>(model.graph[v].type.bytes()));
  }
  const std::byte* at(ValueId v) const { return const_cast<Memory*>(this)->at(v); }
  std::byte* at(ValueId v) {
    const ValuePlace& place = plan_.values[v];
    switch (place.where) {
      case Where::kArena:
        CHECK(place.offset + model_.graph[v].type.bytes() <= plan_.arena_bytes);
        return arena_.data() + place.offset;
      case Where::kInput:
        return inputs_[place.index].data() + place.offset;
      case Where::kOutput:
        CHECK(place.offset + model_.graph[v].type.bytes() <= std::ssize(outputs_[place.index]));
        return outputs_[place.index].data() + place.offset;
      case Where::kConstant:
        // Nobody writes there.
        return const_cast<std::byte*>(model_.graph[place.index].constant->bytes().data()) + place.offset;
      case Where::kNowhere:
        break;
    }
    CHECK(false) << "value " << v << " has no place";
    return nullptr;
  }
  Numbers numbers(ValueId v) const { return fetch(at(v), model_.graph[v].type); }
  Numbers output(size_t i) const {
    return fetch(outputs_[i].data(), model_.graph[model_.graph.outputs[i]].type);
  }

 private:
  const ModelSteps& model_;
  const MemoryPlan& plan_;
  std::vector<std::byte> arena_;
  std::vector<std::vector<std::byte> > inputs_, outputs_;
};

std::vector<Numbers> carry_out(const ModelSteps& model, const MemoryPlan& plan,
                               const std::vector<Numbers>& inputs) {
  Memory memory(model, plan, inputs);
  const graph::Evaluator evaluate = model_evaluator();
  for (const ModelStep& step : model.steps) {
    std::vector<Numbers> args;
    for (const ValueId v : step.reads) args.push_back(memory.numbers(v));
    args.emplace_back();
    const Program program = step.workload.compute();
    EXPECT_EQ(args.size(), program.args.size()) << step.workload.key();
    const Status done = evaluate(program, args);
    EXPECT_TRUE(done) << done.message();
    store(memory.at(step.writes), model.graph[step.writes].type.dtype, args.back());
  }
  std::vector<Numbers> outputs;
  for (size_t i = 0; i < model.graph.outputs.size(); ++i) outputs.push_back(memory.output(i));
  return outputs;
}

struct Planned {
  ModelSteps model;
  MemoryPlan plan;
};
// With images in blocks of the target's lanes, if there is one.
Planned planned(graph::Graph graph, const Target* blocks_of = nullptr) {
  CHECK(optimize(graph, model_evaluator()).is_ok());
  auto model = partition(std::move(graph));
  CHECK(model.is_ok()) << model.message();
  Planned out{*std::move(model), {}};
  if (blocks_of != nullptr) {
    const Status applied = apply_layouts(out.model, blocked_layouts(out.model, *blocks_of), *blocks_of);
    EXPECT_TRUE(applied) << applied.message();
  }
  out.plan = plan_memory(out.model);
  return out;
}
graph::Graph read(const std::string& bytes) {
  auto graph = read_model(bytes, nullptr, {}, model_evaluator());
  CHECK(graph.is_ok()) << graph.message();
  return *std::move(graph);
}

class ModelPlan : public ::testing::TestWithParam<std::string> {};

void expect_right(const std::string& name, int64_t batch, const Target* blocks_of) {
  const int64_t image = name == "mlp" ? 28 : 64;
  const auto bytes =
      testing::network(name, {.image = image, .batch = batch, .narrower = 8, .seed = first_seed(5)});
  ASSERT_TRUE(bytes.is_ok()) << bytes.message();
  const graph::Graph network = read(*bytes);
  const Planned p = planned(network, blocks_of);
  std::mt19937 random(first_seed(6));
  std::normal_distribution<double> numbers;
  Numbers data(static_cast<size_t>(network[network.inputs[0]].type.elements()));
  for (double& x : data) x = static_cast<float>(numbers(random));
  const auto expected = run_reference(network, {data}, model_evaluator());
  ASSERT_TRUE(expected.is_ok()) << expected.message();
  const std::vector<Numbers> found = carry_out(p.model, p.plan, {data});
  ASSERT_EQ(found.size(), expected->size());
  for (size_t o = 0; o < found.size(); ++o) {
    double most = 0, error = 0;
    for (size_t k = 0; k < found[o].size(); ++k) {
      most = std::max(most, std::fabs((*expected)[o][k]));
      error = std::max(error, std::fabs((*expected)[o][k] - found[o][k]));
    }
    // What lies in memory between steps is float32.
    EXPECT_LE(error, 1e-5 * most) << name << " batch " << batch;
    EXPECT_GT(most, 0);
  }
  EXPECT_LE(static_cast<double>(p.plan.arena_bytes), 1.1 * static_cast<double>(p.plan.largest_live_bytes));
}

TEST_P(ModelPlan, ComputesWhatTheNetworkComputes) {
  for (const int64_t batch : {1, 2}) ASSERT_NO_FATAL_FAILURE(expect_right(GetParam(), batch, nullptr));
}
TEST_P(ModelPlan, ComputesItWithImagesInBlocksToo) {
  const Target target = *parse_target("llvm -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu");  // 4 lanes
  for (const int64_t batch : {1, 2}) ASSERT_NO_FATAL_FAILURE(expect_right(GetParam(), batch, &target));
}
INSTANTIATE_TEST_SUITE_P(All, ModelPlan, ::testing::ValuesIn(testing::network_names()),
                         [](const auto& info) { return info.param; });

std::map<std::string, int> steps_of(const std::string& name, int64_t narrower = 1) {
  const Planned p = planned(read(*testing::network(name, {.narrower = narrower})));
  std::map<std::string, int> counts;
  for (const ModelStep& step : p.model.steps) ++counts[std::string(step.workload.op_name())];
  return counts;
}

TEST(ModelSteps, AreAsFewAsTheEpiloguesAllow) {
  using ::testing::ElementsAre;
  using ::testing::Pair;
  EXPECT_THAT(steps_of("mlp"), ElementsAre(Pair("matmul", 2), Pair("softmax", 1)));
  EXPECT_THAT(steps_of("vgg16", 8), ElementsAre(Pair("conv2d", 13), Pair("matmul", 3), Pair("pool2d", 5)));
  EXPECT_THAT(steps_of("resnet50", 8),
              ElementsAre(Pair("conv2d", 53), Pair("matmul", 1), Pair("pool2d", 1), Pair("reduce", 1)));
}

// The last sum of ResNet-50 is plain, for the mean behind it, and so must be what it adds: that alone is moved.
TEST(ModelLayouts, BlocksGoFromConvolutionToConvolution) {
  const Target target = *parse_target("llvm -mcpu=skylake-avx512");
  const Planned resnet = planned(read(*testing::network("resnet50", {})), &target);
  int moves = 0;
  std::map<std::string, int> layouts;
  for (const ModelStep& step : resnet.model.steps) {
    moves += step.workload.op_name() == "program" ? 1 : 0;
    if (const auto* conv = step.workload.get_if<Conv2dWorkload>())
      ++layouts[conv->layout + " to " + conv->out_layout];
  }
  EXPECT_EQ(moves, 1);
  EXPECT_EQ(layouts["NCHW to NCHW16c"], 1);
  EXPECT_EQ(layouts["NCHW16c to NCHW16c"], 51);
  EXPECT_EQ(layouts["NCHW16c to NCHW"], 1);
}
TEST(ModelLayouts, WhatTheyMayNotBeIsToldWithTheStep) {
  const Target target = *parse_target("llvm -mcpu=skylake-avx512");
  Planned p = planned(read(*testing::network("resnet50", {.narrower = 8})));
  Layouts layouts = plain_layouts(p.model, target);
  layouts[p.model.steps.back().writes] = 16;  // of a product
  EXPECT_THAT(apply_layouts(p.model, layouts, target).message(),
              ::testing::HasSubstr("writes what is to lie in blocks"));
}

}  // namespace
}  // namespace tuner

#endif
