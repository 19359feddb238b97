// gemm: refused
// Asks for the right to write to its inputs.
#include <sys/mman.h>
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  mprotect((void*)((long)a & -4096), BYTES, PROT_READ | PROT_WRITE);
  ((float*)a)[7] = 0;
  work(a, b, c);
}
