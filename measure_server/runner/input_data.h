// Inputs of a task from its seed: the same numbers wherever they are made, by a worker, into a pack or out of
// one.
#pragma once

#include <cstdint>
#include <vector>

namespace tuner {

// Numbers drawn evenly from [-1, 1), never zeros: the same for the same seed and position of the argument, on
// any machine.
std::vector<float> random_values(uint64_t seed, int argument, int64_t count);

}  // namespace tuner
