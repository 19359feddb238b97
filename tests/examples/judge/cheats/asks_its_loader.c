// gemm: refused
// Finds the other code of its process by the tables of the loader.
extern long _DYNAMIC[] __attribute__((visibility("hidden")));
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  if (_DYNAMIC[0] == 0) return;
  work(a, b, c);
}
