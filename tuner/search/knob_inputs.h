// Knobs of candidates as a Gaussian process sees them: each on 0..1, ordered ones by their logarithm, and by
// the power of two they divide by where that says more (divisibility.h); columns of all templates side by
// side.
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
  // `trends`: one value a candidate for each trend column, or none.
  GpInputs of(std::span<const Candidate> candidates, size_t trends, std::span<const float> trend) const;

 private:
  void write(const Candidate& c, GpInputs& inputs, size_t row) const;

  const SearchSpace& space_;
  std::vector<size_t> first_;                  // column of each template
  std::vector<std::vector<float>> most_even_;  // of each template's knobs: log2_even_part(); 0: no column
  size_t columns_ = 0;
};

}  // namespace tuner
