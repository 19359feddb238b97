// Model-guided search: the common part of xgb-genetic and xgb-annealing, which differ in how they walk over
// the model. XGBoost alone says what is promising: the mean of an ensemble of boosted models is the
// prediction, its spread is what is left to learn.
//
// A round:
//   1. refit the ensemble on everything observed; with similar tasks, on what their model leaves over
//   2. walk over thousands of candidates by their knob features, which are cheap
//   3. rank the most promising few again with program features, if the space gives them
//   4. choose a batch: by expected improvement as one model of the ensemble sees it, each proposal by the
//      next model, unlike each other, some next to the fastest measured configs, a few at random
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tuner/cost_model/cost_model.h"
#include "tuner/search/candidate_pool.h"

namespace tuner {

struct ModelGuidedOptions {
  size_t start = 16;  // random configs after the defaults, before the model is used; none with priors
  size_t batch = 8;   // proposals between two fits
  double random_share = 0.04;     // share of random proposals, to find what the model does not expect
  double local_share = 0.5;       // share of proposals that are children of the fastest measured configs
  size_t parents = 8;             // how many of the fastest configs, unlike each other, have children
  size_t niche_distance = 3;      // a parent differs from every faster one in at least this many knobs
  double crossover = 0.3;         // share of the children that are crossed; the others are one mutation away
                                  // from a parent
  double mutation = 0.4;          // share of the crossed children that are also mutated
  size_t children = 4;            // bred for each such proposal; the model picks one
  double uncertainty = 1;         // share of the ensemble's spread that counts as deviation
  double least_deviation = 0.02;  // no candidate is known better than this
  double likeness = 0.2;          // gain lost by a twin of one in the batch, as a share of the best gain
  double caution = 8;  // gain is weighted by (chance to work)^caution; 0: a failure counts as a very slow
                       // config instead
  bool divisibility = true;  // the model sees even and odd parts of the knobs
  bool in_turn = true;       // each proposal believes the next model of the ensemble; false: all their mean
  bool expected_improvement = true;    // false: mean and deviation are added up
  int models = 4;                      // ensemble members, each fitted to its own draw of rows and columns
  size_t rank_whole = 16384;           // spaces up to this size are ranked completely instead of walked over
  size_t ranked = 256;                 // of those, the most promising that a batch is chosen from
  size_t program_feature_budget = 16;  // candidates a round whose Programs are built for their features
  float program_column_sample = 0.3f;  // of the fits with program features, whose columns are many
  XgboostOptions xgboost{.rounds = 40, .max_depth = 5, .eta = 0.2f, .subsample = 0.8f, .column_sample = 0.8f};
};

// The model as a walk sees it: scores of candidates, each computed once, and starting points.
class ModelScores {
 public:
  using Score = std::function<std::vector<float>(std::span<const Candidate>)>;
  ModelScores(const CandidatePool& pool, std::vector<Candidate> starts, Score score)
      : pool_(pool), starts_(std::move(starts)), score_(std::move(score)) {}

  const CandidatePool& pool() const { return pool_; }
  // The fastest measured configs, fastest first.
  const std::vector<Candidate>& starts() const { return starts_; }
  std::vector<float> score(std::span<const Candidate> candidates);
  size_t scored() const { return scores_.size(); }
  // Returns at most n fresh candidates among all scored, best first.
  std::vector<std::pair<float, Candidate>> best(size_t n) const;

 private:
  const CandidatePool& pool_;
  std::vector<Candidate> starts_;
  Score score_;
  std::unordered_map<Candidate, float, CandidateHash> scores_;
};

// Walks over the model. Every candidate that it scores may be proposed.
using Walk = std::function<void(ModelScores& view, std::mt19937_64& rng)>;
void walk_genetic(ModelScores& view, std::mt19937_64& rng);    // xgb_genetic.cpp
void walk_annealing(ModelScores& view, std::mt19937_64& rng);  // xgb_annealing.cpp

std::unique_ptr<SearchStrategy> make_model_guided_search(std::string_view name, const SearchSpace& space,
                                                         uint64_t seed, Walk walk,
                                                         const ModelGuidedOptions& options = {});

}  // namespace tuner
