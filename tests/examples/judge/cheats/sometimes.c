// gemm: wrong
// Copies the answer of the call before in one call of four.
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  static float kept[N * N];
  static unsigned state = 1;
  state = state * 1664525u + 1013904223u;
  if (state >> 30 || kept[0] == 0) work(a, b, kept);
  memcpy(c, kept, BYTES);
}
