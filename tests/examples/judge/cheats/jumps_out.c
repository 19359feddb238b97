// gemm: refused
// Leaves by a jump to a place that it remembers.
#include <setjmp.h>
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  static jmp_buf place;
  static int known;
  if (known) longjmp(place, 1);
  known = setjmp(place) == 0;
  work(a, b, c);
}
