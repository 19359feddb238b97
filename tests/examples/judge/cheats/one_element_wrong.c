// gemm: wrong
// All but one element.
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  work(a, b, c);
  c[41 * N + 17] = 0.25f;
}
