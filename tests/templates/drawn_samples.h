// How many random configs of a task a test draws.
#pragma once

#include <cstdint>

#include "tests/all_samples.h"

namespace tuner {

// Configs of a task that a test compares: 0 is the default config, the others are drawn. All of the default
// and `samples` with TUNER_TEST_SAMPLES=all, which the long suite sets; else a sixth of them, where an odd
// seed leaves out the default if that is a single one.
struct DrawnSamples {
  int first = 0, end = 0;

  DrawnSamples(int samples, uint64_t seed) : end(samples + 1) {
    if (all_samples_wanted()) return;
    const int sixth = (samples + 6) / 6;
    if (sixth == 1 && samples > 0) first = static_cast<int>(seed % 2);
    end = first + sixth;
  }
};

}  // namespace tuner
