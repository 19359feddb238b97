// The steps of a loop that copies asynchronously: what depends on them alone can be known ahead, step by
// step.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "compiler_core/arith/simplify.h"

namespace tuner::cuda {

// The loops that make a step, outermost first, and their extents.
using Steps = std::vector<std::pair<Var, int64_t>>;

constexpr int64_t kMostSteps = 1024;  // of a table
constexpr int64_t kMostRounds = 16;   // of a copy: each has a register

// How many steps there are; nothing where a table of them would be too long.
inline std::optional<int64_t> step_count(const Steps& steps) {
  int64_t count = 1;
  for (const auto& [var, extent] : steps)
    if ((count *= extent) > kMostSteps) return std::nullopt;
  return count;
}

// The loops' variables in step number `step`.
inline VarMap step_values(const Steps& steps, int64_t step) {
  VarMap values;
  for (auto s = steps.rbegin(); s != steps.rend(); step /= (s++)->second)
    values.emplace(s->first, Expr(step % s->second));
  return values;
}

// The number of the step that the loops are at.
inline Expr step_number(const Steps& steps) {
  Expr number = 0;
  for (const auto& [var, extent] : steps) number = number * extent + Expr(var);
  return number;
}

}  // namespace tuner::cuda
