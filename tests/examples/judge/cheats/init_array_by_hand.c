// gemm: refused
// Puts a function where the loader calls it.
static void early(void) {}
__attribute__((section(".init_array"), used)) static void (*const entry)(void) = early;
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  work(a, b, c);
}
