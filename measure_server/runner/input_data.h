// Inputs of a task from its seed: the same numbers wherever they are made, by a worker, into a pack or out of
// one.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler_core/base/dtype.h"

namespace tuner {

// Numbers of type `dtype`, each of them exact in float32: the same for the same seed and position of the
// argument, on any machine. Floats are drawn evenly from [-1, 1), never zeros (bfloat16: rounded to it);
// uint8 and int8 from all they hold; int32, which here is only ever added to sums, from 2^21 numbers around
// 0.
std::vector<float> random_values(uint64_t seed, int argument, int64_t count, DType dtype = DType::kFloat32);

}  // namespace tuner
