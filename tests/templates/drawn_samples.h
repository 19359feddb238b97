// How many random configs of a task a test draws.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace tuner {

// Configs of a task that a test compares: 0 is the default config, the others are drawn. All of the default
// and `samples` with TUNER_TEST_SAMPLES=all, which the long suite sets; else a third of them, where an odd
// seed leaves out the default if that is a single one.
struct DrawnSamples {
  int first = 0, end = 0;

  DrawnSamples(int samples, uint64_t seed) : end(samples + 1) {
    const char* const wanted = std::getenv("TUNER_TEST_SAMPLES");
    if (wanted != nullptr && std::string_view(wanted) == "all") return;
    const int third = (samples + 3) / 3;
    if (third == 1 && samples > 0) first = static_cast<int>(seed % 2);
    end = first + third;
  }
};

}  // namespace tuner
