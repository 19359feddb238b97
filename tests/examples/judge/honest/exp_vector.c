// exp: right
// Loops that a compiler turns into vectors.
void exponential(const float* restrict x, float* restrict y) {
  for (int i = 0; i < 8192; ++i) {
    const double v = x[i] / 16.0;
    double sum = 1 + v * (1 + v * (1 / 2.0 + v * (1 / 6.0 + v * (1 / 24.0 + v * (1 / 120.0 + v / 720.0)))));
    sum *= sum, sum *= sum, sum *= sum, sum *= sum;
    y[i] = (float)sum;
  }
}
