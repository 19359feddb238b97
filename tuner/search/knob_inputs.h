// Knobs of candidates as a Gaussian process sees them, each scaled to 0..1. Ordered knobs use their
// logarithm, and the power of two that divides them if that says more (divisibility.h). Columns of all
// templates stand side by side.
#pragma once

#include <span>
#include <vector>

#include "tuner/cost_model/gaussian_process.h"
#include "tuner/search/search_strategy.h"

namespace tuner {

class KnobInputs {
 public:
  explicit KnobInputs(const SearchSpace& space);
  size_t columns() const { return columns_; }
  // `trends`: number of trend columns, 0 or 1. `trend`: one value per candidate, or empty.
  GpInputs of(std::span<const Candidate> candidates, size_t trends, std::span<const float> trend) const;

 private:
  void write(const Candidate& c, GpInputs& inputs, size_t row) const;

  const SearchSpace& space_;
  std::vector<size_t> first_;                  // first column of each template
  std::vector<std::vector<float>> most_even_;  // for each template's knobs: the largest log2_even_part(); 0:
                                               // no column
  size_t columns_ = 0;
};

}  // namespace tuner
