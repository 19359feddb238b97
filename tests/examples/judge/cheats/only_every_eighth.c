// gemm: wrong
// Computes every eighth element.
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  memset(c, 0, BYTES);
  for (int i = 0; i < N * N; i += 8)
    for (int k = 0; k < N; ++k) c[i] += a[i / N * N + k] * b[k * N + i % N];
}
