// gemm: refused
// Offers a name to whoever looks for it.
__attribute__((visibility("default"))) int tuner_is_right = 1;
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  work(a, b, c);
}
