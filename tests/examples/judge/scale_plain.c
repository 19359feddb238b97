#include <stdint.h>

void scale_plain(const float* x, float* y, int32_t n) {
  for (int32_t i = 0; i < n; ++i) y[i] = 3 * x[i] + 1;
}
