#include "tuner/search/tree_ensemble.h"

#include <algorithm>
#include <cmath>

namespace tuner {

TreeEnsemble::TreeEnsemble(const XgboostOptions& options, int models, uint64_t seed) {
  CHECK(models >= 1) << "an ensemble of " << models << " models";
  for (int i = 0; i < models; ++i) {
    XgboostOptions each = options;
    each.seed = seed * 31 + static_cast<uint64_t>(i) + 1;
    models_.push_back(make_xgboost_model(each));
  }
}

Status TreeEnsemble::fit(const FeatureMatrix& features, std::span<const float> scores) {
  for (auto& model : models_) RETURN_IF_ERROR(model->fit(features, scores));
  return Status::ok();
}

TreeEnsemble::Prediction TreeEnsemble::predict(const FeatureMatrix& features) const {
  Prediction p{std::vector<float>(features.rows(), 0), std::vector<float>(features.rows(), 0), {}};
  for (const auto& model : models_) {
    Result<std::vector<float>> scores = model->predict(features);
    CHECK(scores.is_ok()) << scores.message();
    for (size_t i = 0; i < scores->size(); ++i) {
      p.mean[i] += (*scores)[i];
      p.deviation[i] += (*scores)[i] * (*scores)[i];
    }
    p.of_model.push_back(*std::move(scores));
  }
  const float n = static_cast<float>(models_.size());
  for (size_t i = 0; i < p.mean.size(); ++i) {
    p.mean[i] /= n;
    p.deviation[i] = std::sqrt(std::max(0.0f, p.deviation[i] / n - p.mean[i] * p.mean[i]));
  }
  return p;
}

std::string TreeEnsemble::digest() const {
  std::string all;
  for (const auto& model : models_) {
    if (!all.empty()) all += '-';
    all += model->digest();
  }
  return fitted() ? all : std::string();
}

}  // namespace tuner
