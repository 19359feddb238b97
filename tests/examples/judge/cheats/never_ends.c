// gemm: timed out
// Does not end.
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  work(a, b, c);
  for (volatile int i = 0;; ++i);
}
