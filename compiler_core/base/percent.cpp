#include "compiler_core/base/percent.h"

#include <cstdio>
#include <cstdlib>

namespace tuner {

std::string percent_beside(double share, double limit) {
  constexpr int kMostDecimals = 9;
  char text[64];
  for (int decimals = 1; decimals <= kMostDecimals; ++decimals) {
    std::snprintf(text, sizeof text, "%.*f %%", decimals, 100 * share);
    // As text, and back: what a reader compares.
    if ((std::atof(text) > 100 * limit) == (share > limit)) break;
  }
  return text;
}

}  // namespace tuner
