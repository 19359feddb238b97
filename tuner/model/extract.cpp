#include "tuner/model/extract.h"

#include <map>
#include <utility>

#include "compiler_core/backend.h"
#include "templates/schedule_template.h"
#include "tuner/model/layouts.h"
#include "tuner/model/memory_plan.h"

namespace tuner {

Result<ModelSteps> steps_on(graph::Graph graph, const Target& target) {
  ASSIGN_OR_RETURN(ModelSteps steps, partition(std::move(graph), {}, kLeastGuarded, nullptr,
                                               target.family->in_process() ? &target : nullptr));
  if (!backend_of(target).ships_objects()) return steps;
  RETURN_IF_ERROR(apply_layouts(steps, chosen_layouts(steps, target), target));
  plan_memory(steps, target, /*algorithms=*/"");
  return steps;
}

Status lay_out_images(ModelSteps& model, std::string_view layout, const Target& target) {
  for (ModelStep& step : model.steps) {
    Workload workload = step.workload;
    if (const auto* conv = step.workload.get_if<Conv2dWorkload>()) {
      Conv2dWorkload w = *conv;
      w.layout = w.out_layout = layout;
      workload = std::move(w);
    } else if (const auto* pool = step.workload.get_if<Pool2dWorkload>()) {
      Pool2dWorkload w = *pool;
      w.layout = layout;
      workload = std::move(w);
    }
    RETURN_IF_ERROR(validate(workload).with_context(str("step ", step.name, ": ")));
    const auto served = templates_for(workload, target);
    if (!served && templates_for(step.workload, target))
      return served.status().with_context(str("step ", step.name, " in layout ", layout, ": "));
    step.workload = std::move(workload);
  }
  return Status::ok();
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
