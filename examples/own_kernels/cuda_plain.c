/* What reduce.cu, transpose.cu and conv2d.cu compute, by plain loops on the host. */
#ifdef ROW_COUNT
void row_sums(const float* in, float* out, int columns) {
  for (long row = 0; row < ROW_COUNT; ++row) {
    double sum = 0;
    for (long x = 0; x < columns; ++x) sum += in[row * columns + x];
    out[row] = (float)sum;
  }
}
#endif

void transposed(const float* in, float* out, int height, int width) {
  for (long y = 0; y < height; ++y)
    for (long x = 0; x < width; ++x) out[x * height + y] = in[y * width + x];
}

void convolved(const float* in, const float* weight, float* out, int height, int width) {
  enum { WINDOW_EDGE = 5 };
  for (long y = 0; y < height; ++y)
    for (long x = 0; x < width; ++x) {
      double sum = 0;
      for (long i = 0; i < WINDOW_EDGE; ++i)
        for (long j = 0; j < WINDOW_EDGE; ++j)
          sum += (double)in[(y + i) * (width + WINDOW_EDGE - 1) + x + j] * weight[i * WINDOW_EDGE + j];
      out[y * width + x] = (float)sum;
    }
}
