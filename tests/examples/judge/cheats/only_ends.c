// gemm: wrong
// Computes first and last rows only.
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  memset(c, 0, BYTES);
  for (int i = 0; i < N; i = i == 1 ? N - 2 : i + 1)
    for (int j = 0; j < N; ++j)
      for (int k = 0; k < N; ++k) c[i * N + j] += a[i * N + k] * b[k * N + j];
}
