// Model-guided search: what xgb-genetic and xgb-annealing share. They differ in how they walk over the model.
//
// A round: refit the model on everything observed -> walk over thousands of candidates by their knob
// features, which are cheap -> re-rank the most promising few hundred with the program's features when the
// space gives them -> choose a batch: by predicted score plus a share of the model's own uncertainty, unlike
// each other, some next to the fastest configs measured, a few at random.
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
  size_t batch = 16;           // proposals between two fits; the first batch is the defaults and random ones
  double random_share = 0.06;  // of the proposals, for what the model does not dream of
  double local_share = 0.5;    // of the proposals: children of the fastest measured
  size_t parents = 4;          // the fastest measured, which have children
  double crossover = 0.3;      // of the children; the others are one mutation away from one parent
  double mutation = 0.4;       // of the crossed children
  size_t children = 4;         // bred for each such proposal; the model picks one
  double uncertainty = 0.5;    // score = mean + uncertainty * deviation over the ensemble
  double likeness = 0.05;      // score lost by a candidate equal in all features to one already in the batch
  int models = 3;              // in the ensemble, each on its own draw of rows and columns
  size_t rank_whole = 4096;    // spaces up to this size are ranked whole instead of walked over
  size_t program_feature_budget = 256;  // candidates a round whose Programs are built for their features
  XgboostOptions xgboost{
      .rounds = 60, .max_depth = 5, .eta = 0.15f, .subsample = 0.8f, .column_sample = 0.8f};
};

// The model as a walk sees it: scores of candidates, each computed once, and where to start.
class ModelView {
 public:
  using Score = std::function<std::vector<float>(std::span<const Candidate>)>;
  ModelView(const CandidatePool& pool, std::vector<Candidate> starts, Score score)
      : pool_(pool), starts_(std::move(starts)), score_(std::move(score)) {}

  const CandidatePool& pool() const { return pool_; }
  const std::vector<Candidate>& starts() const { return starts_; }  // the fastest measured, fastest first
  std::vector<float> score(std::span<const Candidate> candidates);
  size_t scored() const { return scores_.size(); }
  // Fresh candidates among all scored, best first, at most n.
  std::vector<std::pair<float, Candidate>> best(size_t n) const;

 private:
  const CandidatePool& pool_;
  std::vector<Candidate> starts_;
  Score score_;
  std::unordered_map<Candidate, float, CandidateHash> scores_;
};

// Walks over the model; what it scores on the way is what can be proposed.
using Walk = std::function<void(ModelView& view, std::mt19937_64& rng)>;
void walk_genetic(ModelView& view, std::mt19937_64& rng);    // xgb_genetic.cpp
void walk_annealing(ModelView& view, std::mt19937_64& rng);  // xgb_annealing.cpp

std::unique_ptr<SearchStrategy> make_model_guided_search(std::string_view name, const SearchSpace& space,
                                                         uint64_t seed, Walk walk,
                                                         const ModelGuidedOptions& options = {});

}  // namespace tuner
