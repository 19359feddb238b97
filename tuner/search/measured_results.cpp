#include "tuner/search/measured_results.h"

#include <algorithm>
#include <cmath>

#include "tuner/cost_model/cost_model.h"

namespace tuner {
namespace {

constexpr size_t kJudged = 16;  // results a status line is about

}  // namespace

void MeasuredResults::add(const Observation& r) {
  results_.insert_or_assign(r.candidate, r);
  if (!r.ok || r.cut) return;
  ++ok_;
  best_ns_ = std::min(best_ns_, r.time_ns);
}

std::vector<Candidate> MeasuredResults::candidates() const {
  std::vector<Candidate> all;
  all.reserve(results_.size());
  for (const auto& [c, r] : results_) all.push_back(c);
  return all;
}

std::vector<Candidate> MeasuredResults::fastest() const {
  std::vector<std::pair<double, Candidate>> order;
  for (const auto& [c, r] : results_)
    if (r.ok && !r.cut) order.emplace_back(r.time_ns, c);
  std::sort(order.begin(), order.end());
  std::vector<Candidate> sorted;
  sorted.reserve(order.size());
  for (const auto& [time, c] : order) sorted.push_back(c);
  return sorted;
}

float MeasuredResults::value(const Candidate& c) const {
  const Observation& r = results_.at(c);
  return r.ok && std::isfinite(best_ns_) ? static_cast<float>(1 - best_ns_ / r.time_ns) : 1.0f;
}

std::optional<std::string> ModelCheck::judgement(const MeasuredResults& results) {
  if (judged_.size() < kJudged) return std::nullopt;
  std::vector<float> expected, found;
  for (const Candidate& c : judged_) {
    expected.push_back(predicted_.at(c));
    found.push_back(results.score(c));
    predicted_.erase(c);
  }
  const size_t trials = judged_.size();
  judged_.clear();
  return judged_text(rank_correlation(expected, found), trials);
}

}  // namespace tuner
