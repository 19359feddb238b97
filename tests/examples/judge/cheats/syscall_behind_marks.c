// gemm: refused
// Pretends that the compiler wrote it.
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  long result;
  __asm__ volatile("#NO_APP\n .byte 0x0f, 0x05\n#APP" : "=a"(result) : "a"(24) : "rcx", "r11", "memory");
  work(a, b, c);
}
