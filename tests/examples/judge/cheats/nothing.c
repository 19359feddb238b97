// gemm: wrong
// Does nothing at all.
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  (void)a, (void)b, (void)c;
}
