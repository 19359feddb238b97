#include "tuner/model/extract.h"

#include <map>

namespace tuner {

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
