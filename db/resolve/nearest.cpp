#include "db/resolve/nearest.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "templates/space/project.h"

namespace tuner {

namespace {

constexpr size_t kMostDonors = 24;
constexpr double kLeastWeight = 0.02;  // a dimension that never mattered may matter here
// A config is used instead of the default when it is predicted faster, its score is ahead by this factor
// (what is hardly better is not worth a doubt), and it is predicted to reach this part of the optimum: where
// even the best is predicted poor, the models have seen nothing like the shape and only seem to tell them
// apart.
constexpr double kAhead = 1.02, kTrusted = 0.6;

}  // namespace

Result<std::vector<ServingTemplate>> serving_templates(const Workload& workload, const Target& target,
                                                       std::string_view algorithms) {
  ASSIGN_OR_RETURN(const std::vector<const AnyTemplate*> templates,
                   templates_for(workload, target, algorithms));
  std::vector<ServingTemplate> serving;
  for (const AnyTemplate* t : templates) {
    ASSIGN_OR_RETURN(std::unique_ptr<TemplateInstance> instance, t->apply(workload, target));
    serving.push_back({t, std::move(instance)});
  }
  return serving;
}

double shape_distance(const TaskShape& a, const TaskShape& b, const VariantPredictor& predictor) {
  double sum = 0;
  for (size_t i = 0; i < a.dimensions.size() && i < b.dimensions.size(); ++i) {
    const auto& [name, here] = a.dimensions[i];
    const double there = static_cast<double>(b.dimensions[i].second);
    sum +=
        (kLeastWeight + predictor.weight_of(name)) * std::abs(std::log2(static_cast<double>(here) / there));
  }
  return sum;
}

std::vector<NearestCandidate> candidates_for(const Knowledge& knowledge, const Workload& workload,
                                             const std::vector<ServingTemplate>& serving) {
  std::vector<NearestCandidate> out;
  const TaskShape shape = shape_of(workload);
  const auto predictor = knowledge.variants.find(shape.variant);
  if (predictor == knowledge.variants.end() || serving.empty()) return out;

  std::set<std::pair<size_t, Config>> taken;
  const auto add = [&](size_t i, const Config& config, const TunedShape* from, const TopConfig* top) {
    if (!taken.emplace(i, config).second) return;
    const ConfigSpace& space = serving[i].instance->space();
    out.push_back({i, config, from, top,
                   predictor->second.predict(
                       candidate_facts(shape, serving[i].schedule_template->name(), space, config))});
  };
  const ConfigSpace& first = serving[0].instance->space();
  add(0, first.at(first.default_index()), nullptr, nullptr);

  std::vector<std::pair<double, const TunedShape*>> donors;
  for (const TunedShape& donor : knowledge.shapes)
    if (donor.shape.variant == shape.variant)
      donors.emplace_back(shape_distance(shape, donor.shape, predictor->second), &donor);
  std::stable_sort(donors.begin(), donors.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  if (donors.size() > kMostDonors) donors.resize(kMostDonors);
  for (const auto& [distance, donor] : donors) {
    for (const TopConfig& top : donor->tops) {
      const auto found = std::find_if(serving.begin(), serving.end(), [&](const ServingTemplate& s) {
        return s.schedule_template->name() == top.template_name &&
               s.schedule_template->version() == top.template_version;
      });
      const Result<Config> config = config_from_text(top.config);
      if (found == serving.end() || !config) continue;
      const std::optional<Config> here = project(*config, found->instance->space());
      if (here) add(static_cast<size_t>(found - serving.begin()), *here, donor, &top);
    }
  }
  return out;
}

size_t fastest_of(const std::vector<NearestCandidate>& candidates) {
  const Prediction& of_default = candidates[0].prediction;
  size_t best = 0;
  double score = of_default.score * kAhead;
  for (size_t i = 1; i < candidates.size(); ++i) {
    const Prediction& p = candidates[i].prediction;
    if (p.score <= score || p.fraction <= of_default.fraction || p.fraction < kTrusted) continue;
    score = p.score;
    best = i;
  }
  return best;
}

}  // namespace tuner
