// StoppingEstimate: is it worth going on? It gives the chance that the best time falls by 1 % or more within
// the next 100 trials, and what such a gain would be worth, from how the search of one task has gone so far.
//
// It is a logistic regression over a few facts of the results only. It needs no model of the strategy, so
// every strategy is judged alike. `fit_stopping` (tests/bench) fits and checks its coefficients: it plays
// searches on spaces in which every time is known, and prints predicted against observed chances.
// Deterministic: the same results in the same order give the same numbers. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

#include "tuner/search/candidate_pool.h"
#include "tuner/search/search_strategy.h"

namespace tuner {

inline constexpr int64_t kStoppingHorizon = 100;  // trials ahead
inline constexpr double kStoppingGain = 0.01;     // smaller relative savings of the best time are not called
                                                  // a gain
inline constexpr int64_t kStoppingLeast = 64;     // results needed before there is an estimate

// The facts that the estimate rests on. There are few on purpose: more of them told the fitted spaces apart
// and misled on others.
struct StoppingFacts {
  static constexpr size_t kCount = 3;
  double crowd = 0;   // log(1 + measured configs within 3 % of the best)
  double recent = 0;  // log(best time of the last 32 results / best time), at most 1
  double lead = 0;    // sqrt(log(second best time / best time)), at most 1
  // Not fitted: the odds of a gain fall as 1 / (1 + n / 100), as they do for draws in random order. n is the
  // number of results since the best time was last more than 1 % above today's. A fitted weight followed the
  // spaces in which a stall means more than that.
  double stall = 0;  // log(1 + n / 100)
  std::array<double, kCount> values() const { return {crowd, recent, lead}; }
};

struct StoppingCoefficients {
  // Logit of the chance before the stall is subtracted; the last value is the constant.
  std::array<double, StoppingFacts::kCount + 1> chance;
  std::array<double, StoppingFacts::kCount + 1> gain;  // log of the gain, if there is one
};
const StoppingCoefficients& fitted_stopping_coefficients();

class StoppingEstimate {
 public:
  // `space` must outlive this.
  explicit StoppingEstimate(const SearchSpace& space) : space_(space) {}

  // Takes results in order of arrival. Failures and cut results count as trials that gained nothing.
  void observe(std::span<const Observation> results);

  // Empty before kStoppingLeast results, and while no result was correct.
  std::optional<StoppingFacts> facts() const;
  // P(best time after the next 100 trials <= 0.99 x best time now). 0 if the space is used up. Empty like
  // facts().
  std::optional<double> chance() const;
  // Share of the best time that the next 100 trials are expected to save; 0..1. Empty like facts().
  std::optional<double> expected_gain() const;

  int64_t results() const { return static_cast<int64_t>(best_after_.size()); }
  double best_ns() const;  // infinity: none yet

 private:
  const SearchSpace& space_;
  std::vector<double> best_after_;  // best time after each result; infinity before the first right one
  std::vector<double> times_;       // of each result; infinity if it failed or was cut
  std::unordered_set<Candidate, CandidateHash> measured_;
  mutable std::optional<StoppingFacts> facts_;  // of all results so far; computed on demand
};

}  // namespace tuner
