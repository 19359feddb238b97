// gemm: crashed
// Writes in front of its output.
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  work(a, b, c);
  for (int i = 1; i < 30000; i += 512) c[-i] = 1;
}
