// bayesian: models of what was measured choose what to measure next, by expected improvement.
//
// Two kinds of models are averaged: a Gaussian process over the knobs, which learns from few rows and knows
// where it does not know, and boosted trees, which find cliffs and products of knobs. Both predict what is
// left over by the model of similar tasks (prior_model.h) when there are any.
#pragma once

#include <memory>

#include "tuner/cost_model/cost_model.h"
#include "tuner/search/search_strategy.h"

namespace tuner {

struct BayesianOptions {
  size_t start = 16;  // random configs besides the defaults before the models are asked; none with priors
  double random_share = 0.04;  // of the proposals, for what the models do not dream of
  double local_share = 0.5;    // of the proposals: children of the fastest measured
  size_t parents = 8;          // the fastest measured that are unlike each other, which have children
  size_t niche_distance = 3;   // knobs in which a parent differs from every faster one
  double crossover = 0.3;      // of the children; the others are one mutation away from one parent
  double mutation = 0.4;       // of the crossed children
  size_t children = 4;         // bred for each local proposal; the models pick one
  double tree_share = 0.6;     // of the trees in the mean
  double caution = 8;  // gain counts by (chance to work)^caution; 0: a failure is a very slow config instead
  int trees = 2;       // boosted models, each on its own draw of rows and columns
  size_t most_rows = 384;     // rows the Gaussian process sees: the fastest, and an even choice of the others
  size_t tune_rows = 96;      // rows its length scales are chosen by
  int tune_evaluations = 20;  // a refit
  size_t rank_whole = 16384;  // spaces up to this size are ranked whole; of others, candidates are drawn
  size_t pool = 700;          // candidates whose expected improvement is computed
  XgboostOptions xgboost{.rounds = 40, .max_depth = 5, .eta = 0.2f, .subsample = 0.8f, .column_sample = 0.8f};
};

std::unique_ptr<SearchStrategy> make_bayesian_search(const SearchSpace& space, uint64_t seed,
                                                     const BayesianOptions& options);

}  // namespace tuner
