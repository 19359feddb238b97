// gemm: refused
// Finds the stack of its caller by the block of its thread.
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  volatile char* block = __builtin_thread_pointer();
  if (block[0] == 0) return;
  work(a, b, c);
}
