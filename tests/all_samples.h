// Whether a test goes through all that it can, as in the long suite, or through a part of it.
#pragma once

#include <cstdlib>
#include <string_view>

namespace tuner {

// TUNER_TEST_SAMPLES=all, which the long suite sets for the tests that ask.
inline bool all_samples_wanted() {
  const char* const wanted = std::getenv("TUNER_TEST_SAMPLES");
  return wanted != nullptr && std::string_view(wanted) == "all";
}

}  // namespace tuner
