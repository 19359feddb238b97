#include "tuner/model/model_kernels.h"

#include <map>

namespace tuner {

ModelKernels kernels_of(const ModelSteps& model, const Target& target, const std::string& algorithms) {
  ModelKernels out;
  std::map<std::string, size_t> known;
  for (const ModelStep& step : model.steps) {
    const auto [at, is_new] = known.emplace(step.workload.key(), out.tasks.size());
    if (is_new) {
      out.tasks.push_back({.workload = step.workload,
                           .target = target,
                           .key = at->first,
                           .target_name = target.name(),
                           .algorithms = algorithms,
                           .constants = step.workload.has_constants() ? Constants::kCold : Constants::kWarm});
      out.uses.push_back(0);
    }
    ++out.uses[at->second];
    out.of_step.push_back(at->second);
  }
  return out;
}

}  // namespace tuner
