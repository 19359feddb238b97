// A model's work as tasks: what `tuner extract` writes as a job file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler_core/target.h"
#include "templates/workload/workload.h"
#include "tuner/model/partition.h"

namespace tuner {

struct ExtractedTask {
  Workload workload;  // valid
  int64_t uses = 0;
  std::vector<std::string> nodes;  // of the model, one a use: whose result it gives
};

// The steps that `tuner compile` makes of a graph for this target, unless its options say otherwise: plain layouts, concats in
// place, sums on their residuals. For targets that it does not serve those of partition(). `graph`: after all passes. Errors as
// partition() and apply_layouts().
Result<ModelSteps> steps_on(graph::Graph graph, const Target& target);

// The distinct workloads of the steps, in order of first use.
std::vector<ExtractedTask> extract_tasks(const ModelSteps& model);

}  // namespace tuner
