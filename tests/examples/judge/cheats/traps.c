// gemm: crashed
// Ends by a signal.
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  work(a, b, c);
  __builtin_trap();
}
