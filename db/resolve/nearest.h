// The nearest answer: takes configs of the operator's other shapes, moves each into this shape's space, and
// picks the one with the best prediction. The default config takes part.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "db/learning/knowledge.h"
#include "templates/schedule_template.h"

namespace tuner {

// A template that serves the task, applied to it. Made once and used by every kind of answer.
struct ServingTemplate {
  const AnyTemplate* schedule_template = nullptr;
  std::unique_ptr<TemplateInstance> instance;
};
// NotFound if none serves the task: one line per template with its reason.
Result<std::vector<ServingTemplate>> serving_templates(const Workload& workload, const Target& target,
                                                       std::string_view algorithms);

// A config that may be used for the task, with its prediction.
struct NearestCandidate {
  size_t serving = 0;  // index into the serving templates
  Config config;
  // The shape it was tuned for, and what was measured there. Both are of the Knowledge, which must outlive
  // this; null: the default config.
  const TunedShape* from = nullptr;
  const TopConfig* top = nullptr;
  Prediction prediction;
};

// Returns the distance of two shapes of one variant (tasks that differ in their extents only): the doublings
// between their extents, each dimension weighted by how much it says about which config is fast.
double shape_distance(const TaskShape& a, const TaskShape& b, const VariantPredictor& predictor);

// Returns the default config of the first template, then the configs of other shapes, nearest shape first,
// each config once. Empty if there is no predictor for this variant.
std::vector<NearestCandidate> candidates_for(const Knowledge& knowledge, const Workload& workload,
                                             const std::vector<ServingTemplate>& serving);
// Returns the position of the candidate to use: of those that the predictor puts clearly ahead of the default
// the one with the best score, else the default. `candidates` must not be empty: look at what
// candidates_for() gave first.
size_t fastest_of(const std::vector<NearestCandidate>& candidates);

}  // namespace tuner
