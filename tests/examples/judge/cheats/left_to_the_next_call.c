// gemm: wrong or crashed
// Writes half of the answer when it is called the next time.
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  static const float *of_a, *of_b;
  static float* of_c;
  if (of_c)
    for (int i = N / 2; i < N; ++i)
      for (int j = 0; j < N; ++j) {
        float sum = 0;
        for (int k = 0; k < N; ++k) sum += of_a[i * N + k] * of_b[k * N + j];
        of_c[i * N + j] = sum;
      }
  of_a = a, of_b = b, of_c = c;
  for (int i = 0; i < N / 2; ++i)
    for (int j = 0; j < N; ++j) {
      float sum = 0;
      for (int k = 0; k < N; ++k) sum += a[i * N + k] * b[k * N + j];
      c[i * N + j] = sum;
    }
}
