// A model whose branches have products of their own, as a compiled library: one branch runs, and the library
// computes what the model says, whatever was in memory. Steps are counted while they run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <thread>

#include "compiler_core/backend.h"
#include "compiler_core/graph/reference.h"
#include "compiler_core/runtime/kernel.h"
#include "tests/random_seed.h"
#include "tests/support/temporary_folder.h"
#include "tests/tuner/model/graph_message.h"
#include "tuner/compile/compile_model.h"
#include "tuner/model/compiled_model.h"
#include "tuner/model/model_file.h"
#include "tuner/model/plan_view.h"
#include "tuner/model/run_report.h"

namespace tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Numbers = std::vector<double>;
using Names = std::vector<std::string>;

bool never() { return false; }

constexpr int64_t kRows = 16, kColumns = 64;

// y = tanh(x a) b if the sum of x is above 0, else x c; then a softmax.
std::string chosen_by_data() {
  using namespace testing;  // NOLINT(google-build-using-namespace)
  onnx::ModelProto model;
  model.add_opset_import()->set_version(12);
  auto& graph = *model.mutable_graph();
  graph.set_name("chosen");
  describe(*graph.add_input(), "x", onnx::TensorProto::FLOAT, {kRows, kColumns});
  std::mt19937 random(first_seed(31));
  for (const char* name : {"a", "b", "c"}) {
    Numbers weights(kColumns * kColumns);
    for (double& w : weights) w = std::uniform_real_distribution<float>(-0.3F, 0.3F)(random);
    add_constant(graph, name, onnx::TensorProto::FLOAT, {kColumns, kColumns}, weights);
  }
  add_integer(add_node(graph, "ReduceSum", {"x"}, {"sum"}), "keepdims", 0);
  add_constant(graph, "zero", onnx::TensorProto::FLOAT, {}, {0});
  add_node(graph, "Greater", {"sum", "zero"}, {"above"});
  auto& choice = add_node(graph, "If", {"above"}, {"y"});
  auto& then = add_subgraph(choice, "then_branch");
  add_node(then, "MatMul", {"x", "a"}, {"inner"});
  add_node(then, "Tanh", {"inner"}, {"bent"});
  add_node(then, "MatMul", {"bent", "b"}, {"then"});
  then.add_output()->set_name("then");
  auto& otherwise = add_subgraph(choice, "else_branch");
  add_node(otherwise, "MatMul", {"x", "c"}, {"else"});
  otherwise.add_output()->set_name("else");
  add_node(graph, "Softmax", {"y"}, {"z"});
  graph.add_output()->set_name("z");
  return model.SerializeAsString();
}

class GuardedLibrary : public ::testing::Test {
 protected:
  void SetUp() override {
    request_.model = folder_.file("net.onnx");
    std::ofstream(request_.model, std::ios::binary) << chosen_by_data();
    request_.output = folder_.file("out");
    request_.db = folder_.file("none.db");
    request_.target = *resolve_target("cpu");
    request_.tune = false;
  }
  Result<CompiledReport> compile(const std::function<void(PreparedModel&)>& change = {}) const {
    ASSIGN_OR_RETURN(PreparedModel prepared, prepare_model(request_, never));
    if (change) change(prepared);
    ASSIGN_OR_RETURN(const auto to, open_model_folder(request_, prepared));
    return build_model(request_, prepared, *to, never);
  }
  // x of one sign, and what the model computes of it.
  struct Case {
    std::vector<float> x;
    Numbers answer;
  };
  Case drawn(uint32_t seed, bool above) const {
    Case made;
    std::mt19937 random(seed);
    for (int64_t k = 0; k < kRows * kColumns; ++k)
      made.x.push_back(std::uniform_real_distribution<float>(-0.5F, 1)(random) * (above ? 1.F : -1.F));
    const auto graph = read_model_file(request_.model, {});
    EXPECT_TRUE(graph.is_ok()) << graph.message();
    const auto answers = run_reference(*graph, {{made.x.begin(), made.x.end()}}, model_evaluator());
    EXPECT_TRUE(answers.is_ok()) << answers.message();
    made.answer = (*answers)[0];
    return made;
  }
  // Empty: right.
  static std::string wrong(ModelContext& context, const Case& c) {
    AlignedBuffer x(std::ssize(c.x) * 4), z(std::ssize(c.x) * 4);
    std::ranges::copy(c.x, x.as<float>());
    context.fill_arena(static_cast<char>(0xff));
    if (const Status ran = context.run({x.data()}, {z.data()}); !ran) return ran.message();
    for (size_t k = 0; k < c.answer.size(); ++k)
      if (!(std::fabs(z.as<float>()[k] - c.answer[k]) <= 1e-5))
        return str("element ", k, " is ", z.as<float>()[k], ", expected ", c.answer[k]);
    return "";
  }

  TemporaryFolder folder_;
  CompileRequest request_;
};

TEST_F(GuardedLibrary, RunsOneBranch) {
  const auto compiled = compile();
  ASSERT_TRUE(compiled.is_ok()) << compiled.message();
  const auto model = CompiledModel::open(request_.output);
  ASSERT_TRUE(model.is_ok()) << model.message();
  auto context = model->context();
  ASSERT_TRUE(context.is_ok()) << context.message();
  Names ran;
  context->watch([&](size_t step, bool done) {
    if (!done) ran.push_back(model->plan().steps[step].name);
  });
  for (const uint32_t seed : Seeds(6100, 6)) {  // one context: what is chosen changes from run to run
    ran.clear();
    const bool above = seed % 3 != 1;
    EXPECT_EQ(wrong(*context, drawn(seed, above)), "");
    if (above)
      EXPECT_THAT(ran, ElementsAre("node_sum", "node_above", "node_bent", "node_then", "node_y", "node_z"));
    else
      EXPECT_THAT(ran, ElementsAre("node_sum", "node_above", "node_else", "node_y", "node_z"));
  }
}

TEST_F(GuardedLibrary, EightThreadsChooseForThemselves) {
  const auto compiled = compile();
  ASSERT_TRUE(compiled.is_ok()) << compiled.message();
  const auto model = CompiledModel::open(request_.output);
  ASSERT_TRUE(model.is_ok()) << model.message();
  const std::array<Case, 2> cases = {drawn(first_seed(6200), false), drawn(first_seed(6200) + 1, true)};
  std::vector<std::thread> threads;
  std::array<std::string, 8> faults;
  for (size_t t = 0; t < faults.size(); ++t)
    threads.emplace_back([&, t] {
      auto context = model->context();
      if (!context) faults[t] = context.message();
      for (size_t run = 0; run < 40 && faults[t].empty(); ++run)
        faults[t] = wrong(*context, cases[(t + run / (1 + t)) % 2]);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(faults, ::testing::Each(""));
}

TEST_F(GuardedLibrary, PlanAndProfileTellOfIt) {
  const auto compiled = compile();
  ASSERT_TRUE(compiled.is_ok()) << compiled.message();
  EXPECT_GT(compiled->checked_steps, 5) << "all steps are checked, whatever the check's inputs choose";
  const auto plan = read_plan(request_.output);
  ASSERT_TRUE(plan.is_ok()) << plan.message();
  for (const PlanStep& step : plan->steps) EXPECT_GT(step.inside_ns, 0) << step.name;
  const std::string text = *compiled_text(*plan, "plan", 0);
  EXPECT_THAT(text, HasSubstr("node_else\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex("only if above arena \\+[0-9]+ \\(1 bytes\\) is true"));
  EXPECT_THAT(text, ::testing::ContainsRegex("only if above arena \\+[0-9]+ \\(1 bytes\\) is false"));
  EXPECT_THAT(*compiled_text(*plan, "layers", 0), HasSubstr("if it had to run every step"));
  const auto report = run_report({.folder = request_.output, .profile = true}, 0);
  ASSERT_TRUE(report.is_ok()) << report.message();
  EXPECT_THAT(report->text, HasSubstr("not run"));
  int left_out = 0;
  for (const auto& step : report->facts["times"]["steps"]) left_out += step.contains("not_run") ? 1 : 0;
  EXPECT_TRUE(left_out == 1 || left_out == 2) << left_out << ": one of two branches of 2 steps and 1";
}

// A guard that is wrong is found before anything is written, unless the check's inputs choose what it is
// right for: so all are turned.
TEST_F(GuardedLibrary, TheCheckFindsWrongGuards) {
  const auto compiled = compile([](PreparedModel& model) {
    size_t turned = 0;
    for (ModelStep& step : model.steps.steps)
      for (StepGuard& guard : step.guards) guard.wanted = !guard.wanted, ++turned;
    EXPECT_EQ(turned, 3U);
  });
  EXPECT_THAT(compiled.message(),
              HasSubstr("output \"z\" is another one when steps that it does not need are left out"));
}

}  // namespace
}  // namespace tuner
