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
constexpr size_t kForecast = 16;     // new rows that two forecasts are compared on
constexpr double kMemory = 0.8;      // weight of earlier comparisons, at each new one
// Trust is full while forecasts with the prior tasks have at most kUseful times the squared error of those
// without, is less in kSteps steps up to kUseless times, and is given up when none was left kGivenUp times in
// a row.
constexpr double kUseful = 0.8, kUseless = 1.0, kSteps = 4;
constexpr int kGivenUp = 2;

// Options of the two models that forecast.
XgboostOptions forecaster(uint64_t seed) {
  return {.rounds = 40,
          .max_depth = 5,
          .eta = 0.2f,
          .subsample = 0.8f,
          .column_sample = 0.8f,
          .seed = seed * 31 + 1};
}

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
  double most = 0;
  for (const Task& task : tasks_) most = std::max(most, task.trust);
  overall_ = most;
  for (const Task& task : tasks_) {
    // In proportion to the most trusted: of several, a poor one hardly counts.
    const double share = most > 0 ? task.trust / most : 0;
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
  std::vector<float> scores = trusted(rows);
  for (float& s : scores) s *= static_cast<float>(kept_);
  return scores;
}

std::vector<float> PriorModel::trusted(const FeatureMatrix& rows) const {
  if (together_ == nullptr) return std::vector<float>(rows.rows(), 0);
  std::vector<float> scores = together_->predict(rows).value();
  for (float& s : scores) s = static_cast<float>(overall_) * std::clamp(s, 0.0f, 1.0f);
  return scores;
}

bool PriorModel::given_up() const { return useless_ >= kGivenUp; }

size_t PriorModel::random_owed(size_t start) const {
  return static_cast<size_t>(std::lround((1 - overall_) * static_cast<double>(start)));
}

bool PriorModel::learn(std::span<const Candidate> candidates, const FeatureMatrix& rows,
                       std::span<const float> scores) {
  if (given_up()) return false;
  FeatureMatrix fresh{rows.columns, {}};
  std::vector<float> found;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (forecast_from_.contains(candidates[i])) continue;
    const auto row = rows.values.begin() + static_cast<std::ptrdiff_t>(i * rows.columns);
    fresh.values.insert(fresh.values.end(), row, row + static_cast<std::ptrdiff_t>(rows.columns));
    found.push_back(scores[i]);
  }
  if (with_ != nullptr && found.size() < kForecast) return false;
  const double kept = kept_;
  if (with_ != nullptr) compare(fresh, found);
  const bool reweighed = reweigh(rows, scores);
  if (!given_up()) forecast(rows, scores);
  forecast_from_.insert(candidates.begin(), candidates.end());
  return reweighed || kept_ != kept || given_up();
}

bool PriorModel::reweigh(const FeatureMatrix& rows, std::span<const float> scores) {
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

void PriorModel::forecast(const FeatureMatrix& rows, std::span<const float> scores) {
  std::vector<float> rest = trusted(rows);
  for (size_t i = 0; i < rest.size(); ++i) rest[i] = scores[i] - rest[i];
  with_ = make_xgboost_model(forecaster(seed_));
  without_ = make_xgboost_model(forecaster(seed_));
  Status fitted = with_->fit(rows, rest);
  if (fitted.is_ok()) fitted = without_->fit(rows, scores);
  CHECK(fitted.is_ok()) << fitted.message();
}

void PriorModel::compare(const FeatureMatrix& fresh, std::span<const float> found) {
  const std::vector<float> prior = trusted(fresh), rest = with_->predict(fresh).value(),
                           without = without_->predict(fresh).value();
  error_with_ *= kMemory;
  error_without_ *= kMemory;
  for (size_t i = 0; i < found.size(); ++i) {
    error_with_ += std::pow(found[i] - prior[i] - rest[i], 2);
    error_without_ += std::pow(found[i] - without[i], 2);
  }
  const double left = (kUseless - error_with_ / error_without_) / (kUseless - kUseful);
  kept_ = std::round(kSteps * std::clamp(left, 0.0, 1.0)) / kSteps;
  useless_ = kept_ == 0 ? useless_ + 1 : 0;
}

std::string PriorModel::describe() const {
  std::ostringstream text;
  text << tasks_.size() << (tasks_.size() == 1 ? " similar task" : " similar tasks");
  if (given_up()) return text.str() + ", given up: what is measured here predicts better without";
  text << ", trusted " << std::fixed << std::setprecision(2) << overall_ * kept_;
  return text.str();
}

}  // namespace tuner
