#include <stdint.h>

void row_sums_plain(const float* in, float* out, int32_t rows, int32_t columns) {
  for (int32_t y = 0; y < rows; ++y) {
    double sum = 0;
    for (int32_t x = 0; x < columns; ++x) sum += in[(int64_t)y * columns + x];
    out[y] = (float)sum;
  }
}
