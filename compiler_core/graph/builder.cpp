#include "compiler_core/graph/builder.h"

#include <algorithm>

#include "compiler_core/graph/empty.h"
#include "compiler_core/graph/operator.h"

namespace tuner::graph {

GraphBuilder::GraphBuilder(std::string name, Evaluator evaluate) : evaluate_(std::move(evaluate)) {
  graph_.name = std::move(name);
}

ValueId GraphBuilder::input(std::string name, TensorType type) {
  graph_.values.push_back({std::move(name), std::move(type), std::nullopt});
  graph_.inputs.push_back(graph_.values.size() - 1);
  return graph_.inputs.back();
}

ValueId GraphBuilder::constant(std::string name, TensorType type, Constant elements) {
  graph_.values.push_back({std::move(name), std::move(type), std::move(elements)});
  return graph_.values.size() - 1;
}

Result<std::vector<ValueId>> GraphBuilder::add(Node node, const std::vector<std::string>& results) {
  drop_empty_options(graph_, node);
  node.outputs.clear();
  ValueId next = graph_.values.size();
  for (const std::string& result : results) node.outputs.push_back(result.empty() ? kNoValue : next++);
  ASSIGN_OR_RETURN(const std::vector<TensorType> types, infer(graph_, node));
  if (touches_empty(graph_, node, types)) return add_without_empty(*this, std::move(node), types, results);
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].empty()) continue;
    CHECK(i < types.size()) << node.op << " gives " << types.size() << " types for " << results.size()
                            << " results";
    graph_.values.push_back({results[i], types[i], std::nullopt});
  }
  std::vector<ValueId> outputs = node.outputs;
  ASSIGN_OR_RETURN(const bool known, folded(node));
  if (!known) graph_.nodes.push_back(std::move(node));
  return outputs;
}

// Small results of constants. Large ones stay nodes: a pass folds them when the model is whole.
Result<bool> GraphBuilder::folded(const Node& node) {
  constexpr int64_t kMostElements = 4096;
  // Bytes of weights and of a bias: a pass asks for them (find_quantized). No shape follows from them.
  if (node.op == "DequantizeLinear") return false;
  const bool reads_data = find_operator(node.op)->kind != OperatorKind::kShape;
  for (const ValueId in : node.inputs)
    if (reads_data && in != kNoValue && (!graph_[in].constant || graph_[in].type.elements() > kMostElements))
      return false;
  for (const ValueId out : node.outputs)
    if (out != kNoValue && graph_[out].type.elements() > kMostElements) return false;
  RETURN_IF_ERROR(fold(graph_, node, evaluate_));
  return true;
}

Graph GraphBuilder::finish(std::vector<ValueId> outputs) {
  std::vector<std::string> names;
  for (const ValueId out : outputs) names.push_back(graph_[out].name);
  return finish(std::move(outputs), std::move(names));
}

Graph GraphBuilder::finish(std::vector<ValueId> outputs, std::vector<std::string> names) {
  CHECK(names.size() == outputs.size()) << names.size() << " names for " << outputs.size() << " outputs";
  graph_.output_names = std::move(names);
  graph_.outputs = std::move(outputs);
  return std::exchange(graph_, {});
}

Status fold(Graph& graph, const Node& node, const Evaluator& evaluate) {
  const NodeProgram made = program_of(graph, node);
  std::vector<std::vector<double>> args;
  for (const ValueId in : made.reads) args.push_back(graph[in].constant->numbers(graph[in].type.dtype));
  for (const MathWriter::Table& table : made.tables)
    args.push_back(table.constant.numbers(table.buffer->dtype));
  args.resize(made.program.args.size());
  RETURN_IF_ERROR(evaluate(made.program, args).with_context(str("node ", node.name, " (", node.op, "): ")));
  for (size_t i = 0; i < made.writes.size(); ++i) {
    Value& result = graph.values[made.writes[i]];
    result.constant = Constant::of(args[args.size() - made.writes.size() + i], result.type.dtype);
  }
  return Status::ok();
}

}  // namespace tuner::graph
