#include "tuner/model/in_place.h"

#include <algorithm>
#include <optional>

#include "templates/registry/registry.h"

namespace tuner {
namespace {

using graph::ValueId;

ValueId root_of(const ModelSteps& model, ValueId v) {
  while (model.aliases[v].source != v) v = model.aliases[v].source;
  return v;
}

// The workload with its residual on out, and where that stands among the step's operands.
struct InPlace {
  Workload workload;
  size_t operand = 0;
};
std::optional<InPlace> in_place(const Workload& workload) {
  return std::visit(
      []<class W>(W w) -> std::optional<InPlace> {
        if constexpr (requires { w.accumulate; }) {
          if (!w.residual) return std::nullopt;
          w.residual = false;
          w.accumulate = true;
          if (validate(w)) return InPlace{w, w.bias ? size_t{3} : size_t{2}};
        }
        return std::nullopt;
      },
      workload.op());
}

// True if the sum of step `s` may be written where `residual` is.
// `last`: of each value that lies in no other, the last step that writes or reads any of it.
bool may_lie_on(const ModelSteps& model, size_t s, ValueId residual, const std::vector<size_t>& last) {
  const graph::Graph& graph = model.graph;
  const ValueId sum = model.steps[s].writes, root = root_of(model, residual);
  if (model.aliases[sum].source != sum) return false;  // it has a place already
  if (graph[root].constant || std::ranges::count(graph.inputs, root) > 0) return false;
  if (graph[root].type.bytes() != graph[sum].type.bytes()) return false;
  const auto is_there = [&](ValueId v) { return root_of(model, v) == root; };
  if (std::ranges::any_of(graph.outputs, is_there)) return false;
  if (std::ranges::count_if(model.steps[s].reads, is_there) != 1) return false;
  return last[root] <= s;
}

bool same_templates_serve(const Workload& a, const Workload& b, const Target& target,
                          const std::string& algorithms) {
  const auto of_a = templates_for(a, target, algorithms), of_b = templates_for(b, target, algorithms);
  return of_a && of_b && *of_a == *of_b;
}

}  // namespace

bool lie_on_residuals(ModelSteps& model, const Target& target, const std::string& algorithms) {
  bool any = false;
  std::vector<size_t> last(model.graph.values.size(), 0);
  for (size_t s = 0; s < model.steps.size(); ++s) {
    last[root_of(model, model.steps[s].writes)] = s;
    for (const ValueId in : model.steps[s].reads) last[root_of(model, in)] = s;
  }
  for (size_t s = 0; s < model.steps.size(); ++s) {
    ModelStep& step = model.steps[s];
    std::optional<InPlace> changed = in_place(step.workload);
    if (!changed || step.foreign) continue;
    const auto operand = step.reads.begin() + static_cast<std::ptrdiff_t>(changed->operand);
    const ValueId residual = *operand;
    if (!may_lie_on(model, s, residual, last) ||
        !same_templates_serve(step.workload, changed->workload, target, algorithms))
      continue;
    // Where the residual lies itself, so that sums of sums are found at once.
    ValueAlias& place = model.aliases[step.writes] = {residual, 0};
    while (model.aliases[place.source].source != place.source) {
      place.offset += model.aliases[place.source].offset;
      place.source = model.aliases[place.source].source;
    }
    last[place.source] = std::max(last[place.source], last[step.writes]);
    step.reads.erase(operand);
    step.reads.push_back(residual);  // what is under the result comes last
    step.workload = std::move(changed->workload);
    any = true;
  }
  return any;
}

}  // namespace tuner
