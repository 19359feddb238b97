// The only file that knows XGBoost's C API (1.7). Traps met: two OpenMP threads on a busy two-core host turn
// a 20 ms fit into seconds, so every handle gets nthread=1; the in-place prediction of 1.7 wants "cache_id"
// in its configuration and takes a bare NaN there, which is not JSON by the book.
#include <xgboost/c_api.h>

#include <cmath>
#include <cstdio>
#include <limits>

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

  Status fit(const FeatureMatrix& features, std::span<const float> scores,
             std::span<const float> weights) override {
    if (features.columns == 0 || features.values.size() % features.columns != 0)
      return invalid_argument("cost model: ", features.values.size(), " feature values do not make rows of ",
                              features.columns, " columns");
    if (scores.empty() || scores.size() != features.rows())
      return invalid_argument("cost model: found ", scores.size(), " scores for ", features.rows(),
                              " rows; expected one score a row and at least one row");
    if (!weights.empty() && weights.size() != scores.size())
      return invalid_argument("cost model: found ", weights.size(), " weights for ", scores.size(),
                              " rows; expected one weight a row, or none");
    for (float score : scores)
      if (!std::isfinite(score)) return invalid_argument("cost model: a score is not finite");

    void* handle = nullptr;
    RETURN_IF_ERROR(
        checked(XGDMatrixCreateFromMat_omp(features.values.data(), features.rows(), features.columns,
                                           std::numeric_limits<float>::quiet_NaN(), &handle, 1),
                "making the training matrix"));
    const Matrix rows(handle);
    RETURN_IF_ERROR(checked(XGDMatrixSetFloatInfo(rows.get(), "label", scores.data(), scores.size()),
                            "setting the labels"));
    if (!weights.empty())
      RETURN_IF_ERROR(checked(XGDMatrixSetFloatInfo(rows.get(), "weight", weights.data(), weights.size()),
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
    return std::vector<float>(scores, scores + features.rows());
  }

  std::string digest() const override { return digest_; }

 private:
  Status set_parameters(BoosterHandle booster) const {
    const std::pair<const char*, std::string> parameters[] = {
        {"nthread", "1"},
        {"verbosity", "0"},
        {"objective", "reg:squarederror"},
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
};

}  // namespace

std::unique_ptr<CostModel> make_xgboost_model(const XgboostOptions& options) {
  return std::make_unique<XgboostModel>(options);
}

}  // namespace tuner
