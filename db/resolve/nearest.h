// The nearest answer: configs of other shapes of the operator, moved into this shape's space, and the one the
// predictor likes best. The default config stands among them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "db/learning/knowledge.h"
#include "templates/schedule_template.h"

namespace tuner {

// The templates that serve a task, applied to it: made once, used by every way of answering.
struct ServingTemplate {
  const AnyTemplate* schedule_template = nullptr;
  std::unique_ptr<TemplateInstance> instance;
};
// NotFound when none does, one line a template with its reason.
Result<std::vector<ServingTemplate>> serving_templates(const Workload& workload, const Target& target,
                                                       std::string_view algorithms);

// A config somebody proposes for the task, and what is predicted of it.
struct Candidate {
  size_t serving = 0;  // index into the serving templates
  Config config;
  const TunedShape* from = nullptr;  // where it was tuned; null: the default config
  const TopConfig* top = nullptr;
  Prediction prediction;
};

// Doublings between two shapes of one variant, each dimension weighed by what it says about which config is
// fast.
double shape_distance(const TaskShape& a, const TaskShape& b, const VariantPredictor& predictor);

// The default config first (of the first template), then those of the nearest shapes, nearest first; every
// config once. Empty when the knowledge has no predictor for this variant of the operator.
std::vector<Candidate> candidates_for(const Knowledge& knowledge, const Workload& workload,
                                      const std::vector<ServingTemplate>& serving);
// The position of the one to be used: the best score of those predicted faster than the default, which stays
// where none is ahead of it or trusted. Not of an empty list.
size_t fastest_of(const std::vector<Candidate>& candidates);

}  // namespace tuner
