// Calls the tuned stencil and compares it with the plain one.
#include <math.h>
#include <stdio.h>

#include "stencil.h"

enum { kHeight = 480, kWidth = 640 };
static float in[(kHeight + 2) * (kWidth + 2)], out[kHeight * kWidth], expected[kHeight * kWidth];

void stencil_plain(const float* in, float* out, int64_t height, int64_t width);

int main(void) {
  for (int i = 0; i < (kHeight + 2) * (kWidth + 2); ++i) in[i] = (float)(i % 997) / 997;
  stencil(in, out, kHeight, kWidth);
  stencil_plain(in, expected, kHeight, kWidth);
  float largest = 0;
  for (int i = 0; i < kHeight * kWidth; ++i) largest = fmaxf(largest, fabsf(out[i] - expected[i]));
  printf("largest difference: %g\n", largest);
  return largest < 1e-5f ? 0 : 1;
}
