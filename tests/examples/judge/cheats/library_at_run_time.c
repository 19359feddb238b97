// gemm: refused
// Loads a library.
#include <dlfcn.h>
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  dlopen("libnumbers.so", RTLD_NOW);
  work(a, b, c);
}
