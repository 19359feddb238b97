// bayesian: models of the measured configs choose what to measure next, by expected improvement.
//
// Two kinds of models are averaged. A Gaussian process over the knobs learns from few rows and knows where it
// does not know. Boosted trees find cliffs and products of knobs. If there are similar tasks, both predict
// what the model of those (prior_model.h) leaves over.
#pragma once

#include <memory>

#include "tuner/cost_model/cost_model.h"
#include "tuner/search/breeding.h"
#include "tuner/search/search_strategy.h"

namespace tuner {

struct BayesianOptions {
  size_t start = 16;  // random configs after the defaults, before the models are used; none with priors
  double random_share = 0.04;  // share of random proposals, to find what the models do not expect
  double local_share = 0.5;    // share of proposals that are children of the fastest measured configs
  size_t parents = 8;          // how many of the fastest configs, unlike each other, have children
  size_t niche_distance = 3;   // a parent differs from every faster one in at least this many knobs
  double crossover = 0.3;      // share of the children that are crossed; the others are one mutation away
                               // from a parent
  double mutation = 0.4;       // share of the crossed children that are also mutated
  size_t children = 4;         // bred for each local proposal; the models pick one
  double tree_share = 0.6;     // weight of the trees in the mean
  double caution = 8;      // gain is weighted by (chance to work)^caution; 0: a failure counts as a very slow
                           // config instead
  int trees = 2;           // boosted models, each fitted to its own draw of rows and columns
  size_t most_rows = 384;  // rows that the Gaussian process sees: the fastest, and an even choice of the
                           // others
  size_t tune_rows = 96;   // rows that its length scales are fitted to
  int tune_evaluations = 20;  // per refit
  size_t rank_whole = 16384;  // spaces up to this size are ranked completely; in larger ones candidates are
                              // drawn
  Drawing drawing;            // how many are drawn, and where
  size_t pool = 700;          // candidates whose expected improvement is computed
  XgboostOptions xgboost{.rounds = 40, .max_depth = 5, .eta = 0.2f, .subsample = 0.8f, .column_sample = 0.8f};
};

std::unique_ptr<SearchStrategy> make_bayesian_search(const SearchSpace& space, uint64_t seed,
                                                     const BayesianOptions& options);

}  // namespace tuner
