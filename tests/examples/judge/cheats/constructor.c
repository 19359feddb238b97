// gemm: refused
// Runs when it is loaded.
static float ready[96 * 96];
__attribute__((constructor)) static void prepare(void) { ready[0] = 1; }
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  memcpy(c, ready, BYTES);
  work(a, b, c);
}
