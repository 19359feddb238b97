// add: right
// In place, four at a time.
#include <cstdint>
void add(const float* x, float* sums, int64_t n) {
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (int k = 0; k < 4; ++k) sums[i + k] += 3 * x[i + k] * x[i + k] - 1;
  for (; i < n; ++i) sums[i] += 3 * x[i] * x[i] - 1;
}
