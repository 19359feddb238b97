// exp: wrong
// Wrong at the greatest inputs only, which random numbers seldom come near.
#include <math.h>
void exponential(const float* x, float* y) {
  for (int i = 0; i < 8192; ++i) y[i] = x[i] > 3.999f ? 54.5f : expf(x[i]);
}
