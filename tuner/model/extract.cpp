#include "tuner/model/extract.h"

#include <map>
#include <utility>

#include "compiler_core/backend.h"
#include "tuner/model/layouts.h"
#include "tuner/model/memory_plan.h"

namespace tuner {

Result<ModelSteps> steps_on(graph::Graph graph, const Target& target) {
  ASSIGN_OR_RETURN(ModelSteps steps, partition(std::move(graph)));
  if (!backend_of(target).ships_objects()) return steps;
  RETURN_IF_ERROR(apply_layouts(steps, plain_layouts(steps, target), target));
  plan_memory(steps, target, /*algorithms=*/"");
  return steps;
}

std::vector<ExtractedTask> extract_tasks(const ModelSteps& model) {
  std::vector<ExtractedTask> tasks;
  std::map<std::string, size_t> known;
  for (const ModelStep& step : model.steps) {
    const auto [at, is_new] = known.emplace(step.workload.key(), tasks.size());
    if (is_new) tasks.push_back({.workload = step.workload, .nodes = {}});
    ExtractedTask& task = tasks[at->second];
    ++task.uses;
    task.nodes.push_back(step.name);
  }
  return tasks;
}

}  // namespace tuner
