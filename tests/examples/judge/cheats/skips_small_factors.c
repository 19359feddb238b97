// gemm: wrong
// Leaves out products of small factors.
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  for (int i = 0; i < N; ++i)
    for (int j = 0; j < N; ++j) c[i * N + j] = 0;
  for (int i = 0; i < N; ++i)
    for (int k = 0; k < N; ++k)
      if (a[i * N + k] > 0.01f || a[i * N + k] < -0.01f)
        for (int j = 0; j < N; ++j) c[i * N + j] += a[i * N + k] * b[k * N + j];
}
