#include "compiler_core/graph/reference.h"

#include "compiler_core/base/integer_types.h"
#include "compiler_core/graph/operator.h"

namespace tuner::graph {
namespace {

// How many nodes and outputs still read each value.
std::vector<int> readers_of(const Graph& graph) {
  std::vector<int> readers(graph.values.size(), 0);
  for (const Node& node : graph.nodes)
    for (const ValueId in : node.inputs)
      if (in != kNoValue) ++readers[in];
  for (const ValueId out : graph.outputs) ++readers[out];
  return readers;
}

// Integers as their type holds them: what does not fit wraps around, as it does in machines.
void wrap(std::vector<double>& values, DType dtype) {
  if (is_float(dtype) || dtype == DType::kBool || dtype_bytes(dtype) == 8) return;
  for (double& x : values) x = static_cast<double>(wrapped_to(dtype, static_cast<int64_t>(x)));
}

}  // namespace

Result<std::vector<std::vector<double>>> run_reference(const Graph& graph,
                                                       std::vector<std::vector<double>> inputs,
                                                       const Evaluator& evaluate) {
  if (inputs.size() != graph.inputs.size())
    return invalid_argument(inputs.size(), " inputs, expected ", graph.inputs.size());
  std::vector<std::vector<double>> values(graph.values.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& v = graph[graph.inputs[i]];
    if (static_cast<int64_t>(inputs[i].size()) != v.type.elements())
      return invalid_argument("input \"", v.name, "\" has ", inputs[i].size(), " elements, expected ",
                              v.type.elements());
    values[graph.inputs[i]] = std::move(inputs[i]);
  }
  const auto read = [&](ValueId id) {
    return graph[id].constant ? graph[id].constant->numbers(graph[id].type.dtype) : values[id];
  };
  std::vector<int> readers = readers_of(graph);
  for (const Node& node : graph.nodes) {
    const NodeProgram made = program_of(graph, node);
    std::vector<std::vector<double>> args;
    for (const ValueId in : made.reads) args.push_back(read(in));
    for (const MathWriter::Table& table : made.tables)
      args.push_back(table.constant.numbers(table.buffer->dtype));
    const size_t first = args.size();
    args.resize(made.program.args.size());
    RETURN_IF_ERROR(evaluate(made.program, args).with_context(str("node ", node.name, " (", node.op, "): ")));
    for (size_t i = 0; i < made.writes.size(); ++i) {
      wrap(args[first + i], graph[made.writes[i]].type.dtype);
      values[made.writes[i]] = std::move(args[first + i]);
    }
    for (const ValueId in : node.inputs)
      if (in != kNoValue && --readers[in] == 0) values[in] = {};
  }
  std::vector<std::vector<double>> outputs;
  for (const ValueId out : graph.outputs) outputs.push_back(read(out));
  return outputs;
}

}  // namespace tuner::graph
