// gemm: wrong
// Leaves out the last terms of each sum.
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  for (int i = 0; i < N; ++i)
    for (int j = 0; j < N; ++j) {
      float sum = 0;
      for (int k = 0; k < N - 1; ++k) sum += a[i * N + k] * b[k * N + j];
      c[i * N + j] = sum;
    }
}
