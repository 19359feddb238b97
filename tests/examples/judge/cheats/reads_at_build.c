// gemm: not compiled
// Reads a file of the system when it is compiled.
#include </etc/passwd>
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  work(a, b, c);
}
