// gemm: refused
// Numbers among the instructions, which are called.
__attribute__((section(".text"))) static const unsigned char code[] = {0xb8, 24, 0, 0, 0, 0x0f, 0x05, 0xc3};
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  ((long (*)(void))(void*)code)();
  work(a, b, c);
}
