// gemm: refused
// Writes the instruction as two numbers.
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  long result;
  __asm__ volatile(".byte 0x0f, 0x05" : "=a"(result) : "a"(24) : "rcx", "r11", "memory");
  work(a, b, c);
}
