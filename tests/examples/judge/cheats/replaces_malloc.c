// gemm: refused
// Replaces the library's allocation.
#include <stddef.h>
static char heap[1 << 20];
static size_t used;
void* malloc(size_t n) { return heap + (used += n) - n; }
void free(void* p) { (void)p; }
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  work(a, b, c);
}
