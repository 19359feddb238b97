// exp: wrong
// A series with few terms.
void exponential(const float* x, float* y) {
  for (int i = 0; i < 8192; ++i) {
    float v = x[i];
    y[i] = 1 + v * (1 + v * (0.5f + v * (1 / 6.f + v * (1 / 24.f))));
  }
}
