// gemm: wrong
// Computes the corners.
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  memset(c, 0, BYTES);
  const int at[] = {0, N - 1, N * N - N, N * N - 1};
  for (int n = 0; n < 4; ++n)
    for (int k = 0; k < N; ++k) c[at[n]] += a[at[n] / N * N + k] * b[k * N + at[n] % N];
}
