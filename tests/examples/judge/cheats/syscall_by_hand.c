// gemm: refused
// Asks the system without its library.
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(24) : "rcx", "r11", "memory");
  work(a, b, c);
}
