// Plans: a network as steps and places. Each plan is carried out, step by step, in one piece of memory as
// large as it says, and must compute what the network computes: an operand that was written over, a part that
// is not where it should be, or an epilogue that means something else shows. plan_check.h besides follows
// every byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "compiler_core/graph/builder.h"
#include "compiler_core/graph/passes.h"
#include "compiler_core/graph/reference.h"
#include "tests/models/networks.h"
#include "tests/random_seed.h"
#include "tests/tuner/model/carried_out.h"
#include "tuner/model/layouts.h"
#include "tuner/model/memory_plan.h"
#include "tuner/model/model_file.h"

namespace tuner {
namespace {

using graph::ValueId;
using ::testing::AllOf;
using testing::carry_out;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Numbers;
using Dims = std::vector<int64_t>;
using Where = ValuePlace::Where;

struct Planned {
  ModelSteps model;
  MemoryPlan plan;
};
Target a_cpu() { return *parse_target("llvm -mcpu=haswell"); }
// `blocks`: with images in blocks of the target's lanes.
Planned planned(graph::Graph graph, const Target& target = a_cpu(), bool blocks = false) {
  CHECK(optimize(graph, model_evaluator()).is_ok());
  auto model = partition(std::move(graph));
  CHECK(model.is_ok()) << model.message();
  Planned out{*std::move(model), {}};
  if (blocks) {
    const Status applied = apply_layouts(out.model, blocked_layouts(out.model, target), target);
    EXPECT_TRUE(applied) << applied.message();
  }
  out.plan = plan_memory(out.model, target, "");
  return out;
}
graph::Graph read(const std::string& bytes) {
  auto graph = read_model(bytes, nullptr, {}, model_evaluator());
  CHECK(graph.is_ok()) << graph.message();
  return *std::move(graph);
}

class PlannedNetwork : public ::testing::TestWithParam<std::string> {};

void expect_network_right(const std::string& name, int64_t batch, const Target& target, bool blocks) {
  const int64_t image = name == "mlp" ? 28 : 64;
  const auto bytes =
      testing::network(name, {.image = image, .batch = batch, .narrower = 8, .seed = first_seed(5)});
  ASSERT_TRUE(bytes.is_ok()) << bytes.message();
  const graph::Graph network = read(*bytes);
  const Planned p = planned(network, target, blocks);
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

TEST_P(PlannedNetwork, ComputesWhatTheNetworkComputes) {
  for (const int64_t batch : {1, 2})
    ASSERT_NO_FATAL_FAILURE(expect_network_right(GetParam(), batch, a_cpu(), false));
}
TEST_P(PlannedNetwork, ComputesItWithImagesInBlocksToo) {
  const Target target = *parse_target("llvm -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu");  // 4 lanes
  for (const int64_t batch : {1, 2})
    ASSERT_NO_FATAL_FAILURE(expect_network_right(GetParam(), batch, target, true));
}
INSTANTIATE_TEST_SUITE_P(All, PlannedNetwork, ::testing::ValuesIn(testing::network_names()),
                         [](const auto& info) { return info.param; });

std::map<std::string, int> steps_of(const std::string& name, int64_t narrower = 1) {
  const Planned p = planned(read(*testing::network(name, {.narrower = narrower})));
  std::map<std::string, int> counts;
  for (const ModelStep& step : p.model.steps) ++counts[std::string(step.workload.op_name())];
  return counts;
}

TEST(ModelSteps, AreAsFewAsTheEpiloguesAllow) {
  using ::testing::Pair;
  EXPECT_THAT(steps_of("mlp"), ElementsAre(Pair("matmul", 2), Pair("softmax", 1)));
  EXPECT_THAT(steps_of("vgg16", 8), ElementsAre(Pair("conv2d", 13), Pair("matmul", 3), Pair("pool2d", 5)));
  EXPECT_THAT(steps_of("resnet50", 8),
              ElementsAre(Pair("conv2d", 53), Pair("matmul", 1), Pair("pool2d", 1), Pair("reduce", 1)));
}

// The last sum of ResNet-50 is plain, for the mean behind it, and so must be what it adds: that alone is
// moved.
TEST(ModelLayouts, BlocksGoFromConvolutionToConvolution) {
  const Target target = *parse_target("llvm -mcpu=skylake-avx512");
  const Planned resnet = planned(read(*testing::network("resnet50", {})), target, /*blocks=*/true);
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
  Layouts layouts = plain_layouts(p.model);
  layouts[p.model.steps.back().writes] = 16;  // of a product
  EXPECT_THAT(apply_layouts(p.model, layouts, target).message(),
              ::testing::HasSubstr("writes what is to lie in blocks"));
}

// A network written operator by operator; images of 1 x 4 x 8 x 8.
class Writer {
 public:
  Writer() : builder_("test", model_evaluator()) {}
  ValueId input(Dims shape) {
    return builder_.input(str("x", ++names_), {DType::kFloat32, std::move(shape)});
  }
  ValueId constant(Dims shape, double from = -1, double to = 1) {
    const graph::TensorType type{DType::kFloat32, std::move(shape)};
    Numbers numbers(static_cast<size_t>(type.elements()));
    for (double& x : numbers) x = std::uniform_real_distribution<float>(from, to)(random_);
    return builder_.constant(str("c", ++names_), type, graph::Constant::of(numbers, type.dtype));
  }
  ValueId add(const std::string& op, std::vector<ValueId> inputs, graph::Attributes attributes = {}) {
    auto made = builder_.add({.name = str("n", ++names_),
                              .op = op,
                              .attributes = std::move(attributes),
                              .inputs = std::move(inputs),
                              .outputs = {}},
                             {str("v", names_)});
    CHECK(made.is_ok()) << made.message();
    return made->at(0);
  }
  std::vector<ValueId> add_all(const std::string& op, std::vector<ValueId> inputs,
                               graph::Attributes attributes, int results) {
    std::vector<std::string> names;
    for (int k = 0; k < results; ++k) names.push_back(str("v", names_ + 1, "_", k));
    auto made = builder_.add({.name = str("n", ++names_),
                              .op = op,
                              .attributes = std::move(attributes),
                              .inputs = std::move(inputs),
                              .outputs = {}},
                             names);
    CHECK(made.is_ok()) << made.message();
    return *made;
  }
  ValueId list(const std::vector<int64_t>& integers) {
    return builder_.constant(str("i", ++names_), {DType::kInt64, {std::ssize(integers)}},
                             graph::Constant::of(integers, DType::kInt64));
  }
  ValueId bytes(Dims shape) {
    const graph::TensorType type{DType::kUInt8, std::move(shape)};
    Numbers numbers(static_cast<size_t>(type.elements()));
    for (double& x : numbers) x = std::uniform_int_distribution<int>(0, 255)(random_);
    return builder_.constant(str("b", ++names_), type, graph::Constant::of(numbers, type.dtype));
  }
  ValueId conv(ValueId x) { return add("Conv", {x, constant({4, 4, 1, 1})}); }
  graph::Graph finish(std::vector<ValueId> outputs) { return builder_.finish(std::move(outputs)); }

 private:
  std::mt19937 random_{first_seed(11)};
  graph::GraphBuilder builder_;
  int names_ = 0;
};

// The plan computes what the network does, for numbers from -1 to 1.
Planned expect_right(const graph::Graph& network, const Target& target = a_cpu(), bool blocks = false) {
  Planned p = planned(network, target, blocks);
  std::vector<Numbers> inputs;
  std::mt19937 random(first_seed(12));
  for (const ValueId v : network.inputs)
    for (Numbers& x = inputs.emplace_back(); std::ssize(x) < network[v].type.elements();)
      x.push_back(std::uniform_real_distribution<float>(-1, 1)(random));
  const auto expected = run_reference(network, inputs, model_evaluator());
  EXPECT_TRUE(expected.is_ok()) << expected.message();
  const std::vector<Numbers> found = carry_out(p.model, p.plan, inputs);
  EXPECT_EQ(found.size(), expected->size());
  for (size_t o = 0; o < found.size(); ++o)
    EXPECT_THAT(found[o], ::testing::Pointwise(::testing::DoubleNear(1e-5), (*expected)[o]));
  return p;
}
std::vector<std::string> keys_of(const Planned& p) {
  std::vector<std::string> keys;
  for (const ModelStep& step : p.model.steps) keys.push_back(step.workload.key());
  return keys;
}

// What is added to a sum in blocks is moved into blocks, whether there is a bias before it or not.
TEST(ModelLayouts, ResidualsLieAsTheirSumsDo) {
  const Target target = *parse_target("llvm -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu");  // 4 lanes
  for (const bool bias : {false, true}) {
    Writer w;
    std::vector<ValueId> operands = {w.input({1, 4, 8, 8}), w.constant({4, 4, 1, 1})};
    if (bias) operands.push_back(w.constant({4}));
    const ValueId sum = w.add("Add", {w.add("Conv", operands), w.input({1, 4, 8, 8})});
    const Planned p = expect_right(w.finish({w.conv(sum)}), target, /*blocks=*/true);
    EXPECT_THAT(keys_of(p), ::testing::Contains(HasSubstr("out_layout=NCHW4c")));
    EXPECT_EQ(p.model.steps.size(), 3U) << "one of them moves the residual";
  }
}

constexpr int64_t kImage = 4 * 8 * 8 * 4;  // bytes

// A chain of sums has two images at once: one that is added to, and what is in the making.
TEST(ModelPlan, SumsLieOnTheirResiduals) {
  for (const bool last : {false, true}) {
    Writer w;
    ValueId x = w.conv(w.input({1, 4, 8, 8}));
    for (int k = 0; k < 3; ++k) {
      ValueId y = w.conv(w.add("Sigmoid", {w.conv(x)}));
      if (last) y = w.add("Relu", {y});
      y = w.add("Add", {y, x});
      x = last ? y : w.add("Relu", {y});
    }
    const Planned p = expect_right(w.finish({w.conv(x)}));
    EXPECT_EQ(p.plan.arena_bytes, 2 * kImage);
    const std::vector<std::string> keys = keys_of(p);
    ASSERT_EQ(keys.size(), 8U);
    for (const size_t k : {2, 4, 6})
      EXPECT_THAT(keys[k], HasSubstr(last ? "accumulate=1 act=relu post=activation,residual"
                                          : "accumulate=1 act=relu dtype"));
  }
}

// The result itself is the memory that is added to.
TEST(ModelPlan, AResultOfTheModelMayBeASum) {
  Writer w;
  const ValueId x = w.conv(w.input({1, 4, 8, 8}));
  const Planned p = expect_right(w.finish({w.add("Add", {w.conv(w.add("Tanh", {w.conv(x)})), x})}));
  EXPECT_THAT(keys_of(p).back(), HasSubstr("accumulate=1"));
  EXPECT_EQ(p.plan.values[p.model.steps[0].writes].where, Where::kOutput);
  EXPECT_EQ(p.plan.arena_bytes, kImage);
}

// A residual that is read later or at the same time, that is a result, an input, a constant or a part, stays
// as it is.
TEST(ModelPlan, ResidualsThatAreNeededStay) {
  const auto none = [](const graph::Graph& network) {
    EXPECT_THAT(keys_of(expect_right(network)), Each(Not(HasSubstr("accumulate"))));
  };
  const auto some = [](const graph::Graph& network) {
    EXPECT_THAT(keys_of(expect_right(network)), ::testing::Contains(HasSubstr("residual=1")));
  };
  for (const int form : {0, 1, 2, 3, 4, 5, 6}) {
    SCOPED_TRACE(form);
    Writer w;
    const ValueId in = w.input({1, 4, 8, 8}), x = w.conv(in);
    const ValueId branch = w.conv(w.add("Tanh", {w.conv(x)}));
    std::vector<ValueId> outputs;
    if (form == 0) {  // read later
      const ValueId sum = w.add("Relu", {w.add("Add", {branch, x})});
      outputs = {w.add("Mul", {w.conv(sum), x})};
    } else if (form == 1) {  // a result
      outputs = {w.conv(w.add("Add", {branch, x})), x};
    } else if (form == 6) {  // the same under another shape
      outputs = {w.conv(w.add("Add", {branch, x})), w.add("Reshape", {x, w.list({256})})};
    } else if (form == 2) {  // an input
      outputs = {w.conv(w.add("Add", {branch, in}))};
    } else if (form == 3) {  // a constant
      outputs = {w.conv(w.add("Add", {branch, w.constant({1, 4, 8, 8})}))};
    } else if (form == 4) {  // what is multiplied is what is added
      const ValueId y = w.add("Tanh", {branch});
      outputs = {w.conv(w.add("Add", {w.conv(y), y}))};
    } else {  // part of something larger
      const ValueId wide = w.add("Conv", {x, w.constant({8, 4, 1, 1})});
      const auto part = [&](int64_t from) {
        return w.add("Slice", {wide, w.list({from}), w.list({from + 4}), w.list({1})});
      };
      outputs = {w.conv(w.add("Add", {w.conv(w.add("Tanh", {w.conv(part(0))})), part(4)}))};
    }
    const graph::Graph network = w.finish(outputs);
    none(network);
    some(network);
  }
}

// A Concat whose parts are written where they belong in it is no step.
TEST(ModelPlan, PartsAreWrittenInPlace) {
  for (const bool is_result : {false, true}) {
    Writer w;
    const ValueId x = w.input({1, 4, 8, 8}), a = w.conv(x), b = w.conv(x);
    const ValueId both = w.add("Concat", {a, b}, {{"axis", int64_t{1}}});
    const Planned p =
        expect_right(w.finish({is_result ? both : w.add("Conv", {both, w.constant({4, 8, 1, 1})})}));
    EXPECT_THAT(keys_of(p), Each(HasSubstr("conv2d")));
    EXPECT_EQ(p.plan.values[b].offset, p.plan.values[a].offset + kImage);
    EXPECT_EQ(p.plan.arena_bytes, is_result ? 0 : 2 * kImage);
  }
}

// A part that is a result itself, under its own shape or another, an input, a constant, or joined twice, lies
// elsewhere.
TEST(ModelPlan, PartsThatLieElsewhereAreCopied) {
  for (const int form : {0, 1, 2, 3, 4, 5, 6, 7}) {
    SCOPED_TRACE(form);
    Writer w;
    const ValueId x = w.input({1, 4, 2, 2}), a = w.conv(x), b = w.conv(x);
    std::vector<ValueId> parts = {a, b}, outputs;
    if (form == 0) outputs = {a};
    if (form == 1) outputs = {b};
    if (form == 2) outputs = {w.add("Reshape", {a, w.list({4, 4})})};
    if (form == 3) outputs = {w.add("Reshape", {b, w.list({4, 4})})};
    if (form == 4) parts = {a, x};
    if (form == 5) parts = {a, a};
    if (form == 6) parts = {a, w.constant({1, 4, 2, 2})};
    if (form == 7) parts = {w.constant({1, 4, 2, 2}), a};
    const ValueId both = w.add("Concat", parts, {{"axis", int64_t{1}}});
    outputs.insert(form % 2 == 0 ? outputs.end() : outputs.begin(),
                   w.add("Conv", {both, w.constant({4, 8, 1, 1})}));
    const Planned p = expect_right(w.finish(outputs));
    EXPECT_THAT(keys_of(p), ::testing::Contains(HasSubstr("program"))) << "the step that copies";
  }
}

// A result has memory of its own, whatever it is: an input, a constant, another result, a view or a part of
// one.
TEST(ModelPlan, EveryResultHasItsOwnMemory) {
  for (const int form : {0, 1, 2, 3, 4, 5, 6, 7}) {
    SCOPED_TRACE(form);
    Writer w;
    const ValueId x = w.input({1, 4, 8, 8}), y = w.conv(x),
                  wide = w.add("Conv", {x, w.constant({8, 4, 1, 1})});
    const auto part = [&](int64_t from) {
      return w.add("Slice", {wide, w.list({from}), w.list({from + 4}), w.list({1})});
    };
    std::vector<ValueId> outputs = {y};
    if (form == 0) outputs = {x, y};
    if (form == 1) outputs = {y, y};
    if (form == 2) outputs = {y, w.add("Reshape", {y, w.list({256})}), w.add("Identity", {y})};
    if (form == 3) outputs = {part(4), part(0)};
    if (form == 4) outputs = {wide, part(4)};
    if (form == 5) outputs = {w.constant({1, 3}), y};
    if (form == 6) outputs = {w.add("Relu", {y}), y};  // an epilogue would swallow y
    if (form == 7) outputs = {w.add("Tanh", {w.add("Add", {y, w.constant({4, 1, 1})})}), part(0), wide};
    expect_right(w.finish(outputs));
  }
}

// Parts of a value are no work where their elements stand together; others are moved. Places count from the
// end, too.
TEST(ModelPlan, PartsThatStandTogetherAreRead) {
  struct Case {
    int64_t start, end, axis, step;
    bool together;
  };
  for (const Case& c : {Case{4, 8, 1, 1, true}, Case{-4, 1000, -3, 1, true}, Case{0, 8, 1, 2, false},
                        Case{-1, -1000, 1, -1, false}, Case{1, 3, 2, 1, false}}) {
    SCOPED_TRACE(str(c.start, " to ", c.end, " of ", c.axis));
    Writer w;
    const ValueId wide = w.add("Conv", {w.input({1, 4, 8, 8}), w.constant({8, 4, 1, 1})});
    const ValueId part =
        w.add("Slice", {wide, w.list({c.start}), w.list({c.end}), w.list({c.axis}), w.list({c.step})});
    const int64_t channels = c.axis == 2 || c.step == -1 ? 8 : 4;
    const Planned p = expect_right(w.finish({w.add("Conv", {part, w.constant({4, channels, 1, 1})}), wide}));
    EXPECT_EQ(p.model.steps.size(), c.together ? 2U : 3U);
  }
  Writer w;
  const ValueId wide = w.add("Conv", {w.input({1, 4, 8, 8}), w.constant({12, 4, 1, 1})});
  const auto parts = w.add_all("Split", {wide, w.list({4, 8})}, {{"axis", int64_t{-3}}}, 2);
  const Planned p =
      expect_right(w.finish({w.conv(parts[0]), w.add("Conv", {parts[1], w.constant({4, 8, 1, 1})})}));
  EXPECT_EQ(p.model.steps.size(), 3U);
}

// A sum that lies on a residual is one itself: it is needed until its own last reader.
TEST(ModelPlan, ASumThatIsReadLaterIsNotAddedTo) {
  Writer w;
  const ValueId x = w.conv(w.input({1, 4, 8, 8}));
  const ValueId first = w.add("Add", {w.conv(w.add("Tanh", {w.conv(x)})), x});
  const ValueId second = w.add("Add", {w.conv(w.add("Tanh", {w.conv(first)})), first});
  const Planned p = expect_right(w.finish({w.add("Mul", {w.conv(w.add("Relu", {second})), first})}));
  const std::vector<std::string> keys = keys_of(p);
  EXPECT_EQ(
      std::ranges::count_if(keys, [](const auto& k) { return k.find("accumulate=1") != std::string::npos; }),
      1);
}

// Nor does a step get other templates for it: here none, as GPUs do not accumulate.
TEST(ModelPlan, SumsStayApartWhereOtherTemplatesWouldServe) {
  Writer w;
  const ValueId x = w.conv(w.input({1, 4, 8, 8}));
  const Planned p = expect_right(w.finish({w.conv(w.add("Add", {w.conv(w.add("Tanh", {w.conv(x)})), x}))}),
                                 *parse_target("cuda -arch=sm_80"));
  EXPECT_THAT(keys_of(p),
              AllOf(Each(Not(HasSubstr("accumulate"))), ::testing::Contains(HasSubstr("residual=1"))));
}

// Factors, quotients, differences and sums of one number, or one a channel, in the order of the network.
TEST(ModelSteps, TakeInNumbersOfAChannel) {
  Writer w;
  const ValueId a = w.input({1, 2, 5, 6}), b = w.input({1, 2, 6, 7});
  const ValueId scores = w.add("Div", {w.add("MatMul", {a, b}), w.constant({}, 2, 3)});
  const ValueId masked = w.add("Add", {scores, w.constant({1, 1, 1, 7})});
  Planned p = expect_right(w.finish({w.add("Softmax", {masked})}));
  ASSERT_EQ(p.model.steps.size(), 2U);
  EXPECT_THAT(keys_of(p)[0], HasSubstr("bias=1 scale=1 act=none post=scale,bias dtype"));

  Writer behind;
  const ValueId x = behind.input({1, 4, 8, 8}), factor = behind.input({1, 4, 1, 1});
  ValueId y = behind.add("Relu", {behind.add("Conv", {x, behind.constant({6, 4, 3, 3})})});
  y = behind.add("Mul", {y, behind.constant({6, 1, 1})});
  y = behind.add("Sub", {y, behind.constant({1})});
  ValueId z = behind.add("Mul", {factor, behind.conv(x)});  // known when the model runs
  z = behind.add("Add", {z, x});
  p = expect_right(behind.finish({y, behind.add("Tanh", {z})}));
  EXPECT_THAT(keys_of(p), ElementsAre(HasSubstr("bias=1 scale=1 act=relu post=activation,scale,bias dtype"),
                                      HasSubstr("bias=0 scale=1 residual=1 act=tanh dtype")));
}

// A border is the convolution's own padding only where it is of zeros, around the image, and nobody else
// reads it.
TEST(ModelSteps, BordersThatAreNoPaddingStay) {
  for (const int form : {0, 1, 2, 3, 4, 5}) {
    SCOPED_TRACE(form);
    Writer w;
    const ValueId x = w.input({1, 4, 8, 8});
    std::vector<int64_t> pads = {0, 0, 1, 2, 0, 0, 1, 0};
    graph::Attributes mode;
    if (form == 1) mode = {{"mode", std::string("reflect")}};
    if (form == 2) pads[2] = -1;
    if (form == 3) pads = {0, 2, 0, 0, 0, 2, 0, 0};
    std::vector<ValueId> inputs = {x, w.list(pads)};
    if (form == 4) inputs.push_back(w.constant({}, 1, 2));
    const ValueId padded = w.add("Pad", inputs, mode);
    const ValueId y = w.add("Conv", {padded, w.constant({4, form == 3 ? 8 : 4, 3, 3})});
    std::vector<ValueId> outputs = {y};
    if (form == 5) outputs.push_back(w.add("Relu", {padded}));
    EXPECT_EQ(expect_right(w.finish(outputs)).model.steps.size(), form == 0 ? 1U : form == 5 ? 3U : 2U);
  }
}

// A transposed operand that others read, a result added to itself, and one that is subtracted or divided by.
TEST(ModelSteps, OperandsThatHaveOtherReadersOrAnotherOrderAreRight) {
  for (const bool shown : {false, true}) {
    Writer w;
    const ValueId a = w.input({5, 6}), b = w.input({7, 6}), turned = w.add("Transpose", {b});
    std::vector<ValueId> outputs = {w.add("MatMul", {a, turned})};
    if (shown) outputs.push_back(w.add("Tanh", {turned}));
    expect_right(w.finish(outputs));
  }
  for (const char* op : {"Add", "Mul", "Sub"}) {
    Writer w;
    const ValueId y = w.conv(w.input({1, 4, 8, 8}));
    expect_right(w.finish({w.add(op, {y, y})}));
  }
  for (const char* op : {"Sub", "Div"}) {
    Writer w;
    const ValueId y = w.add("Sigmoid", {w.conv(w.input({1, 4, 8, 8}))});
    expect_right(w.finish({w.add(op, {w.constant({4, 1, 1}, 1, 2), y})}));
  }
}

// With and without zero points and a bias, scales in rows and as one list, rows of a in two dimensions.
TEST(ModelSteps, ProductsWithWeightsOf4BitsAreAStepOfTheirOwn) {
  for (const int form : {0, 1, 2, 3}) {
    SCOPED_TRACE(form);
    Writer w;
    const bool zeros = (form & 1) != 0, bias = (form & 2) != 0;
    std::vector<ValueId> inputs = {w.input({2, 3, 70}), w.bytes({9, 3, 16}),
                                   bias ? w.constant({27}, 0, 0.1) : w.constant({9, 3}, 0, 0.1)};
    if (zeros || bias) inputs.push_back(zeros ? w.bytes({18}) : graph::kNoValue);
    if (bias) inputs.insert(inputs.end(), {graph::kNoValue, w.constant({9})});
    const ValueId y =
        w.add("com.microsoft.MatMulNBits", inputs,
              {{"K", int64_t{70}}, {"N", int64_t{9}}, {"bits", int64_t{4}}, {"block_size", int64_t{32}}});
    const Planned p = expect_right(w.finish({y}));
    EXPECT_THAT(keys_of(p),
                ElementsAre(str("v1 matmul_nbits m=6 n=9 k=70 b_dtype=int4 group=32 zero_points=",
                                zeros ? 1 : 0, " bias=", bias ? 1 : 0,
                                " act=none dtype=float32 const=b,scales", zeros ? ",zero_points" : "")));
  }
}

// What is no number a channel, or has no room in the epilogue, is a step of its own.
TEST(ModelSteps, LeaveOtherFactorsAlone) {
  for (const int form : {0, 1, 2, 3, 4}) {
    SCOPED_TRACE(form);
    Writer w;
    const ValueId x = w.input({1, 4, 8, 8}), y = w.conv(x), n = w.input({1, 4, 1, 1});
    ValueId z = y;
    if (form == 0) z = w.add("Mul", {y, w.constant({8, 1})});  // a number a row
    if (form == 1) z = w.add("Div", {y, w.add("Exp", {n})});   // no constant to turn over
    if (form == 2) z = w.add("Div", {w.constant({4, 1, 1}, 1, 2), w.add("Add", {y, w.constant({1}, 9, 10)})});
    if (form == 3) z = w.add("Mul", {w.add("Mul", {w.add("Relu", {y}), w.constant({4, 1, 1})}), n});  // two
    if (form == 4) z = w.add("Mul", {y, w.add("GlobalAveragePool", {y})});  // squeeze and excite
    const Planned p = expect_right(w.finish({z}));
    EXPECT_GE(p.model.steps.size(), 2U);
    EXPECT_EQ(p.model.steps.back().workload.op_name(), "program");
  }
}

}  // namespace
}  // namespace tuner
