// The only file that knows XGBoost's C API (1.7). Traps met: two OpenMP threads on a busy two-core host turn
// a 20 ms fit into seconds, so every handle gets nthread=1; the in-place prediction of 1.7 wants "cache_id"
// in its configuration and takes a bare NaN there, which is not JSON by the book.
#include <xgboost/c_api.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>

#include "tuner/cost_model/cost_model.h"

namespace tuner {
namespace {

Status checked(int code, const char* what) {
  if (code == 0) return Status::ok();
  return failed("XGBoost: ", what, ": ", XGBGetLastError());
}

struct FreeBooster {
  void operator()(void* handle) const { XGBoosterFree(handle); }
};
struct FreeMatrix {
  void operator()(void* handle) const { XGDMatrixFree(handle); }
};
using Booster = std::unique_ptr<void, FreeBooster>;
using Matrix = std::unique_ptr<void, FreeMatrix>;

std::string fnv1a_hex(const char* bytes, size_t size) {
  uint64_t hash = 14695981039346656037ull;
  for (size_t i = 0; i < size; ++i) hash = (hash ^ static_cast<unsigned char>(bytes[i])) * 1099511628211ull;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

class XgboostModel final : public CostModel {
 public:
  explicit XgboostModel(const XgboostOptions& options) : options_(options) {}

  Status fit(const FeatureMatrix& features, std::span<const float> scores, std::span<const float> weights,
             std::span<const uint32_t> groups) override {
    if (features.columns == 0 || features.values.size() % features.columns != 0)
      return invalid_argument("cost model: ", features.values.size(), " feature values do not make rows of ",
                              features.columns, " columns");
    if (scores.empty() || scores.size() != features.rows())
      return invalid_argument("cost model: found ", scores.size(), " scores for ", features.rows(),
                              " rows; expected one score a row and at least one row");
    if (!weights.empty() && weights.size() != scores.size())
      return invalid_argument("cost model: found ", weights.size(), " weights for ", scores.size(),
                              " rows; expected one weight a row, or none");
    RETURN_IF_ERROR(check_scores(scores));
    const std::vector<uint32_t> parts = groups.empty()
                                            ? std::vector<uint32_t>{static_cast<uint32_t>(scores.size())}
                                            : std::vector<uint32_t>(groups.begin(), groups.end());
    if (const size_t rows = std::accumulate(parts.begin(), parts.end(), size_t{0}); rows != scores.size())
      return invalid_argument("cost model: the groups have ", rows, " rows, expected ", scores.size());

    void* handle = nullptr;
    RETURN_IF_ERROR(
        checked(XGDMatrixCreateFromMat_omp(features.values.data(), features.rows(), features.columns,
                                           std::numeric_limits<float>::quiet_NaN(), &handle, 1),
                "making the training matrix"));
    const Matrix rows(handle);
    const std::vector<float> labels = labels_of(scores), label_weights = weights_of(weights, parts);
    RETURN_IF_ERROR(checked(XGDMatrixSetFloatInfo(rows.get(), "label", labels.data(), labels.size()),
                            "setting the labels"));
    if (options_.loss == Loss::kPairwise)
      RETURN_IF_ERROR(checked(XGDMatrixSetUIntInfo(rows.get(), "group", parts.data(), parts.size()),
                              "setting the groups"));
    if (!label_weights.empty())
      RETURN_IF_ERROR(
          checked(XGDMatrixSetFloatInfo(rows.get(), "weight", label_weights.data(), label_weights.size()),
                  "setting the weights"));
    const DMatrixHandle cached[] = {rows.get()};
    RETURN_IF_ERROR(checked(XGBoosterCreate(cached, 1, &handle), "making a booster"));
    Booster booster(handle);
    RETURN_IF_ERROR(set_parameters(booster.get()));
    for (int round = 0; round < options_.rounds; ++round)
      RETURN_IF_ERROR(checked(XGBoosterUpdateOneIter(booster.get(), round, rows.get()), "fitting"));

    bst_ulong size = 0;
    const char* bytes = nullptr;
    RETURN_IF_ERROR(checked(XGBoosterSaveModelToBuffer(booster.get(), R"({"format":"ubj"})", &size, &bytes),
                            "serialising the model"));
    digest_ = fnv1a_hex(bytes, size);
    columns_ = features.columns;
    booster_ = std::move(booster);
    slope_ = 1;
    offset_ = 0;
    if (options_.loss == Loss::kPairwise) {
      ASSIGN_OR_RETURN(const std::vector<float> margins, predict(features));
      lay_on_scores(margins, scores);
    }
    return Status::ok();
  }

  bool fitted() const override { return booster_ != nullptr; }

  Result<std::vector<float>> predict(const FeatureMatrix& features) const override {
    if (!fitted()) return invalid_argument("cost model: asked to predict before the first fit");
    if (features.columns != columns_ || features.values.size() % columns_ != 0)
      return invalid_argument("cost model: found ", features.columns, " feature columns, expected ", columns_,
                              " as in the fit");
    if (features.rows() == 0) return std::vector<float>{};
    const std::string values =
        str(R"({"data":[)", reinterpret_cast<uintptr_t>(features.values.data()), R"(,true],"shape":[)",
            features.rows(), ",", columns_, R"(],"typestr":"<f4","version":3})");
    const char* config =
        R"({"type":0,"training":false,"iteration_begin":0,"iteration_end":0,"strict_shape":false,"cache_id":0,"missing":NaN})";
    const bst_ulong* shape = nullptr;
    bst_ulong dimensions = 0;
    const float* scores = nullptr;
    RETURN_IF_ERROR(checked(XGBoosterPredictFromDense(booster_.get(), values.c_str(), config, nullptr, &shape,
                                                      &dimensions, &scores),
                            "predicting"));
    CHECK(dimensions >= 1 && shape[0] == features.rows()) << "XGBoost answered another number of rows";
    std::vector<float> predicted(scores, scores + features.rows());
    for (float& p : predicted) p = options_.loss == Loss::kSquaredLog ? std::exp(p) : offset_ + slope_ * p;
    return predicted;
  }

  std::string digest() const override { return digest_; }

 private:
  Status check_scores(std::span<const float> scores) const {
    for (const float score : scores) {
      if (!std::isfinite(score)) return invalid_argument("cost model: a score is not finite");
      if (options_.loss == Loss::kSquaredLog && score < 0)
        return invalid_argument("cost model: found score ", score, ", expected 0 or more: its log is fitted");
      if (options_.loss == Loss::kLogistic && (score < 0 || score > 1))
        return invalid_argument("cost model: found score ", score, ", expected a probability");
    }
    return Status::ok();
  }

  std::vector<float> labels_of(std::span<const float> scores) const {
    std::vector<float> labels(scores.begin(), scores.end());
    if (options_.loss == Loss::kSquaredLog)
      for (float& label : labels) label = std::log(std::max(label, kLeastLoggedScore));
    return labels;
  }

  // As XGBoost wants them: one a row, or one a group where rows are compared.
  std::vector<float> weights_of(std::span<const float> weights, const std::vector<uint32_t>& groups) const {
    if (weights.empty() || options_.loss != Loss::kPairwise) return {weights.begin(), weights.end()};
    std::vector<float> means;
    for (size_t begin = 0, g = 0; g < groups.size(); begin += groups[g++]) {
      const std::span<const float> part = weights.subspan(begin, groups[g]);
      means.push_back(std::accumulate(part.begin(), part.end(), 0.0f) /
                      static_cast<float>(std::max<size_t>(1, part.size())));
    }
    return means;
  }

  // The line from margins, which have no scale, to scores: least squares over the rows; never falling.
  void lay_on_scores(std::span<const float> margins, std::span<const float> scores) {
    const double n = static_cast<double>(scores.size());
    const double x = std::accumulate(margins.begin(), margins.end(), 0.0) / n,
                 y = std::accumulate(scores.begin(), scores.end(), 0.0) / n;
    double xx = 0, xy = 0;
    for (size_t i = 0; i < scores.size(); ++i) {
      xx += (margins[i] - x) * (margins[i] - x);
      xy += (margins[i] - x) * (scores[i] - y);
    }
    slope_ = xx > 0 ? static_cast<float>(std::max(0.0, xy / xx)) : 0;
    offset_ = static_cast<float>(y - slope_ * x);
  }

  const char* objective() const {
    switch (options_.loss) {
      case Loss::kPairwise:
        return "rank:pairwise";
      case Loss::kLogistic:
        return "binary:logistic";
      default:
        return "reg:squarederror";
    }
  }

  Status set_parameters(BoosterHandle booster) const {
    const std::pair<const char*, std::string> parameters[] = {
        {"nthread", "1"},
        {"verbosity", "0"},
        {"objective", objective()},
        {"tree_method", "exact"},  // at 64-1000 rows as quick as hist, and no bins to round the features to
        {"max_depth", str(options_.max_depth)},
        {"eta", str(options_.eta)},
        {"subsample", str(options_.subsample)},
        {"colsample_bytree", str(options_.column_sample)},
        {"min_child_weight", "1"},
        {"lambda", "1"},
        {"seed", str(options_.seed % 2147483647)},
    };
    for (const auto& [name, value] : parameters)
      RETURN_IF_ERROR(checked(XGBoosterSetParam(booster, name, value.c_str()), name));
    return Status::ok();
  }

  XgboostOptions options_;
  Booster booster_;
  size_t columns_ = 0;
  std::string digest_;
  float slope_ = 1, offset_ = 0;  // from the booster's answer to a score
};

}  // namespace

std::unique_ptr<CostModel> make_xgboost_model(const XgboostOptions& options) {
  return std::make_unique<XgboostModel>(options);
}

}  // namespace tuner
