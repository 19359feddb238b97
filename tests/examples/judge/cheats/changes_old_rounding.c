// gemm: refused
// The same of the old unit, by hand.
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  unsigned short word = 0x0f7f;
  __asm__ volatile("fldcw %0" : : "m"(word));
  work(a, b, c);
}
