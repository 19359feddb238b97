// MeasuredResults: what a search with a model has measured so far, and how well the model had predicted it.
// Nothing here depends on the order in which results arrive. Not thread-safe.
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tuner/search/search_strategy.h"

namespace tuner {

class MeasuredResults {
 public:
  void add(const Observation& r);

  size_t size() const { return results_.size(); }
  bool contains(const Candidate& c) const { return results_.contains(c); }
  const Observation& at(const Candidate& c) const { return results_.at(c); }
  size_t ok() const { return ok_; }           // of these, the ones that worked to the end
  std::vector<Candidate> candidates() const;  // in the order of their configs
  // Returns those that worked to the end, fastest first; of equals, the lower config first.
  std::vector<Candidate> fastest() const;
  // Returns 1 - best time / time: 0 for the fastest measured, about 1 for the very slow, 1 for a failure.
  float value(const Candidate& c) const;
  // Returns best time / time, which models of throughput learn.
  float score(const Candidate& c) const { return 1 - value(c); }

 private:
  std::map<Candidate, Observation> results_;
  double best_ns_ = std::numeric_limits<double>::infinity();
  size_t ok_ = 0;
};

// Compares what was predicted of the chosen candidates with what they turned out to be.
class ModelCheck {
 public:
  // `c` was chosen; the model expects this score of it.
  void predicted(const Candidate& c, float score) { predicted_[c] = score; }
  void measured(const Candidate& c) {
    if (predicted_.contains(c)) judged_.push_back(c);
  }
  // Returns a line for people, once enough candidates are measured that were predicted.
  std::optional<std::string> judgement(const MeasuredResults& results);

 private:
  std::map<Candidate, float> predicted_;  // of open proposals that the model chose
  std::vector<Candidate> judged_;         // of those, the ones measured since the last judgement
};

}  // namespace tuner
