// gemm: wrong
// Adds in float16.
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  for (int i = 0; i < N; ++i)
    for (int j = 0; j < N; ++j) {
      _Float16 sum = 0;
      for (int k = 0; k < N; ++k) sum += (_Float16)(a[i * N + k] * b[k * N + j]);
      c[i * N + j] = (float)sum;
    }
}
