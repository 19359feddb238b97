// MemoryPlan: where each value of a model lies while it runs.
//
// Values live from the step that makes them to the last one that reads them, as if every step ran; a
// condition is read by a Where behind all steps that it guards. They share one arena; a value takes the place
// that was freed last, because that is still in the caches, if this does not make the arena larger than it
// must be. A view lies on its source, a sum on the residual that nobody needs any more. A Concat whose inputs
// can be written in place is no step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler_core/target.h"
#include "tuner/model/partition.h"

namespace tuner {

struct ValuePlace {
  enum class Where : uint8_t { kNowhere, kArena, kConstant, kInput, kOutput };
  Where where = Where::kNowhere;
  int64_t offset = 0;  // bytes: in the arena, or into the input or output
  size_t index = 0;    // which input or output of the graph; kConstant: the value's id
};

struct MemoryPlan {
  std::vector<ValuePlace> values;  // one a value of the graph
  int64_t arena_bytes = 0;
  int64_t largest_live_bytes = 0;  // of values in the arena, while any one step runs: no arena is smaller
};

inline constexpr int64_t kArenaAlignment = 64;  // bytes, of every value

// Drops steps that need no work in it (a Concat in place), and lets sums lie on their residuals (in_place.h),
// hence not const.
MemoryPlan plan_memory(ModelSteps& model, const Target& target, const std::string& algorithms);

}  // namespace tuner
