#include "db/learning/predictor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "compiler_core/base/int_math.h"
#include "compiler_core/base/statistics.h"
#include "templates/space/knob.h"

namespace tuner {

namespace {

constexpr int kModels = 4;
constexpr double kWorst = 1.0 / 16;         // slower is not told apart; what failed counts as this
constexpr double kSpreadFloor = 0.05;       // log2
constexpr double kCaution = 1.0;            // spreads a candidate is marked down by
constexpr int kFolds = 3;                   // of shapes, for calibration
constexpr int kPools = 24, kPoolSize = 10;  // choices played for each shape not seen

float log2_of(int64_t v) { return std::log2(static_cast<float>(std::max<int64_t>(v, 1))); }

int twos_in(int64_t v) {
  int n = 0;
  for (; v > 0 && v % 2 == 0 && n < 6; v /= 2) ++n;
  return n;
}

std::vector<float> row_of(const std::vector<std::string>& columns, const CandidateFacts& facts) {
  std::vector<float> row(columns.size(), std::numeric_limits<float>::quiet_NaN());
  for (size_t c = 0; c < columns.size(); ++c)
    if (const auto found = facts.find(columns[c]); found != facts.end()) row[c] = found->second;
  return row;
}

float wanted_of(const Lesson& row) {
  return static_cast<float>(std::log2(std::clamp(row.fraction, kWorst, 1.0)));
}

// Models, each without some shapes.
std::vector<BoostedTrees> fit_models(const std::vector<std::string>& columns,
                                     const std::vector<const Lesson*>& rows, int shapes, uint64_t seed) {
  std::vector<BoostedTrees> models;
  for (int m = 0; m < kModels; ++m) {
    std::mt19937_64 random(seed * 1000 + static_cast<uint64_t>(m));
    std::vector<bool> seen(static_cast<size_t>(shapes));
    for (auto&& s : seen) s = random() % 5 != 0;
    TrainingRows data{.columns = static_cast<int>(columns.size())};
    for (const Lesson* row : rows) {
      if (!seen[static_cast<size_t>(row->shape)]) continue;
      const std::vector<float> values = row_of(columns, row->facts);
      data.values.insert(data.values.end(), values.begin(), values.end());
      data.wanted.push_back(wanted_of(*row));
      // What is near the top has to be told apart.
      data.weights.push_back(static_cast<float>(0.2 + row->fraction));
    }
    if (data.rows() == 0) continue;
    models.push_back(BoostedTrees::fit(data, {.seed = seed + static_cast<uint64_t>(m)}));
  }
  return models;
}

}  // namespace

CandidateFacts candidate_facts(const TaskShape& shape, std::string_view template_name,
                               const ConfigSpace& space, const Config& config) {
  CandidateFacts facts;
  float elements = 0;
  for (const auto& [name, extent] : shape.dimensions) {
    facts[str("log2 ", name)] = log2_of(extent);
    facts[str("twos ", name)] = static_cast<float>(twos_in(extent));
    elements += log2_of(extent);
  }
  facts["log2 all"] = elements;
  facts[str("template ", template_name)] = 1;
  // Its level is the one that is measured of nearly every shape.
  facts["default"] = config == space.at(space.default_index()) ? 1 : 0;
  const std::vector<float> values = space.features(config);
  const std::vector<std::string> names = space.feature_names();
  for (size_t i = 0; i < values.size(); ++i)
    if (!std::isnan(values[i])) facts[str("knob ", names[i])] = values[i];
  for (const KnobInfo& knob : space.knobs()) {
    if (knob.kind != KnobKind::kSplit || !space.is_active(config, knob.name)) continue;
    const int64_t inner = config.at(knob.name), outer = ceil_div(knob.extent, inner);
    facts[str("blocks ", knob.name)] = log2_of(outer);
    facts[str("fill ", knob.name)] =
        static_cast<float>(knob.extent) / static_cast<float>(inner * std::max<int64_t>(outer, 1));
  }
  return facts;
}

Result<VariantPredictor> VariantPredictor::learn(const std::vector<Lesson>& rows, bool calibrate) {
  std::set<int> shapes;
  std::set<std::string> columns;
  for (const Lesson& row : rows) {
    shapes.insert(row.shape);
    for (const auto& [name, value] : row.facts) columns.insert(name);
  }
  if (static_cast<int>(shapes.size()) < kLeastShapes)
    return not_found("records of ", shapes.size(), " shapes, and it takes ", kLeastShapes,
                     " to learn how shapes differ");
  VariantPredictor out;
  out.columns_.assign(columns.begin(), columns.end());
  out.shapes_ = static_cast<int>(shapes.size());
  out.rows_ = rows.size();
  const int numbers = *shapes.rbegin() + 1;

  // Calibration: models that have not seen a shape choose among some of its rows. What they choose is known,
  // so the error includes that of having chosen what looked best.
  std::vector<double> errors;
  std::vector<int> order(shapes.begin(), shapes.end());
  std::mt19937_64 random(7);
  std::shuffle(order.begin(), order.end(), random);
  const int folds = calibrate ? std::min<int>(kFolds, static_cast<int>(order.size())) : 0;
  for (int fold = 0; fold < folds; ++fold) {
    std::set<int> hidden;
    for (size_t i = static_cast<size_t>(fold); i < order.size(); i += static_cast<size_t>(folds))
      hidden.insert(order[i]);
    std::vector<const Lesson*> taught;
    std::map<int, std::vector<const Lesson*>> unseen;
    for (const Lesson& row : rows) {
      if (hidden.contains(row.shape))
        unseen[row.shape].push_back(&row);
      else
        taught.push_back(&row);
    }
    VariantPredictor partial;
    partial.columns_ = out.columns_;
    partial.models_ = fit_models(out.columns_, taught, numbers, static_cast<uint64_t>(fold) + 100);
    if (partial.models_.empty()) continue;
    for (const auto& [shape, own] : unseen) {
      std::vector<Raw> raws;
      for (const Lesson* row : own) raws.push_back(partial.raw(row->facts));
      for (int pool = 0; pool < kPools; ++pool) {
        size_t best = random() % own.size();
        for (int i = 1; i < kPoolSize; ++i) {
          const size_t other = random() % own.size();
          if (raws[other].mean - kCaution * raws[other].spread >
              raws[best].mean - kCaution * raws[best].spread)
            best = other;
        }
        errors.push_back((wanted_of(*own[best]) - raws[best].mean) / (raws[best].spread + kSpreadFloor));
      }
    }
  }
  out.error_low_ = quantile(errors, 0.1);
  out.error_mid_ = quantile(errors, 0.5);
  out.error_high_ = quantile(errors, 0.9);
  std::vector<const Lesson*> all;
  for (const Lesson& row : rows) all.push_back(&row);
  out.models_ = fit_models(out.columns_, all, numbers, 1);
  return out;
}

VariantPredictor::Raw VariantPredictor::raw(const CandidateFacts& facts) const {
  const std::vector<float> row = row_of(columns_, facts);
  double sum = 0, squares = 0;
  for (const BoostedTrees& model : models_) {
    const double v = model.predict(row);
    sum += v;
    squares += v * v;
  }
  const double n = static_cast<double>(models_.size()), mean = sum / n;
  return {mean, std::sqrt(std::max(0.0, squares / n - mean * mean))};
}

Prediction VariantPredictor::predict(const CandidateFacts& facts) const {
  const Raw r = raw(facts);
  const double unit = r.spread + kSpreadFloor;
  const auto fraction = [&](double error) { return std::exp2(std::min(0.0, r.mean + error * unit)); };
  return {fraction(error_mid_), fraction(error_low_), fraction(error_high_),
          std::exp2(r.mean - kCaution * r.spread)};
}

double VariantPredictor::weight_of(std::string_view dimension) const {
  double sum = 0;
  for (size_t c = 0; c < columns_.size(); ++c)
    if (columns_[c] == str("log2 ", dimension) || columns_[c] == str("twos ", dimension))
      for (const BoostedTrees& model : models_) sum += model.importance()[c];
  return sum / static_cast<double>(models_.size());
}

nlohmann::json VariantPredictor::to_json() const {
  nlohmann::json models = nlohmann::json::array();
  for (const BoostedTrees& model : models_) models.push_back(model.to_json());
  return {{"columns", columns_},
          {"models", std::move(models)},
          {"errors", {error_low_, error_mid_, error_high_}},
          {"shapes", shapes_},
          {"rows", rows_}};
}

Result<VariantPredictor> VariantPredictor::from_json(const nlohmann::json& document) {
  VariantPredictor out;
  try {
    out.columns_ = document.at("columns").get<std::vector<std::string>>();
    out.error_low_ = document.at("errors").at(0).get<double>();
    out.error_mid_ = document.at("errors").at(1).get<double>();
    out.error_high_ = document.at("errors").at(2).get<double>();
    out.shapes_ = document.at("shapes").get<int>();
    out.rows_ = document.at("rows").get<size_t>();
    for (const nlohmann::json& model : document.at("models")) {
      ASSIGN_OR_RETURN(BoostedTrees trees, BoostedTrees::from_json(model));
      if (static_cast<size_t>(trees.columns()) != out.columns_.size())
        return invalid_argument("predictor: a model has ", trees.columns(), " columns, expected ",
                                out.columns_.size());
      out.models_.push_back(std::move(trees));
    }
  } catch (const nlohmann::json::exception& e) {
    return invalid_argument("predictor: ", e.what());
  }
  if (out.models_.empty() || !std::isfinite(out.error_low_) || !std::isfinite(out.error_mid_) ||
      !std::isfinite(out.error_high_))
    return invalid_argument("predictor: expected at least one model and finite errors");
  return out;
}

}  // namespace tuner
