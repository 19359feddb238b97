#include "tuner/search/prior_model.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <limits>
#include <sstream>

namespace tuner {
namespace {

constexpr size_t kLeastRows = 8;     // of a prior task that is worth a model
constexpr double kFirstTrust = 0.8;  // in a task of weight 1, before anything is measured here
constexpr double kTrustRows = 8;     // measured rows that first trust is worth
constexpr double kWorthRefit = 0.1;  // change of a trust that is worth a new common model

}  // namespace

XgboostOptions PriorModel::options(uint64_t seed) {
  return {.rounds = 60, .max_depth = 6, .eta = 0.15f, .subsample = 0.8f, .column_sample = 0.8f, .seed = seed};
}

PriorModel::PriorModel(const SearchSpace& space, CandidateFeatures& features, uint64_t seed) : seed_(seed) {
  for (const PriorTask& prior : space.priors) {
    Task task{.rows = {},
              .scores = {},
              .weight = prior.weight,
              .trust = kFirstTrust * prior.weight,
              .model = nullptr};
    double best_ns = std::numeric_limits<double>::infinity();
    for (const PriorTask::Row& row : prior.rows)
      if (row.ok) best_ns = std::min(best_ns, row.time_ns);
    if (!std::isfinite(best_ns)) continue;
    for (const PriorTask::Row& row : prior.rows) {
      if (!features.append_prior(row.template_name, row.config, task.rows)) continue;
      task.scores.push_back(row.ok ? static_cast<float>(best_ns / row.time_ns) : 0.0f);
    }
    if (task.scores.size() < kLeastRows) continue;
    task.model = make_xgboost_model(options(seed * 17 + tasks_.size() + 1));
    const Status fitted = task.model->fit(task.rows, task.scores);
    CHECK(fitted.is_ok()) << fitted.message();
    tasks_.push_back(std::move(task));
  }
  if (!tasks_.empty()) fit_together();
}

void PriorModel::fit_together() {
  FeatureMatrix rows;
  std::vector<float> scores, weights;
  double sum = 0, most = 0;
  for (const Task& task : tasks_) most = std::max(most, task.trust);
  overall_ = most;
  for (const Task& task : tasks_) {
    // In proportion to the most trusted: of several, a poor one hardly counts.
    const double share = most > 0 ? task.trust / most : 0;
    sum += share;
    if (share < 0.05) continue;
    rows.columns = task.rows.columns;
    rows.values.insert(rows.values.end(), task.rows.values.begin(), task.rows.values.end());
    scores.insert(scores.end(), task.scores.begin(), task.scores.end());
    weights.insert(weights.end(), task.scores.size(), static_cast<float>(share * share));
  }
  if (scores.empty()) {
    together_.reset();
    overall_ = 0;
    return;
  }
  together_ = make_xgboost_model(options(seed_ * 17));
  const Status fitted = together_->fit(rows, scores, weights);
  CHECK(fitted.is_ok()) << fitted.message();
}

std::vector<float> PriorModel::predict(const FeatureMatrix& rows) const {
  if (together_ == nullptr) return std::vector<float>(rows.rows(), 0);
  std::vector<float> scores = together_->predict(rows).value();
  for (float& s : scores) s = static_cast<float>(overall_) * std::clamp(s, 0.0f, 1.0f);
  return scores;
}

bool PriorModel::learn(const FeatureMatrix& rows, std::span<const float> scores) {
  bool changed = false;
  for (Task& task : tasks_) {
    const std::vector<float> predicted = task.model->predict(rows).value();
    const double n = static_cast<double>(scores.size()),
                 found = std::max(0.0, rank_correlation(predicted, scores));
    // What guided the choice looks worse among the chosen than it is, so half a correlation is full trust.
    const double trust =
        (kTrustRows * kFirstTrust * task.weight + n * std::min(1.0, 2 * found)) / (kTrustRows + n);
    if (std::abs(trust - task.trust) < kWorthRefit) continue;
    task.trust = trust;
    changed = true;
  }
  if (changed) fit_together();
  return changed;
}

std::string PriorModel::describe() const {
  std::ostringstream text;
  text << tasks_.size() << (tasks_.size() == 1 ? " similar task" : " similar tasks") << ", trusted "
       << std::fixed << std::setprecision(2) << overall_;
  return text.str();
}

}  // namespace tuner
