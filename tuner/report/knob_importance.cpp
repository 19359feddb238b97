#include "tuner/report/knob_importance.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>

#include "compiler_core/base/statistics.h"
#include "tuner/cost_model/cost_model.h"

namespace tuner {
namespace {

constexpr size_t kFolds = 5, kShuffles = 3;
// Slower than this many times the fastest is slow enough: a few configs that are fifty times slower would be
// all there is to explain.
constexpr double kSlow = 4;

// Columns of one knob of one template; part -1: the choice of the template itself.
struct Group {
  int part = -1;
  size_t knob = 0, first = 0, columns = 0;
};

size_t columns_of(const KnobInfo& knob) {
  const bool one_each = knob.kind == KnobKind::kCategorical || knob.kind == KnobKind::kPermutation;
  return one_each ? knob.labels.size() : 1;
}

struct Table {
  std::vector<Group> groups;
  FeatureMatrix rows;
  std::vector<double> log_time;
  std::vector<Observation> results;  // one a row
};

// Knobs of other templates stand at the median of those that have them: as NaN they would tell the template
// as well as its own column does, which could then be shuffled without loss.
void fill_gaps(FeatureMatrix& rows) {
  for (size_t c = 0; c < rows.columns; ++c) {
    std::vector<double> known;
    for (size_t r = 0; r < rows.rows(); ++r)
      if (const float v = rows.values[r * rows.columns + c]; !std::isnan(v)) known.push_back(v);
    for (size_t r = 0; r < rows.rows(); ++r)
      if (float& v = rows.values[r * rows.columns + c]; std::isnan(v)) v = static_cast<float>(median(known));
  }
}

Table table_of(const SearchSpace& space, const std::vector<Observation>& results) {
  Table t;
  if (space.parts.size() > 1) {
    t.groups.push_back({.columns = 1});
    t.rows.columns = 1;
  }
  std::vector<size_t> first;
  for (size_t p = 0; p < space.parts.size(); ++p) {
    first.push_back(t.rows.columns);
    const std::vector<KnobInfo>& knobs = space.parts[p].space->knobs();
    for (size_t k = 0; k < knobs.size(); ++k) {
      t.groups.push_back({static_cast<int>(p), k, t.rows.columns, columns_of(knobs[k])});
      t.rows.columns += columns_of(knobs[k]);
    }
  }
  std::map<Candidate, Observation> best;  // a config that was measured twice counts once
  double fastest = 0;
  for (const Observation& r : results) {
    if (!r.ok || !(r.time_ns > 0)) continue;
    const auto [at, fresh] = best.emplace(r.candidate, r);
    if (!fresh && (r.cut < at->second.cut || (r.cut == at->second.cut && r.time_ns < at->second.time_ns)))
      at->second = r;
    if (!r.cut && (fastest == 0 || r.time_ns < fastest)) fastest = r.time_ns;
  }
  for (const auto& [candidate, result] : best) {
    std::vector<float> row(t.rows.columns, std::numeric_limits<float>::quiet_NaN());
    const auto part = static_cast<size_t>(candidate.template_index);
    if (space.parts.size() > 1) row[0] = static_cast<float>(part);
    const ConfigSpace& of = *space.parts[part].space;
    const std::vector<float> features = of.features(of.at(candidate.config));
    std::copy(features.begin(), features.end(), row.begin() + static_cast<std::ptrdiff_t>(first[part]));
    t.rows.values.insert(t.rows.values.end(), row.begin(), row.end());
    t.log_time.push_back(std::log(std::min(result.time_ns, kSlow * fastest)));
    t.results.push_back(result);
  }
  if (space.parts.size() > 1) fill_gaps(t.rows);
  return t;
}

FeatureMatrix rows_at(const FeatureMatrix& all, const std::vector<size_t>& which) {
  FeatureMatrix out{.columns = all.columns, .values = {}};
  for (const size_t r : which)
    out.values.insert(out.values.end(), all.values.begin() + static_cast<std::ptrdiff_t>(r * all.columns),
                      all.values.begin() + static_cast<std::ptrdiff_t>((r + 1) * all.columns));
  return out;
}

// Sum of squared errors of the rows `which`, whose features are `features`.
Result<double> squared_error(const CostModel& model, const FeatureMatrix& features,
                             const std::vector<double>& wanted, const std::vector<size_t>& which) {
  ASSIGN_OR_RETURN(const std::vector<float> predicted, model.predict(features));
  double sum = 0;
  for (size_t i = 0; i < which.size(); ++i)
    sum += std::pow(static_cast<double>(predicted[i]) - wanted[which[i]], 2);
  return sum;
}

// Gives the group's columns of the rows that have them to one another.
FeatureMatrix shuffled(const Table& t, const FeatureMatrix& features, const std::vector<size_t>& which,
                       const Group& group, std::mt19937_64& random) {
  FeatureMatrix out = features;
  std::vector<size_t> having, from;
  for (size_t r = 0; r < features.rows(); ++r)
    if (group.part < 0 || t.results[which[r]].candidate.template_index == group.part) having.push_back(r);
  from = having;
  for (size_t i = from.size(); i > 1; --i) std::swap(from[i - 1], from[random() % i]);
  for (size_t i = 0; i < having.size(); ++i)
    for (size_t c = 0; c < group.columns; ++c)
      out.values[having[i] * features.columns + group.first + c] =
          features.values[from[i] * features.columns + group.first + c];
  return out;
}

// A flag or category as describe() says it; a number as it is.
std::string value_text(const KnobInfo& knob, int64_t value) {
  if (knob.kind == KnobKind::kFlag) return value != 0 ? "yes" : "no";
  if (knob.kind == KnobKind::kCategorical && value >= 0 && value < static_cast<int64_t>(knob.labels.size()))
    return knob.labels[static_cast<size_t>(value)];
  return std::to_string(value);
}

std::vector<KnobImportance::Value> values_of(const SearchSpace& space, const Table& t, const Group& g) {
  std::map<int64_t, std::vector<double>> times;
  for (const Observation& r : t.results) {
    const auto part = static_cast<size_t>(r.candidate.template_index);
    if (r.cut || (g.part >= 0 && g.part != r.candidate.template_index)) continue;
    const ConfigSpace& of = *space.parts[part].space;
    const Config config = g.part < 0 ? Config() : of.at(r.candidate.config);
    if (g.part >= 0 && !of.is_active(config, of.knobs()[g.knob].name)) continue;
    times[g.part < 0 ? r.candidate.template_index : config.at(of.knobs()[g.knob].name)].push_back(r.time_ns);
  }
  std::vector<KnobImportance::Value> values;
  for (const auto& [value, ns] : times) {
    const std::string text =
        g.part < 0 ? space.parts[static_cast<size_t>(value)].template_name
                   : value_text(space.parts[static_cast<size_t>(g.part)].space->knobs()[g.knob], value);
    values.push_back(
        {text, static_cast<int64_t>(ns.size()), median(ns), *std::min_element(ns.begin(), ns.end())});
  }
  return values;
}

}  // namespace

Result<ImportanceReport> knob_importance(const SearchSpace& space, const std::vector<Observation>& results) {
  Table t = table_of(space, results);
  const size_t n = t.log_time.size();
  ImportanceReport report{.configs = static_cast<int64_t>(n), .knobs = {}};
  const bool timed = std::ranges::any_of(t.results, [](const Observation& o) { return !o.cut; });
  if (report.configs < ImportanceReport::kLeastConfigs || !timed) return report;
  const double mean = std::accumulate(t.log_time.begin(), t.log_time.end(), 0.0) / static_cast<double>(n);
  double variance = 0;
  for (double& y : t.log_time) {
    y -= mean;
    variance += y * y;
  }

  std::mt19937_64 random(1);
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = n; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  double error = 0;
  std::vector<double> more(t.groups.size(), 0);
  for (size_t fold = 0; fold < kFolds; ++fold) {
    std::vector<size_t> learn, held;
    for (size_t i = 0; i < n; ++i) (i % kFolds == fold ? held : learn).push_back(order[i]);
    const std::unique_ptr<CostModel> model =
        make_xgboost_model({.rounds = 100, .max_depth = 3, .eta = 0.1f, .subsample = 0.8f, .seed = fold});
    std::vector<float> scores;
    for (const size_t r : learn) scores.push_back(static_cast<float>(t.log_time[r]));
    RETURN_IF_ERROR(model->fit(rows_at(t.rows, learn), scores));
    const FeatureMatrix features = rows_at(t.rows, held);
    ASSIGN_OR_RETURN(const double as_is, squared_error(*model, features, t.log_time, held));
    error += as_is;
    for (size_t g = 0; g < t.groups.size(); ++g)
      for (size_t s = 0; s < kShuffles; ++s) {
        ASSIGN_OR_RETURN(
            const double worse,
            squared_error(*model, shuffled(t, features, held, t.groups[g], random), t.log_time, held));
        more[g] += (worse - as_is) / kShuffles;
      }
  }
  // Times that are all the same leave nothing to explain.
  if (variance <= 0) return report;
  report.r2 = 1 - error / variance;
  for (size_t g = 0; g < t.groups.size(); ++g) {
    const Group& group = t.groups[g];
    KnobImportance k{
        .knob = "template", .share = std::max(0.0, more[g] / variance), .values = values_of(space, t, group)};
    if (group.part >= 0) {
      k.template_name = space.parts[static_cast<size_t>(group.part)].template_name;
      k.knob = space.parts[static_cast<size_t>(group.part)].space->knobs()[group.knob].name;
    }
    if (k.values.size() > 1) report.knobs.push_back(std::move(k));
  }
  std::stable_sort(report.knobs.begin(), report.knobs.end(),
                   [](const KnobImportance& a, const KnobImportance& b) { return a.share > b.share; });
  return report;
}

}  // namespace tuner
