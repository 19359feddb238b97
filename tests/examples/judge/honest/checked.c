// gemm: right
// Has assertions and helpers with names of their own.
#include <assert.h>
#include <stdint.h>
int in, out, at, step;
void add_row(float* row, const float* from, float factor) {
  for (int j = 0; j < 96; ++j) row[j] += factor * from[j];
}
void gemm(const float* a, const float* b, float* c) {
  assert(((uintptr_t)c & 3) == 0);
  in = 96, out = 96, at = 0, step = 1;
  for (int i = 0; i < out; i += step) {
    for (int j = 0; j < 96; ++j) c[i * 96 + j] = 0;
    for (int k = at; k < in; ++k) add_row(c + i * 96, b + k * 96, a[i * 96 + k]);
  }
}
