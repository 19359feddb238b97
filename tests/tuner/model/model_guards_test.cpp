// Guards: which steps of a plan have which, and that a plan whose guards leave steps out computes what the
// network does. Steps are counted as they run; memory that nobody wrote is NaN.
#include "tuner/model/guards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "compiler_core/graph/builder.h"
#include "compiler_core/graph/passes.h"
#include "compiler_core/graph/reference.h"
#include "compiler_core/oracle/oracle.h"
#include "tests/random_seed.h"
#include "tests/tuner/model/carried_out.h"
#include "tests/tuner/model/control_flow_oracle.h"
#include "tests/tuner/model/random_control_flow.h"
#include "tuner/model/layouts.h"
#include "tuner/model/read_model.h"

namespace tuner {
namespace {

using graph::ValueId;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Numbers;
using ::testing::UnorderedElementsAre;
using Names = std::vector<std::string>;

Target a_cpu() { return *parse_target("llvm -mcpu=haswell"); }

struct Planned {
  ModelSteps model;
  MemoryPlan plan;

  // Each guarded step: "name: condition=1 other=0".
  Names guards() const {
    Names out;
    for (const ModelStep& step : model.steps) {
      std::string text;
      for (const StepGuard& g : step.guards)
        text += str(" ", model.graph[g.condition].name, "=", g.wanted ? 1 : 0);
      if (!text.empty()) out.push_back(str(step.name, ":", text));
    }
    return out;
  }
};
Planned planned(graph::Graph graph, int64_t least_guarded, bool blocks = false) {
  CHECK(optimize(graph, model_evaluator()).is_ok());
  auto model = partition(std::move(graph), {}, least_guarded);
  CHECK(model.is_ok()) << model.message();
  Planned out{*std::move(model), {}};
  if (blocks) {
    const Status applied = apply_layouts(out.model, blocked_layouts(out.model, a_cpu()), a_cpu());
    EXPECT_TRUE(applied) << applied.message();
  }
  out.plan = plan_memory(out.model, a_cpu(), "");
  return out;
}

// A network of named nodes.
class Writer {
 public:
  Writer() : builder_("test", model_evaluator()) {}
  ValueId input(const std::string& name, std::vector<int64_t> shape, DType dtype = DType::kFloat32) {
    return builder_.input(name, {dtype, std::move(shape)});
  }
  ValueId constant(std::vector<int64_t> shape) {
    const graph::TensorType type{DType::kFloat32, std::move(shape)};
    Numbers numbers(static_cast<size_t>(type.elements()));
    for (double& x : numbers) x = std::uniform_real_distribution<float>(-0.2F, 0.2F)(random_);
    return builder_.constant(str("c", ++names_), type, graph::Constant::of(numbers, type.dtype));
  }
  ValueId add(const std::string& name, const std::string& op, std::vector<ValueId> inputs,
              graph::Attributes attributes = {}) {
    auto made = builder_.add({.name = name,
                              .op = op,
                              .attributes = std::move(attributes),
                              .inputs = std::move(inputs),
                              .outputs = {}},
                             {name});
    CHECK(made.is_ok()) << made.message();
    return made->at(0);
  }
  ValueId product(const std::string& name, ValueId x, int64_t columns = kColumns) {
    return add(name, "MatMul", {x, constant({columns, columns})});
  }
  // True if the sum of x is above 0.
  ValueId is_positive(const std::string& name, ValueId x) {
    const ValueId sum = add(name + "_sum", "ReduceSum", {x}, {{"keepdims", int64_t{0}}});
    return add(name, "Greater",
               {sum, builder_.constant(str("zero", ++names_), {DType::kFloat32, {}},
                                       graph::Constant::of(Numbers{0}, DType::kFloat32))});
  }
  graph::Graph finish(std::vector<ValueId> outputs) { return builder_.finish(std::move(outputs)); }

  static constexpr int64_t kColumns = 64;

 private:
  std::mt19937 random_{first_seed(21)};
  graph::GraphBuilder builder_;
  int names_ = 0;
};

// Inputs from -1 to 1; bools are 1 where `yes` says so, in the order of the inputs.
std::vector<Numbers> inputs_of(const graph::Graph& network, const std::vector<bool>& yes) {
  std::mt19937 random(first_seed(22));
  std::vector<Numbers> inputs;
  size_t bools = 0;
  for (const ValueId v : network.inputs) {
    Numbers& x = inputs.emplace_back();
    if (network[v].type.dtype == DType::kBool) {
      x.push_back(yes.at(bools++) ? 1 : 0);
      continue;
    }
    while (std::ssize(x) < network[v].type.elements())
      x.push_back(std::uniform_real_distribution<float>(-1, 1)(random));
  }
  return inputs;
}

// The names of the steps that run; the outputs are those of the reference.
Names run(const graph::Graph& network, const Planned& p, const std::vector<Numbers>& inputs) {
  const auto expected = run_reference(network, inputs, model_evaluator());
  EXPECT_TRUE(expected.is_ok()) << expected.message();
  std::vector<size_t> ran;
  const std::vector<Numbers> found = testing::carry_out(p.model, p.plan, inputs, &ran);
  EXPECT_EQ(found.size(), expected->size());
  for (size_t o = 0; o < found.size(); ++o)
    EXPECT_THAT(found[o], ::testing::Pointwise(::testing::DoubleNear(1e-5), (*expected)[o]));
  Names names;
  for (const size_t s : ran) names.push_back(p.model.steps[s].name);
  return names;
}

TEST(ModelGuards, TheBranchThatIsNotChosenIsLeftOut) {
  Writer w;
  const ValueId x = w.input("x", {16, 64}), yes = w.input("yes", {}, DType::kBool);
  const ValueId then = w.product("then2", w.add("tanh", "Tanh", {w.product("then1", x)}));
  const ValueId chosen = w.add("chosen", "Where", {yes, then, w.product("else1", x)});
  const graph::Graph network = w.finish({w.product("after", chosen)});
  const Planned p = planned(network, kLeastGuarded);
  EXPECT_THAT(p.guards(), ElementsAre("tanh: yes=1", "then2: yes=1", "else1: yes=0"));
  EXPECT_THAT(run(network, p, inputs_of(network, {true})), ElementsAre("tanh", "then2", "chosen", "after"));
  EXPECT_THAT(run(network, p, inputs_of(network, {false})), ElementsAre("else1", "chosen", "after"));
}

// A condition that is computed, too, and has one dimension.
TEST(ModelGuards, AComputedConditionGuards) {
  Writer w;
  const ValueId x = w.input("x", {16, 64}), y = w.input("y", {1});
  const ValueId yes = w.is_positive("yes", y);
  const ValueId chosen = w.add("chosen", "Where", {yes, w.product("then", x), w.add("abs", "Abs", {x})});
  const graph::Graph network = w.finish({chosen});
  const Planned p = planned(network, kLeastGuarded);
  EXPECT_THAT(p.guards(), ElementsAre("then: yes=1"));
  std::vector<Numbers> inputs = inputs_of(network, {});
  inputs[1] = {1};
  EXPECT_THAT(run(network, p, inputs), Contains("then"));
  inputs[1] = {-1};
  EXPECT_THAT(run(network, p, inputs), ::testing::Not(Contains("then")));
}

// Both need it, the model shows it, or something without a condition reads it.
TEST(ModelGuards, WhatIsNeededEitherWayRuns) {
  for (const int form : {0, 1, 2}) {
    SCOPED_TRACE(form);
    Writer w;
    const ValueId x = w.input("x", {16, 64}), yes = w.input("yes", {}, DType::kBool);
    const ValueId shared = w.product("shared", x), then = w.product("then", shared);
    const ValueId other = w.product("other", form == 0 ? shared : x);
    const ValueId chosen = w.add("chosen", "Where", {yes, then, other});
    std::vector<ValueId> outputs{chosen};
    if (form == 1) outputs.push_back(shared);
    if (form == 2) outputs.push_back(w.add("softmax", "Softmax", {shared}));
    const graph::Graph network = w.finish(outputs);
    const Planned p = planned(network, kLeastGuarded);
    EXPECT_THAT(p.guards(), UnorderedElementsAre("then: yes=1", "other: yes=0"));
    for (const bool value : {false, true})
      EXPECT_THAT(run(network, p, inputs_of(network, {value})), Contains("shared"));
  }
}

// A value that two choices need on the same condition is guarded; on two conditions, or the other way round,
// it is not.
TEST(ModelGuards, GuardsAreThoseOfAllUses) {
  for (const int form : {0, 1, 2}) {
    SCOPED_TRACE(form);
    Writer w;
    const ValueId x = w.input("x", {16, 64}), yes = w.input("yes", {}, DType::kBool),
                  too = w.input("too", {}, DType::kBool);
    const ValueId y = w.product("y", x);
    const ValueId a = w.add("a", "Where", {yes, y, x});
    const ValueId b = form == 0   ? w.add("b", "Where", {yes, w.add("tanh", "Tanh", {y}), x})
                      : form == 1 ? w.add("b", "Where", {yes, x, w.add("tanh", "Tanh", {y})})
                                  : w.add("b", "Where", {too, w.add("tanh", "Tanh", {y}), x});
    const graph::Graph network = w.finish({a, b});
    const Planned p = planned(network, 0);
    const auto of_y = std::ranges::find(p.model.steps, "y", &ModelStep::name);
    ASSERT_NE(of_y, p.model.steps.end());
    EXPECT_EQ(of_y->guards.size(), form == 0 ? 1U : 0U);
    for (const bool value : {false, true})
      for (const bool other : {false, true}) run(network, p, inputs_of(network, {value, other}));
  }
}

// The inner condition is computed in the outer branch: without that nobody asks for it.
TEST(ModelGuards, ConditionsWithinEachOther) {
  Writer w;
  const ValueId x = w.input("x", {16, 64}), outer = w.input("outer", {}, DType::kBool), y = w.input("y", {1});
  const ValueId first = w.product("first", x);
  const ValueId inner = w.is_positive("inner", w.add("scaled", "Mul", {first, y}));
  const ValueId in = w.add("in", "Where", {inner, w.product("both", first), w.product("one", x)});
  const ValueId out = w.add("out", "Where", {outer, w.add("sinh", "Sinh", {in}), w.product("none", x)});
  const graph::Graph network = w.finish({w.add("softmax", "Softmax", {out})});
  const Planned p = planned(network, kLeastGuarded);
  EXPECT_THAT(p.guards(),
              ElementsAre("first: outer=1", "scaled: outer=1", "inner_sum: outer=1", "inner: outer=1",
                          "both: outer=1 inner=1", "one: outer=1 inner=0", "none: outer=0"));
  std::vector<Names> ran;
  for (const bool value : {false, true})
    for (const double sign : {-1.0, 1.0}) {
      std::vector<Numbers> inputs = inputs_of(network, {value});
      inputs[2] = {sign};
      ran.push_back(run(network, p, inputs));
    }
  EXPECT_EQ(ran[0], ran[1]);
  EXPECT_NE(ran[2], ran[3]);
  for (const Names& names : {ran[2], ran[3]})
    EXPECT_EQ(std::ranges::count(names, "both") + std::ranges::count(names, "one"), 1);
}

// The condition joins the kernel that chooses, as every other value does.
TEST(ModelGuards, FewOperationsAreNotGuarded) {
  Writer w;
  const ValueId x = w.input("x", {2, 64}), y = w.input("y", {1}), zero = w.input("zero", {});
  const ValueId yes = w.add("yes", "Greater", {y, zero});
  const graph::Graph network = w.finish({w.add("chosen", "Where", {yes, w.product("then", x), x})});
  const Planned p = planned(network, kLeastGuarded);
  EXPECT_THAT(p.guards(), IsEmpty());
  EXPECT_EQ(p.model.steps.size(), 2U);
  EXPECT_EQ(planned(network, 0).model.steps.size(), 3U) << "the condition is a step of its own";
}

// A person may write the branch before its condition.
TEST(ModelGuards, AConditionThatComesLaterGuardsNothing) {
  Writer w;
  const ValueId x = w.input("x", {16, 64}), y = w.input("y", {1});
  const ValueId then = w.product("then", x), yes = w.is_positive("yes", y);
  const ValueId late = w.product("late", x);
  const graph::Graph network = w.finish({w.add("chosen", "Where", {yes, then, late})});
  const Planned p = planned(network, kLeastGuarded);
  EXPECT_THAT(p.guards(), ElementsAre("late: yes=0"));
  for (const double sign : {-1.0, 1.0}) {
    std::vector<Numbers> inputs = inputs_of(network, {});
    inputs[1] = {sign};
    run(network, p, inputs);
  }
}

TEST(ModelGuards, AChoiceByElementGuardsNothing) {
  Writer w;
  const ValueId x = w.input("x", {16, 64}), mask = w.add("mask", "Greater", {x, w.constant({1})});
  const graph::Graph network = w.finish({w.add("chosen", "Where", {mask, w.product("then", x), x})});
  EXPECT_THAT(planned(network, 0).guards(), IsEmpty());
}

// What moves an image into another order runs if what made the image does.
TEST(ModelGuards, MovedImagesAreGuardedAsTheyAreMade) {
  Writer w;
  const ValueId x = w.input("x", {1, 8, 8, 8}), yes = w.input("yes", {}, DType::kBool);
  const auto conv = [&](const std::string& name, ValueId from) {
    return w.add(name, "Conv", {from, w.constant({8, 8, 1, 1})});
  };
  const ValueId image = w.add("softmax", "Softmax", {conv("plain", x)});
  const ValueId sum = w.add("sum", "Add", {conv("blocked", x), image});
  const ValueId then = conv("then", sum);
  const graph::Graph network = w.finish({w.add("chosen", "Where", {yes, then, x})});
  const Planned p = planned(network, 0, /*blocks=*/true);
  EXPECT_THAT(p.guards(), Contains("softmax as NCHW8c: yes=1"));
  for (const bool value : {false, true}) run(network, p, inputs_of(network, {value}));
}

// However deep choices stand within each other, a step has few guards: the outermost.
TEST(ModelGuards, AreFew) {
  constexpr int kDepth = 20;
  Writer w;
  const ValueId x = w.input("x", {4, 64});
  ValueId y = w.product("innermost", x);
  std::vector<ValueId> conditions;
  for (int k = 0; k < kDepth; ++k) conditions.push_back(w.input(str("yes", k), {}, DType::kBool));
  for (int k = 0; k < kDepth; ++k)
    y = w.add(str("where", k), "Where", {conditions[static_cast<size_t>(k)], w.product(str("in", k), y), x});
  const graph::Graph network = w.finish({y});
  const Planned p = planned(network, 0);
  size_t most = 0;
  for (const ModelStep& step : p.model.steps) most = std::max(most, step.guards.size());
  EXPECT_EQ(most, kMostGuards);
  EXPECT_EQ(p.guards().back(), "in19: yes19=1");
  std::vector<bool> values(kDepth, true);
  EXPECT_THAT(run(network, p, inputs_of(network, values)), Contains("innermost"));
  values[kDepth - 1] = false;
  EXPECT_THAT(run(network, p, inputs_of(network, values)), ElementsAre("where19"));
  values[kDepth - 1] = true, values[3] = false;
  run(network, p, inputs_of(network, values));
}

// Models of If, Loop and Scan, all of whose conditions guard what they can.
TEST(ModelGuards, RandomControlFlowIsRightWithEverythingGuarded) {
  size_t steps = 0, left_out = 0;
  Seeds seeds(5603, 200);
  for (const uint32_t seed : seeds) {
    const testing::RandomControlFlow made(seed);
    const auto graph = read_model(made.model().SerializeAsString(), nullptr, {}, interpret);
    ASSERT_TRUE(graph.is_ok()) << graph.message();
    const Planned p = planned(*graph, 0);
    std::mt19937 random(seed);
    for (int inputs = 0; inputs < 3; ++inputs) {
      std::vector<Numbers> numbers(2, Numbers(static_cast<size_t>(made.rows() * made.columns())));
      for (Numbers& each : numbers)
        for (double& x : each) x = std::uniform_real_distribution<float>(-1, 1)(random);
      const std::vector<int64_t> shape{made.rows(), made.columns()};
      const auto expected = testing::run_control_flow(
          made.model().graph(), {{"x", {shape, numbers[0]}}, {"z", {shape, numbers[1]}}});
      std::vector<size_t> ran;
      const std::vector<Numbers> found = testing::carry_out(p.model, p.plan, numbers, &ran);
      ASSERT_EQ(found.size(), expected.size());
      for (size_t o = 0; o < found.size(); ++o)
        ASSERT_THAT(found[o], ::testing::Pointwise(::testing::DoubleNear(1e-4), expected[o].numbers));
      steps += p.model.steps.size();
      left_out += p.model.steps.size() - ran.size();
    }
  }
  std::printf("%zu of %zu steps were left out\n", left_out, steps);
  if (seeds.all()) {
    EXPECT_GT(left_out, steps / 50);
  }
}

}  // namespace
}  // namespace tuner
