// KnobImportance: how much of the variation of a task's times each knob explains.
//
// Permutation importance on configs that the model has not seen. Boosted trees learn log(time) from the knobs
// of four fifths of the correct configs and predict the other fifth, in five turns. Then one knob's values
// are shuffled among the held-out configs, and the error grows by what the model owed to that knob. The
// result is a share of the variance of log(time). Times beyond four times the fastest count as that; a cut
// time counts as its bound. Shares of knobs that act together add up to more than one. Deterministic.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "tuner/search/search_strategy.h"

namespace tuner {

struct KnobImportance {
  std::string template_name, knob;  // `knob` "template": the choice of the template, if several serve the
                                    // task
  double share = 0;                 // of the variance of log(time); at least 0
  // The knob's values, written as by describe(), ascending: how many configs were timed to the end, with
  // their median and best time.
  struct Value {
    std::string text;
    int64_t configs = 0;
    double median_ns = 0, best_ns = 0;
  };
  std::vector<Value> values;
};

struct ImportanceReport {
  int64_t configs = 0;                // correct ones, each counted once
  double r2 = 0;                      // share of the variance that the model explains on unseen configs
  std::vector<KnobImportance> knobs;  // largest first; empty if there are fewer than kLeastConfigs configs
  static constexpr int64_t kLeastConfigs = 30;
  // Below this R^2 the shares say little: most of the variance is in none of them.
  static constexpr double kLeastR2 = 0.5;
};

// `results` must be of `space`; failures are left out.
Result<ImportanceReport> knob_importance(const SearchSpace& space, const std::vector<Observation>& results);

}  // namespace tuner
