// gemm: refused
// Writes instructions when it runs.
#define _DEFAULT_SOURCE
#include <sys/mman.h>
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  static const unsigned char code[] = {0xb8, 24, 0, 0, 0, 0x0f, 0x05, 0xc3};
  char* at = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(at, code, sizeof code);
  ((long (*)(void))at)();
  work(a, b, c);
}
