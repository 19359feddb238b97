// gemm: timed out
// Ends in its first calls only.
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  static int calls;
  work(a, b, c);
  while (++calls > 50) *(volatile int*)&calls = 60;
}
