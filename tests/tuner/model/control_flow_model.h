// Small models with control flow, and what becomes of them: what tests of If, Loop and Scan share.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "compiler_core/graph/reference.h"
#include "compiler_core/oracle/oracle.h"
#include "tests/tuner/model/graph_message.h"
#include "tuner/model/read_model.h"

namespace tuner::testing {

using Numbers = std::vector<double>;
using Change = std::function<void(onnx::GraphProto&)>;

// A model of the inputs x float32[3] and yes, a bool, with the output y.
inline onnx::ModelProto model_of(const Change& add, int64_t operator_set = 17) {
  onnx::ModelProto model;
  model.add_opset_import()->set_version(operator_set);
  auto& graph = *model.mutable_graph();
  describe(*graph.add_input(), "x", onnx::TensorProto::FLOAT, {3});
  describe(*graph.add_input(), "yes", onnx::TensorProto::BOOL, {});
  graph.add_output()->set_name("y");
  add(graph);
  return model;
}
inline Result<graph::Graph> read(const onnx::ModelProto& model, const ModelOptions& options = {}) {
  auto graph = read_model(model.SerializeAsString(), nullptr, options, interpret);
  EXPECT_EQ(graph.message().find('\n'), std::string::npos) << graph.message();
  if (graph) {
    EXPECT_TRUE(check(*graph)) << check(*graph).message();
  }
  return graph;
}
inline std::string refusal(const onnx::ModelProto& model) { return read(model).message(); }

// What a model computes of these inputs.
inline Numbers computed(const onnx::ModelProto& model, const Numbers& x, double yes = 0) {
  const auto graph = read(model);
  if (!graph) {
    ADD_FAILURE() << graph.message();
    return {};
  }
  EXPECT_THAT(graph->output_names, ::testing::ElementsAre("y"));
  auto answers = graph::run_reference(*graph, {x, {yes}}, interpret);
  if (!answers) {
    ADD_FAILURE() << answers.message();
    return {};
  }
  return (*answers)[0];
}
inline std::vector<std::string> operators(const onnx::ModelProto& model) {
  std::vector<std::string> found;
  const auto graph = read(model);
  for (const auto& node : graph.value().nodes) found.push_back(node.op);
  return found;
}

}  // namespace tuner::testing
