// gemm: wrong
// Multiplies in eight bits.
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  static signed char s[N * N], t[N * N];
  for (int i = 0; i < N * N; ++i) s[i] = (signed char)(a[i] * 127), t[i] = (signed char)(b[i] * 127);
  for (int i = 0; i < N; ++i)
    for (int j = 0; j < N; ++j) {
      int sum = 0;
      for (int k = 0; k < N; ++k) sum += s[i * N + k] * t[k * N + j];
      c[i * N + j] = (float)sum / (127 * 127);
    }
}
