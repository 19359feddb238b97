// Makes the inputs of a task from its seed. A worker, the maker of a pack and its reader get the same
// numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler_core/base/dtype.h"

namespace tuner {

// Returns `count` random numbers of type `dtype`, each exact in float32. Seed and position of the argument
// decide them, on any machine. Floats are uniform in [-1, 1) and never zero (bfloat16, float16: rounded to
// it). uint8 and int8 use their whole range. int32, which is only added to sums here, uses 2^21 numbers
// around 0.
std::vector<float> random_values(uint64_t seed, int argument, int64_t count, DType dtype = DType::kFloat32);

}  // namespace tuner
