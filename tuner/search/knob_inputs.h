// KnobInputs: candidates as rows of numbers in 0..1, for a Gaussian process (bayesian.cpp). An ordered knob
// is a column with the logarithm of its value, and on request one more with the power of two that divides the
// value where the knob's values differ in that (divisibility.h). A categorical knob has a column for each
// value. Each template has columns of its own, side by side; in those of other templates a row has 0.
#pragma once

#include <span>
#include <vector>

#include "tuner/cost_model/gaussian_process.h"
#include "tuner/search/search_strategy.h"

namespace tuner {

class KnobInputs {
 public:
  KnobInputs(const SearchSpace& space, bool divisibility);  // `space` outlives this
  size_t columns() const { return columns_; }               // without the trend
  // A row for each candidate; they are of `space`. `trends` is 1 if a last column is to hold what other tasks
  // let expect of each (`trend`, a value for each candidate); else 0, and `trend` is not read.
  GpInputs of(std::span<const Candidate> candidates, size_t trends, std::span<const float> trend) const;

 private:
  void write(const Candidate& c, GpInputs& inputs, size_t row) const;

  const SearchSpace* space_;
  std::vector<size_t> first_;                  // first column of each template
  std::vector<std::vector<float>> most_even_;  // for each template's knobs: the largest log2_even_part(); 0:
                                               // no column
  size_t columns_ = 0;
};

}  // namespace tuner
