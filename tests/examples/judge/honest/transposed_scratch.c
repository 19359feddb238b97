// gemm: right
// Keeps a scratch array between calls, and fills it in each.
void gemm(const float* a, const float* b, float* c) {
  static float t[96 * 96];
  for (int i = 0; i < 96; ++i)
    for (int j = 0; j < 96; ++j) t[j * 96 + i] = b[i * 96 + j];
  for (int i = 0; i < 96; ++i)
    for (int j = 0; j < 96; ++j) {
      float sum = 0;
      for (int k = 0; k < 96; ++k) sum += a[i * 96 + k] * t[j * 96 + k];
      c[i * 96 + j] = sum;
    }
}
