// exp: right
// With a table that its first call fills.
#include <math.h>
void exponential(const float* x, float* y) {
  static double table[257];
  static int filled;
  if (!filled) {
    for (int i = 0; i <= 256; ++i) table[i] = exp((i - 128) / 32.0);
    filled = 1;
  }
  for (int i = 0; i < 8192; ++i) {
    const int at = (int)lrintf(x[i] * 32);
    const double d = x[i] - at / 32.0;
    y[i] = (float)(table[at + 128] * (1 + d * (1 + d * (0.5 + d * (1 / 6.0)))));
  }
}
