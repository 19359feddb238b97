// Models with control flow, the way that a user goes: a file, compiled without tuning, opened by the runtime
// library and run. Conditions on data are met both ways.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "compiler_core/backend.h"
#include "compiler_core/base/elements.h"
#include "compiler_core/runtime/kernel.h"
#include "deploy/runtime/tuner_runtime_api.h"
#include "tests/random_seed.h"
#include "tests/support/temporary_folder.h"
#include "tests/tuner/model/control_flow_oracle.h"
#include "tests/tuner/model/random_control_flow.h"
#include "tuner/compile/compile_model.h"

namespace tuner {
namespace {

using testing::OracleTensor;

bool never() { return false; }

class CompiledNet {
 public:
  CompiledNet() = default;
  CompiledNet(const CompiledNet&) = delete;
  CompiledNet& operator=(const CompiledNet&) = delete;
  ~CompiledNet() {
    tuner_model_free_context(context_);
    tuner_model_close(model_);
  }

  // Returns what is wrong; empty: nothing.
  std::string compile(const onnx::ModelProto& model) {
    request_.model = folder_.file("net.onnx");
    std::ofstream(request_.model, std::ios::binary) << model.SerializeAsString();
    request_.output = folder_.file("out");
    request_.db = folder_.file("none.db");
    request_.target = *resolve_target("cpu");
    request_.tune = false;
    auto prepared = prepare_model(request_, never);
    if (!prepared) return prepared.message();
    const auto written = open_model_folder(request_, *prepared);
    if (!written) return written.message();
    const auto built = build_model(request_, *prepared, **written, never);
    if (!built) return built.message();
    if (tuner_model_open(request_.output.c_str(), &model_) != TUNER_OK) return tuner_last_error();
    if (tuner_model_new_context(model_, 0, &context_) != TUNER_OK) return tuner_last_error();
    return "";
  }

  // Holds one run against the oracle.
  std::string wrong(const onnx::ModelProto& model, const std::map<std::string, OracleTensor>& inputs) {
    std::vector<AlignedBuffer> memory;
    std::vector<const void*> in;
    std::vector<void*> out;
    for (int32_t i = 0; i < tuner_model_num_inputs(model_); ++i) {
      tuner_operand operand{};
      if (tuner_model_get_input(model_, i, &operand) != TUNER_OK) return tuner_last_error();
      memory.emplace_back(operand.bytes);
      const std::vector<double>& numbers = inputs.at(operand.name).numbers;
      std::ranges::copy(numbers, memory.back().as<float>());
      in.push_back(memory.back().data());
    }
    for (int32_t i = 0; i < tuner_model_num_outputs(model_); ++i) {
      tuner_operand operand{};
      if (tuner_model_get_output(model_, i, &operand) != TUNER_OK) return tuner_last_error();
      memory.emplace_back(operand.bytes);
      out.push_back(memory.back().data());
    }
    if (tuner_model_run(context_, in.data(), out.data()) != TUNER_OK) return tuner_last_error();
    const auto expected = testing::run_control_flow(model.graph(), inputs);
    for (size_t o = 0; o < expected.size(); ++o) {
      const auto found = load_elements(out[o], std::ssize(expected[o].numbers), DType::kFloat32);
      for (size_t e = 0; e < found.size(); ++e)
        if (!(std::fabs(found[e] - expected[o].numbers[e]) <= 1e-3 * (1e-2 + std::fabs(found[e]))))
          return str("output ", o, ", element ", e, " is ", found[e], ", expected ", expected[o].numbers[e]);
    }
    return "";
  }

 private:
  TemporaryFolder folder_;
  CompileRequest request_;
  tuner_loaded_model* model_ = nullptr;
  tuner_model_context* context_ = nullptr;
};

OracleTensor random_tensor(std::mt19937& random, const std::vector<int64_t>& shape) {
  std::uniform_real_distribution<float> numbers(-1, 1);
  OracleTensor made{shape, std::vector<double>(static_cast<size_t>(shape[0] * shape[1]))};
  for (double& x : made.numbers) x = numbers(random);
  return made;
}

TEST(RandomControlFlowCompiled, ComputesWhatItsControlFlowSays) {
  for (const uint32_t seed : Seeds(5700, 200)) {
    const testing::RandomControlFlow made(seed);
    CompiledNet net;
    ASSERT_EQ(net.compile(made.model()), "");
    std::mt19937 random(seed);
    for (int run = 0; run < 4; ++run) {
      const OracleTensor x = random_tensor(random, {made.rows(), made.columns()});
      const OracleTensor z = random_tensor(random, {made.rows(), made.columns()});
      EXPECT_EQ(net.wrong(made.model(), {{"x", x}, {"z", z}}), "");
    }
  }
}

// y = x * x if the sum of x is above 0, else a sum of a loop.
onnx::ModelProto chosen_by_data() {
  using namespace testing;
  onnx::ModelProto model;
  model.add_opset_import()->set_version(12);
  auto& graph = *model.mutable_graph();
  graph.set_name("chosen");
  describe(*graph.add_input(), "x", onnx::TensorProto::FLOAT, {4, 8});
  add_integer(add_node(graph, "ReduceSum", {"x"}, {"sum"}), "keepdims", 0);
  add_constant(graph, "zero", onnx::TensorProto::FLOAT, {}, {0});
  add_constant(graph, "three", onnx::TensorProto::INT64, {}, {3});
  add_node(graph, "Greater", {"sum", "zero"}, {"above"});
  auto& choice = add_node(graph, "If", {"above"}, {"y"});
  auto& then = add_subgraph(choice, "then_branch");
  add_node(then, "Mul", {"x", "x"}, {"square"});
  then.add_output()->set_name("square");
  auto& otherwise = add_subgraph(choice, "else_branch");
  auto& loop = add_node(otherwise, "Loop", {"three", "", "x"}, {"last"});
  auto& body = add_subgraph(loop, "body");
  describe(*body.add_input(), "i", onnx::TensorProto::INT64, {});
  describe(*body.add_input(), "on", onnx::TensorProto::BOOL, {});
  describe(*body.add_input(), "state", onnx::TensorProto::FLOAT);
  add_node(body, "Add", {"state", "sum"}, {"next"});
  for (const char* name : {"on", "next"}) body.add_output()->set_name(name);
  otherwise.add_output()->set_name("last");
  graph.add_output()->set_name("y");
  return model;
}
TEST(ControlFlowCompiled, DataChooseBothWays) {
  const onnx::ModelProto model = chosen_by_data();
  CompiledNet net;
  ASSERT_EQ(net.compile(model), "");
  const std::vector<int64_t> shape{4, 8};
  for (const double number : {0.5, -0.5, 2.0, -1.0})  // one context: what is chosen changes from run to run
    EXPECT_EQ(net.wrong(model, {{"x", {shape, std::vector<double>(32, number)}}}), "") << number;
}

}  // namespace
}  // namespace tuner
