// KnobImportance: how much of what is known of a task's times a knob explains.
//
// Permutation importance, on configs the model has not seen: boosted trees learn log(time) of four fifths of
// the right configs from their knobs and predict the other fifth, in five turns; then one knob's
// values are shuffled among the held-out configs, and the error grows by what the model owed to that knob.
// Given as a share of the variance of log(time). Times beyond four
// times the fastest count as that; a cut one as the bound it is. Shares of knobs that act together add up to
// more than one. Deterministic.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "tuner/search/search_strategy.h"

namespace tuner {

struct KnobImportance {
  std::string template_name, knob;  // `knob` "template": which template is used, of a task that several serve
  double share = 0;                 // of the variance of log(time); not below 0
  // The knob's values, as describe() has them, ascending: how many configs were timed to
  // the end, their median and their best time.
  struct Value {
    std::string text;
    int64_t configs = 0;
    double median_ns = 0, best_ns = 0;
  };
  std::vector<Value> values;
};

struct ImportanceReport {
  int64_t configs = 0;  // right, each once
  double r2 = 0;        // share of the variance that the model explains of configs it has not seen
  std::vector<KnobImportance> knobs;  // largest first; empty: too few configs (fewer than kLeastConfigs)
  static constexpr int64_t kLeastConfigs = 30;
  // Below this R^2 the shares say little.
  static constexpr double kLeastR2 = 0.2;
};

// `results`: of `space`; failures are left out.
Result<ImportanceReport> knob_importance(const SearchSpace& space, const std::vector<Observation>& results);

}  // namespace tuner
