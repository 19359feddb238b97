// gemm: refused
// Leaves the processor rounding towards zero.
#include <fenv.h>
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  fesetround(FE_TOWARDZERO);
  work(a, b, c);
}
