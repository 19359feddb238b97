// gemm: crashed
// Writes behind its output.
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  work(a, b, c);
  c[N * N + 20] = 1;
}
