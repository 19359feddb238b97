// The same step as anybody would write it: what is right.
#include <stdint.h>

void stencil_plain(const float* in, float* out, int64_t height, int64_t width) {
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x) {
      const float* p = in + (y + 1) * (width + 2) + x + 1;
      out[y * width + x] = 0.5f * p[0] + 0.125f * (p[-1] + p[1] + p[-(width + 2)] + p[width + 2]);
    }
}
