// StoppingEstimate: is it worth to go on? The chance that the best time falls by 1 % or more within the next
// 100 trials, from how the search of one task has gone so far; and what such a gain would be worth.
//
// A logistic regression over a few facts of the results alone (no model of the strategy's needed, so every
// strategy is judged alike). Its coefficients are fitted and checked by `fit_stopping` (tests/bench), which
// plays searches on spaces whose every time is known and prints predicted against observed chances.
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
inline constexpr double kStoppingGain = 0.01;     // of the best time: less is not called a gain
inline constexpr int64_t kStoppingLeast = 64;     // results before there is an estimate

// What the estimate rests on. Few, because more of them told the spaces apart that were fitted on and misled
// on others.
struct StoppingFacts {
  static constexpr size_t kCount = 3;
  double crowd = 0;   // log(1 + measured configs within 3 % of the best)
  double recent = 0;  // log(best time of the last 32 results / best time), at most 1
  double lead = 0;    // sqrt(log(second best time / best time)), at most 1
  // Not fitted: the odds of a gain fall as 1 / (1 + results since the best was last 1 % above today's / 100),
  // as they do for draws in random order. A fitted weight followed the spaces where a stall means more than
  // that.
  double stall = 0;  // log(1 + those / 100)
  std::array<double, kCount> values() const { return {crowd, recent, lead}; }
};

struct StoppingCoefficients {
  // Logit of the chance, before the stall is taken off; the last one is the constant.
  std::array<double, StoppingFacts::kCount + 1> chance;
  std::array<double, StoppingFacts::kCount + 1> gain;  // log of the gain, when there is one
};
const StoppingCoefficients& fitted_stopping_coefficients();

class StoppingEstimate {
 public:
  // `space` outlives this.
  explicit StoppingEstimate(const SearchSpace& space) : space_(space) {}

  // In order of arrival. Failures and cut results count as trials that gained nothing.
  void observe(std::span<const Observation> results);

  // None before kStoppingLeast results, and while no result was right.
  std::optional<StoppingFacts> facts() const;
  // P(best time after the next 100 trials <= 0.99 x best time now). 0 when the space is used up. None as
  // facts().
  std::optional<double> chance() const;
  // Share of the best time that the next 100 trials are expected to save; 0..1. None as facts().
  std::optional<double> expected_gain() const;

  int64_t results() const { return static_cast<int64_t>(best_after_.size()); }
  double best_ns() const;  // infinity: none yet

 private:
  const SearchSpace& space_;
  std::vector<double> best_after_;  // best time after each result; infinity before the first right one
  std::vector<double> times_;       // of each result; infinity when failed or cut
  std::unordered_set<Candidate, CandidateHash> measured_;
  mutable std::optional<StoppingFacts> facts_;  // of all results so far, once asked for
};

}  // namespace tuner
