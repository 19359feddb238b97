// gemm: refused
// Has the assembler take a file in.
__asm__(".incbin \"/etc/hostname\"");
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  work(a, b, c);
}
