// A model's work as tasks: what `tuner extract` writes as a job file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
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

// The steps that `tuner compile` makes of a graph for this target, unless its options say otherwise: plain
// layouts, concats in place, sums on their residuals. For targets that it does not serve those of
// partition(). `graph`: after all passes. Errors as partition() and apply_layouts().
Result<ModelSteps> steps_on(graph::Graph graph, const Target& target);

// Lays the images of all convolutions and pools out so: for targets whose steps steps_on() lays out in no way
// of its own. NotFound with the step and why: no template serves it so, though one serves it as it is.
Status lay_out_images(ModelSteps& model, std::string_view layout, const Target& target);

// The distinct workloads of the steps, in order of first use.
std::vector<ExtractedTask> extract_tasks(const ModelSteps& model);

}  // namespace tuner
