#include "tuner/model/guards.h"

#include <algorithm>
#include <optional>

namespace tuner {
namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::Uses;
using graph::ValueId;
using Guards = std::vector<StepGuard>;

// The condition of a Where that chooses as a whole, or kNoValue: of another node, of one that chooses by
// element, of one that is known.
ValueId condition_of(const Graph& graph, const Uses& uses, const Node& node) {
  if (node.op != "Where") return kNoValue;
  ValueId v = node.inputs[0];
  if (graph[v].type.elements() != 1) return kNoValue;
  while (uses.maker(v) != Uses::kNoNode && graph.nodes[uses.maker(v)].op == "tuner.View")
    v = graph.nodes[uses.maker(v)].inputs[0];
  return graph[v].constant ? kNoValue : v;
}

void keep_common(Guards& guards, const Guards& others) {
  std::erase_if(guards, [&](const StepGuard& g) { return std::ranges::count(others, g) == 0; });
}

Guards with_guard(Guards guards, const StepGuard& more) {
  if (guards.size() < kMostGuards && std::ranges::count(guards, more) == 0) guards.push_back(more);
  return guards;
}

}  // namespace

std::vector<Guards> node_guards(const Graph& graph, const Uses& uses) {
  std::vector<Guards> out(graph.nodes.size());
  std::vector<std::optional<Guards>> of_values(graph.values.size());  // none: nobody needs it so far
  const auto need = [&](ValueId v, const Guards& guards) {
    if (v == kNoValue) return;
    if (of_values[v])
      keep_common(*of_values[v], guards);
    else
      of_values[v] = guards;
  };
  for (const ValueId v : graph.outputs) need(v, {});
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const Node& node = graph.nodes[n];
    std::optional<Guards> guards;
    for (const ValueId v : node.outputs) {
      if (v == kNoValue || !of_values[v]) continue;
      if (guards)
        keep_common(*guards, *of_values[v]);
      else
        guards = of_values[v];
    }
    if (guards) out[n] = *std::move(guards);
    const ValueId condition = condition_of(graph, uses, node);
    for (size_t i = 0; i < node.inputs.size(); ++i)
      need(node.inputs[i],
           condition == kNoValue || i == 0 ? out[n] : with_guard(out[n], {condition, i == 1}));
  }
  return out;
}

void guard_steps(ModelSteps& model, const std::vector<Guards>& of_nodes,
                 const std::vector<ValueId>& conditions) {
  std::vector<bool> is_there(model.graph.values.size(), false);
  for (const ValueId v : model.graph.inputs) is_there[v] = true;
  const auto is_known = [&](const StepGuard& guard) -> bool {
    if (!std::ranges::binary_search(conditions, guard.condition)) return false;
    ValueId v = guard.condition;
    while (model.aliases[v].source != v) v = model.aliases[v].source;
    return is_there[v];
  };
  for (ModelStep& step : model.steps) {
    for (const StepGuard& guard : of_nodes[step.nodes.back()])
      if (is_known(guard)) step.guards.push_back(guard);
    is_there[step.writes] = true;
  }
}

std::map<ValueId, int64_t> guarded_work(const ModelSteps& model) {
  std::map<ValueId, int64_t> work;
  for (const ModelStep& step : model.steps)
    for (const StepGuard& guard : step.guards)
      work[guard.condition] += std::max(step.workload.flops(), model.graph[step.writes].type.elements());
  return work;
}

}  // namespace tuner
