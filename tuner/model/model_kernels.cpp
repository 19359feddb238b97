#include "tuner/model/model_kernels.h"

#include <map>

namespace tuner {

ModelKernels kernels_of(const ModelSteps& model, const Target& host, const std::string& algorithms,
                        const Target* accelerator) {
  ModelKernels out;
  std::map<std::pair<std::string, bool>, size_t> known;
  for (const ModelStep& step : model.steps) {
    const Target& target = step.accelerated ? *accelerator : host;
    const auto [at, is_new] =
        known.emplace(std::pair(step.workload.key(), step.accelerated), out.tasks.size());
    if (is_new) {
      out.tasks.push_back({.workload = step.workload,
                           .target = target,
                           .key = at->first.first,
                           .target_name = target.name(),
                           .algorithms = step.accelerated ? std::string() : algorithms,
                           .constants = step.workload.has_constants() ? Constants::kCold : Constants::kWarm});
      out.uses.push_back(0);
    }
    ++out.uses[at->second];
    out.of_step.push_back(at->second);
  }
  return out;
}

}  // namespace tuner
