// gemm: refused
// Prints without end.
#include <stdio.h>
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  for (int i = 0; i < 1000; ++i) puts("right, in no time at all");
  work(a, b, c);
}
