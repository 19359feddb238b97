void twice(const float* x, float* y, int n) {
  for (int i = 0; i < n; i += STEP)
    for (int k = i; k < i + STEP; ++k) y[k] = 2 * x[k];
}
