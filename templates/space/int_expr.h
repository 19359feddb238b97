// Values and bounds of integer expressions over knobs. Implements what knob.h promises.
#pragma once

#include <cstdint>
#include <vector>

#include "templates/space/knob.h"

namespace tuner {

struct IntRange {
  int64_t lo, hi;
  bool is_single() const { return lo == hi; }
};

// Applies the operator to two numbers, or to two ranges (the result may be wider than the exact range).
int64_t apply(IntOp op, int64_t a, int64_t b);
IntRange apply(IntOp op, IntRange a, IntRange b);

// `values[i]` is the value of knob i.
int64_t evaluate(const IntExprNode& e, const std::vector<int64_t>& values);
// Marks the knobs that `e` reads.
void collect_knobs(const IntExprNode& e, std::vector<bool>& used);

}  // namespace tuner
