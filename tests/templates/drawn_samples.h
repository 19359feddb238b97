// How many random configs of a task a test draws.
#pragma once

#include <cstdlib>
#include <string_view>

namespace tuner {

// A third of `samples`, at least one; all with TUNER_TEST_SAMPLES=all, which the long suite sets.
inline int drawn_samples(int samples) {
  const char* const wanted = std::getenv("TUNER_TEST_SAMPLES");
  if (wanted != nullptr && std::string_view(wanted) == "all") return samples;
  return (samples + 2) / 3;
}

}  // namespace tuner
