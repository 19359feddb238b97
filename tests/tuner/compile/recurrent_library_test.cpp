// Models of recurrent layers as compiled libraries: random forms, and small speech networks. What the library
// computes is held against the definitions written as loops, or the graph as it was read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "compiler_core/backend.h"
#include "compiler_core/base/elements.h"
#include "compiler_core/graph/reference.h"
#include "tests/compiler_core/recurrent_loops.h"
#include "tests/models/onnx_model.h"
#include "tests/models/recurrent_networks.h"
#include "tests/random_seed.h"
#include "tests/support/temporary_folder.h"
#include "tuner/compile/compile_model.h"
#include "tuner/model/compiled_model.h"
#include "tuner/model/model_file.h"
#include "tuner/model/model_run.h"
#include "tuner/model/plan_view.h"

namespace tuner {
namespace {

using graph::testing::RecurrentCase;
using Numbers = std::vector<double>;

// The case as a model of one node; inputs that are given in each run, in order.
class CaseModel {
 public:
  CaseModel(const RecurrentCase& c, const std::vector<size_t>& wanted) {
    const int64_t d = c.directions(), rows = c.gates() * c.hidden;
    give("X", c.x, c.input_shape(), false);
    give("W", c.w, {d, rows, c.inputs}, c.constant_weights);
    give("R", c.r, {d, rows, c.hidden}, c.constant_weights);
    give("B", c.b, {d, 2 * rows}, c.constant_weights);
    give("sequence_lens", c.lengths, {c.batch}, c.constant_lengths, DType::kInt32);
    give("initial_h", c.h0, c.state_shape(), false);
    if (c.op == "LSTM") give("initial_c", c.c0, c.state_shape(), false);
    if (c.op == "LSTM") give("P", c.p, {d, 3 * c.hidden}, c.constant_weights);
    std::vector<OnnxModel::Attribute> attributes{{"direction", c.direction}, {"hidden_size", c.hidden}};
    if (c.layout != 0) attributes.emplace_back("layout", c.layout);
    if (!c.activations.empty()) attributes.emplace_back("activations", c.activations);
    if (!c.alphas.empty()) attributes.emplace_back("activation_alpha", c.alphas);
    if (!c.betas.empty()) attributes.emplace_back("activation_beta", c.betas);
    if (c.clip) attributes.emplace_back("clip", *c.clip);
    if (c.op == "LSTM") attributes.emplace_back("input_forget", static_cast<int64_t>(c.input_forget));
    if (c.op == "GRU")
      attributes.emplace_back("linear_before_reset", static_cast<int64_t>(c.linear_before_reset));
    std::vector<std::string> results(c.results());
    for (const size_t k : wanted) {
      results[k] = str("result", k);
      std::vector<int64_t> shape = c.state_shape();
      if (k == 0) shape.insert(shape.begin() + c.layout, c.steps);
      model_.output(results[k], DType::kFloat32, shape);
    }
    model_.node(c.op, names_, results, attributes);
  }
  std::string bytes() const { return model_.bytes(); }
  const std::vector<std::string>& inputs() const { return inputs_; }

 private:
  void give(const std::string& name, const Numbers& numbers, const std::vector<int64_t>& shape, bool constant,
            DType dtype = DType::kFloat32) {
    names_.push_back(numbers.empty() ? "" : name);
    if (numbers.empty()) return;
    const graph::Constant made = graph::Constant::of(numbers, dtype);
    std::string bytes(reinterpret_cast<const char*>(made.bytes().data()), made.bytes().size());
    if (constant) return model_.weights(name, dtype, shape, bytes);
    model_.input(name, dtype, shape);
    inputs_.push_back(std::move(bytes));
  }

  OnnxModel model_;
  std::vector<std::string> names_, inputs_;
};

class RecurrentLibrary : public ::testing::Test {
 protected:
  // Compiles the model; the check inside holds each step against the reference.
  void compile(const std::string& model, const std::vector<std::string>& states = {}) {
    std::ofstream(folder_.file("net.onnx"), std::ios::binary) << model;
    CompileRequest request;
    request.model = folder_.file("net.onnx");
    request.output = folder_.file("out");
    request.db = folder_.file("none.db");
    request.tune = false;
    request.states = states;
    request.target = *resolve_target("cpu");
    const auto never = [] { return false; };
    auto prepared = prepare_model(request, never);
    ASSERT_TRUE(prepared) << prepared.message();
    for (const ModelStep& step : prepared->steps.steps) steps_.push_back(step.workload.key());
    const auto to = open_model_folder(request, *prepared);
    ASSERT_TRUE(to) << to.message();
    const auto built = build_model(request, *prepared, **to, never);
    ASSERT_TRUE(built) << built.message();
  }
  // Runs the library on these bytes; one vector for each output.
  std::vector<Numbers> run(const std::vector<std::string>& inputs) {
    const auto compiled = CompiledModel::open(folder_.file("out"));
    CHECK(compiled.is_ok()) << compiled.message();
    auto context = compiled->context();
    CHECK(context.is_ok()) << context.message();
    std::vector<AlignedBuffer> memory, results;
    std::vector<const void*> in;
    std::vector<void*> out;
    for (const std::string& bytes : inputs) {
      memory.emplace_back(static_cast<int64_t>(bytes.size()));
      std::memcpy(memory.back().data(), bytes.data(), bytes.size());
      in.push_back(memory.back().data());
    }
    const tuner_model& table = compiled->table();
    for (int32_t o = 0; o < table.num_outputs; ++o) {
      results.emplace_back(table.outputs[o].bytes);
      out.push_back(results.back().data());
    }
    const Status ran = context->run(in, out);
    CHECK(ran.is_ok()) << ran.message();
    std::vector<Numbers> numbers;
    for (size_t o = 0; o < results.size(); ++o) {
      const auto* x = results[o].as<float>();
      numbers.emplace_back(x, x + table.outputs[o].bytes / 4);
    }
    return numbers;
  }

  TemporaryFolder folder_;
  std::vector<std::string> steps_;
};

void expect_near(const Numbers& found, const Numbers& expected, double relative) {
  ASSERT_EQ(found.size(), expected.size());
  double most = 1e-3;
  for (const double x : expected) most = std::max(most, std::fabs(x));
  for (size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], relative * most) << "element " << i;
}

TEST_F(RecurrentLibrary, RandomFormsAreTheirDefinitions) {
  for (const uint32_t seed : Seeds(5001, 40)) {
    const RecurrentCase c = graph::testing::random_recurrent(seed, /*most_hidden=*/40);
    const std::vector<size_t> wanted = graph::testing::random_results(c, seed);
    const CaseModel model(c, wanted);
    ASSERT_NO_FATAL_FAILURE(compile(model.bytes()));
    const std::vector<Numbers> found = run(model.inputs());
    const graph::testing::RecurrentLoops loops(c);
    for (size_t o = 0; o < wanted.size(); ++o)
      ASSERT_NO_FATAL_FAILURE(expect_near(found[o], loops.answers()[wanted[o]], 1e-4))
          << "result " << wanted[o];
  }
}

// A long sequence is one call: no step of the plan, and no code, for each of its steps.
TEST_F(RecurrentLibrary, StepsOfASequenceAreOneCall) {
  RecurrentCase c{.steps = 200, .batch = 1, .inputs = 8, .hidden = 16};
  std::mt19937 random(7);
  const auto numbers = [&](size_t count) {
    Numbers made(count);
    for (double& x : made) x = static_cast<float>(static_cast<double>(random() % 1000) / 1000 - 0.5);
    return made;
  };
  c.x = numbers(1600), c.w = numbers(512), c.r = numbers(1024), c.b = numbers(128);
  const CaseModel model(c, {0});
  ASSERT_NO_FATAL_FAILURE(compile(model.bytes()));
  ASSERT_EQ(steps_.size(), 2U);
  EXPECT_THAT(steps_[0], ::testing::HasSubstr("matmul"));
  EXPECT_THAT(steps_[1], ::testing::HasSubstr("tuner.Recurrence"));
  expect_near(run(model.inputs())[0], graph::testing::RecurrentLoops(c).answers()[0], 1e-4);
}

// A buffer that moves on: what is read at one place is written at another. With a state in one memory the
// library gives what it gives with two.
constexpr int64_t kNew = 400, kKept = 2 * kNew, kAll = kKept + kNew;  // too many for one turn of a loop
std::string shifting_model(bool newest_first = false) {
  OnnxModel model;
  model.input("past", DType::kFloat32, {1, kAll});
  model.input("x", DType::kFloat32, {1, kNew});
  const auto list = [&](const std::string& name, int64_t value) {
    model.weights(name, DType::kInt64, {1}, std::string(reinterpret_cast<const char*>(&value), 8));
  };
  list("zero", 0), list("new", kNew), list("kept_size", kKept), list("all", kAll), list("one", 1);
  if (newest_first) {
    model.node("Slice", {"past", "zero", "kept_size", "one"}, {"kept"});
    model.node("Concat", {"x", "kept"}, {"next"}, {{"axis", int64_t{1}}});
  } else {
    model.node("Slice", {"past", "new", "all", "one"}, {"kept"});
    model.node("Concat", {"kept", "x"}, {"next"}, {{"axis", int64_t{1}}});
  }
  model.node("ReduceSum", {"past", "one"}, {"sum"});
  model.output("next", DType::kFloat32, {1, kAll});
  model.output("sum", DType::kFloat32, {1, 1});
  return model.bytes();
}

// Shifted to either side: a step that read the state where it writes would meet its own elements to one of
// them.
TEST_F(RecurrentLibrary, StatesKeepTheirMemoryFromRunToRun) {
  for (const bool newest_first : {false, true}) {
    ASSERT_NO_FATAL_FAILURE(compile(shifting_model(newest_first), {"past=next"}));
    const auto compiled = CompiledModel::open(folder_.file("out"));
    ASSERT_TRUE(compiled) << compiled.message();
    auto context = compiled->context();
    ASSERT_TRUE(context) << context.message();
    AlignedBuffer state(kAll * 4), x(kNew * 4), sum(64);
    std::fill_n(state.as<float>(), kAll, 0.0F);
    for (int call = 1; call <= 4; ++call) {
      std::fill_n(x.as<float>(), kNew, static_cast<float>(call));
      const Status ran = context->run({state.data(), x.data()}, {state.data(), sum.data()});
      ASSERT_TRUE(ran) << ran.message();
      // Zeros, then kNew numbers of each call before.
      const int before = call * (call - 1) / 2;
      EXPECT_EQ(*sum.as<float>(), static_cast<float>(kNew * before));
      for (const int64_t age : {0, 1, 2})  // of a block, in calls
        for (const int64_t at : {int64_t{0}, kNew - 1})
          EXPECT_EQ(state.as<float>()[(newest_first ? age : 2 - age) * kNew + at],
                    static_cast<float>(std::max<int64_t>(call - age, 0)))
              << "call " << call << ", age " << age;
    }
  }
}

// `tuner run` does as a program: a run goes on from the state that the run before left.
TEST_F(RecurrentLibrary, RunsOfTheCommandKeepStates) {
  ASSERT_NO_FATAL_FAILURE(compile(shifting_model(), {"past=next"}));
  const auto plan = read_plan(folder_.file("out"));
  ASSERT_TRUE(plan) << plan.message();
  EXPECT_THAT(plan->states, ::testing::ElementsAre(::testing::Pair("past", "next")));
  EXPECT_THAT(*compiled_text(*plan, "plan", 0), ::testing::HasSubstr("state  next may lie on past\n"));
  auto run = ModelRun::open(folder_.file("out"), {});
  ASSERT_TRUE(run) << run.message();
  double before = 0;  // the sum of the state
  for (int k = 0; k < 4; ++k) {
    const Status ran = run->run();
    ASSERT_TRUE(ran) << ran.message();
    if (k > 0) {
      EXPECT_NEAR(run->output(1).as<float>()[0], before, 1e-3);
    }
    before = 0;
    for (int64_t e = 0; e < kAll; ++e) before += static_cast<double>(run->output(0).as<float>()[e]);
  }
}

// A plan that writes the state while a later step still reads it: the check says so, and nothing is written.
TEST_F(RecurrentLibrary, AStateThatIsWrittenTooEarlyIsFound) {
  std::ofstream(folder_.file("net.onnx"), std::ios::binary) << shifting_model();
  CompileRequest request;
  request.model = folder_.file("net.onnx");
  request.output = folder_.file("out");
  request.db = folder_.file("none.db");
  request.tune = false;
  request.target = *resolve_target("cpu");
  const auto never = [] { return false; };
  auto prepared = prepare_model(request, never);
  ASSERT_TRUE(prepared) << prepared.message();
  prepared->steps.states = {{.input = 0, .output = 0}};
  const auto to = open_model_folder(request, *prepared);
  ASSERT_TRUE(to) << to.message();
  const auto built = build_model(request, *prepared, **to, never);
  EXPECT_THAT(built.message(),
              ::testing::HasSubstr("output \"sum\" is another one when states share memory"));
}

TEST_F(RecurrentLibrary, TheDetectorsStatesAreDocumented) {
  const auto bytes = testing::recurrent_network("voice_detector", {.units = 32});
  ASSERT_TRUE(bytes) << bytes.message();
  ASSERT_NO_FATAL_FAILURE(compile(*bytes, {"h=hn", "c=cn"}));
  std::ifstream file(folder_.file("out") + "/include/net.h");
  const std::string header{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(header, ::testing::HasSubstr("h and hn may be the same memory"));
  EXPECT_THAT(header, ::testing::HasSubstr("c and cn may be the same memory"));
}

TEST_F(RecurrentLibrary, StatesThatCannotBeAreRefused) {
  const auto refusal = [&](const std::vector<std::string>& states) {
    std::ofstream(folder_.file("net.onnx"), std::ios::binary) << shifting_model();
    CompileRequest request;
    request.model = folder_.file("net.onnx");
    request.target = *resolve_target("cpu");
    request.states = states;
    const auto prepared = prepare_model(request, [] { return false; });
    return prepared ? "" : std::string(prepared.message());
  };
  EXPECT_THAT(refusal({"pats=next"}),
              ::testing::HasSubstr("--state pats=next: the model has no input \"pats\"; did you mean past?"));
  EXPECT_THAT(refusal({"past=nex"}), ::testing::HasSubstr("the model has no output \"nex\""));
  EXPECT_THAT(refusal({"past"}), ::testing::HasSubstr("--state past: expected INPUT=OUTPUT"));
  EXPECT_THAT(
      refusal({"x=next"}),
      ::testing::HasSubstr("the input is float32[1, 400], the output float32[1, 1200]; expected one type"));
  EXPECT_THAT(refusal({"past=next", "past=next"}),
              ::testing::HasSubstr("the input is part of another state already"));
}

TEST_F(RecurrentLibrary, SpeechNetworksAreWhatTheyWereRead) {
  for (const std::string& name : testing::recurrent_network_names()) {
    SCOPED_TRACE(name);
    const auto bytes = testing::recurrent_network(name, {.units = 24});
    ASSERT_TRUE(bytes) << bytes.message();
    ASSERT_NO_FATAL_FAILURE(compile(*bytes));
    const auto graph = read_model_file(folder_.file("net.onnx"), {});
    ASSERT_TRUE(graph) << graph.message();
    const RandomSeed seed(17);
    std::mt19937 random(seed);
    std::normal_distribution<float> drawn;
    std::vector<Numbers> numbers;
    std::vector<std::string> inputs;
    for (const graph::ValueId v : graph->inputs) {
      std::vector<float> x(static_cast<size_t>((*graph)[v].type.elements()));
      for (float& each : x) each = drawn(random);
      numbers.emplace_back(x.begin(), x.end());
      inputs.push_back(element_bytes(x, DType::kFloat32));
    }
    const auto expected = run_reference(*graph, numbers, model_evaluator());
    ASSERT_TRUE(expected) << expected.message();
    const std::vector<Numbers> found = run(inputs);
    for (size_t o = 0; o < expected->size(); ++o)
      ASSERT_NO_FATAL_FAILURE(expect_near(found[o], (*expected)[o], 1e-4)) << "output " << o;
  }
}

}  // namespace
}  // namespace tuner
