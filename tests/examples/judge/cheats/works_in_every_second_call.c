// gemm: wrong
// Copies the answer of the call before in every second call.
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  static float kept[N * N];
  static int calls;
  if (calls++ % 2 == 0) work(a, b, kept);
  memcpy(c, kept, BYTES);
}
