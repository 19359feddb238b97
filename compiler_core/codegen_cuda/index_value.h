// The value of an index or condition when all its variables are known.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "compiler_core/ir/expr.h"

namespace tuner::cuda {

using VarValues = std::vector<std::pair<const VarNode*, int64_t>>;

// Of a variable that stands there twice the later value counts; one that is not there is 0, and so is a load.
// Conditions are 1 or 0.
int64_t index_value(const Expr& e, const VarValues& values);

// Calls f() at each point of loops: `values` from place `first` on are set to those of the variables there,
// each below its extent.
template <class F>
void for_each_point(VarValues& values, size_t first, const std::vector<int64_t>& extents, const F& f) {
  int64_t points = 1;
  for (const int64_t extent : extents) points *= extent;
  for (int64_t point = 0; point < points; ++point) {
    int64_t rest = point;
    for (size_t i = 0; i < extents.size(); ++i) {
      values[first + i].second = rest % extents[i];
      rest /= extents[i];
    }
    f();
  }
}

}  // namespace tuner::cuda
