// add: right
// With exceptions and an allocation.
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>
void add(const float* x, float* sums, int64_t n) {
  if (n < 0) throw std::invalid_argument("fewer than none");
  std::vector<float> squares(n);
  for (int64_t i = 0; i < n; ++i) squares[i] = x[i] * x[i];
  for (int64_t i = 0; i < n; ++i) sums[i] += 3 * squares[i] - 1;
}
