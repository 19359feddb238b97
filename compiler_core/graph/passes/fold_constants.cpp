#include <algorithm>

#include "compiler_core/graph/builder.h"
#include "compiler_core/graph/operator.h"
#include "compiler_core/graph/passes.h"
#include "compiler_core/graph/uses.h"

namespace tuner::graph {
namespace {

// Larger than all operands together is what a constant spreads over: kept as a node, it costs no memory.
bool is_worth_it(const Graph& graph, const Node& node) {
  if (node.op == "NonZero" || node.op == "Unique") return true;  // no kernel finds out how many there are
  constexpr int64_t kSmall = 4096;
  if (node.op == "DequantizeLinear" && graph[node.outputs[0]].type.elements() <= kSmall) return true;
  int64_t read = kSmall, made = 0;
  for (const ValueId in : node.inputs)
    if (in != kNoValue) read += graph[in].type.bytes();
  for (const ValueId out : node.outputs)
    if (out != kNoValue) made += graph[out].type.bytes();
  return made <= read;
}

bool is_known(const Graph& graph, const Node& node) {
  if (find_operator(node.op)->kind == OperatorKind::kShape) return true;
  return std::ranges::all_of(node.inputs, [&](ValueId in) { return in == kNoValue || graph[in].constant; });
}

}  // namespace

Status fold_constants(Graph& graph, const Evaluator& evaluate) {
  std::vector<bool> gone(graph.nodes.size(), false), made_known(graph.values.size(), false);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    // What a constant may not be (an index beyond its axis) is told once the constant is known.
    if (std::ranges::any_of(node.inputs, [&](ValueId in) { return in != kNoValue && made_known[in]; }))
      RETURN_IF_ERROR(infer(graph, node).status());
    if (!is_known(graph, node) || !is_worth_it(graph, node)) continue;
    RETURN_IF_ERROR(fold(graph, node, evaluate));
    gone[n] = true;
    for (const ValueId out : node.outputs)
      if (out != kNoValue) made_known[out] = true;
  }
  erase_nodes(graph, gone);
  return Status::ok();
}

}  // namespace tuner::graph
