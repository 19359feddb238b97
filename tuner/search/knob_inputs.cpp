#include "tuner/search/knob_inputs.h"

#include <algorithm>
#include <cmath>

#include "tuner/search/divisibility.h"

namespace tuner {
namespace {

constexpr float kCategoryDistance = 0.7f;  // two categories differ in two columns: together about 1

float scaled(int64_t v) { return v > 0 ? std::log2(static_cast<float>(v)) : -1.0f; }

}  // namespace

KnobInputs::KnobInputs(const SearchSpace& space, bool divisibility) : space_(&space) {
  columns_ = space.parts.size() > 1 ? space.parts.size() : 0;
  for (const SearchSpace::Part& part : space.parts) {
    first_.push_back(columns_);
    std::vector<float>& most_even = most_even_.emplace_back();
    for (const KnobInfo& knob : part.space->knobs()) {
      columns_ += knob.kind == KnobKind::kCategorical ? knob.candidates.size() : 1;
      float most = 0;
      if (divisibility && divisibility_varies(knob))
        for (const int64_t v : knob.candidates) most = std::max(most, log2_even_part(v));
      most_even.push_back(most);
      columns_ += most > 0 ? 1 : 0;
    }
  }
  columns_ = std::max<size_t>(columns_, 1);
}

GpInputs KnobInputs::of(std::span<const Candidate> candidates, size_t trends,
                        std::span<const float> trend) const {
  GpInputs inputs(candidates.size(), columns_, trends);
  for (size_t i = 0; i < candidates.size(); ++i) {
    write(candidates[i], inputs, i);
    if (trends > 0) inputs.at(i, columns_) = trend[i];
  }
  return inputs;
}

void KnobInputs::write(const Candidate& c, GpInputs& inputs, size_t row) const {
  if (space_->parts.size() > 1) inputs.at(row, static_cast<size_t>(c.template_index)) = kCategoryDistance;
  const ConfigSpace& space = *space_->parts[c.template_index].space;
  const Config config = space.at(c.config);
  size_t column = first_[c.template_index];
  auto most_even = most_even_[c.template_index].begin();
  for (const KnobInfo& knob : space.knobs()) {
    const float most = *most_even++;
    const int64_t value = config.at(knob.name);
    if (knob.kind == KnobKind::kCategorical) {
      for (const int64_t candidate : knob.candidates)
        inputs.at(row, column++) = candidate == value ? kCategoryDistance : 0;
      continue;
    }
    const float low = scaled(knob.candidates.front()), high = scaled(knob.candidates.back());
    inputs.at(row, column++) = high > low ? (scaled(value) - low) / (high - low) : 0;
    if (most > 0) inputs.at(row, column++) = log2_even_part(value) / most;
  }
}

}  // namespace tuner
