// One operator on a few numbers, and what the reference makes of it: for tests with answers written out.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler_core/graph/builder.h"
#include "compiler_core/graph/operator.h"
#include "compiler_core/graph/reference.h"
#include "compiler_core/oracle/oracle.h"

namespace tuner::graph::testing {

using Numbers = std::vector<double>;
using Dims = std::vector<int64_t>;

struct Operand {
  TensorType type;
  Numbers numbers;
  bool constant = false;
};
inline Operand floats(Dims shape, Numbers numbers) {
  return {{DType::kFloat32, std::move(shape)}, std::move(numbers)};
}
// A constant list of integers.
inline Operand list(Numbers numbers) {
  return {{DType::kInt64, {std::ssize(numbers)}}, std::move(numbers), true};
}
inline const Operand kNone{{DType::kFloat32, {0}}, {}};  // an input that is not given

struct Answer {
  std::string refusal;
  Dims shape;
  Numbers numbers;
  DType dtype = DType::kFloat32;
};
// Result `result` of the operator in this operator set.
inline Answer run(int64_t set, const std::string& op, const std::vector<Operand>& operands,
                  Attributes attributes = {}, size_t results = 1, size_t result = 0) {
  GraphBuilder b("test", interpret);
  Node node{.name = "n", .op = op, .operator_set = set, .attributes = std::move(attributes)};
  std::vector<Numbers> inputs;
  for (const Operand& operand : operands) {
    if (operand.numbers.empty()) {
      node.inputs.push_back(kNoValue);
    } else if (operand.constant) {
      node.inputs.push_back(b.constant("c", operand.type, Constant::of(operand.numbers, operand.type.dtype)));
    } else {
      node.inputs.push_back(b.input("x", operand.type));
      inputs.push_back(operand.numbers);
    }
  }
  std::vector<std::string> names(results);
  for (size_t k = 0; k < results; ++k) names[k] = str("y", k);
  const auto made = b.add(std::move(node), names);
  if (!made) return {made.message()};
  const Graph graph = b.finish(*made);
  EXPECT_TRUE(check(graph).is_ok()) << check(graph).message();
  const auto answers = run_reference(graph, inputs, interpret);
  if (!answers) return {answers.message()};
  const TensorType& type = graph[graph.outputs[result]].type;
  return {"", type.shape, (*answers)[result], type.dtype};
}
inline Attribute of(int64_t value) { return value; }
inline Attribute word(const std::string& value) { return value; }

}  // namespace tuner::graph::testing
