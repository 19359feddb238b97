// gemm: crashed
// Writes to its inputs.
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  work(a, b, c);
  ((float*)a)[7] = 0;
}
