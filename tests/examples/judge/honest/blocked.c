// gemm: right
// In tiles, with its own scratch memory.
#include <stdlib.h>
#include <string.h>
enum { N_ = 96, T = 24 };
void gemm(const float* restrict a, const float* restrict b, float* restrict c) {
  float* packed = malloc(sizeof(float) * T * N_);
  memset(c, 0, sizeof(float) * N_ * N_);
  for (int k0 = 0; k0 < N_; k0 += T) {
    memcpy(packed, b + k0 * N_, sizeof(float) * T * N_);
    for (int i = 0; i < N_; ++i)
      for (int k = 0; k < T; ++k)
        for (int j = 0; j < N_; ++j) c[i * N_ + j] += a[i * N_ + k0 + k] * packed[k * N_ + j];
  }
  free(packed);
}
