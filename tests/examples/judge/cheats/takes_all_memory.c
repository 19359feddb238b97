// gemm: crashed
// Takes more memory than it may.
#include <stdlib.h>
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  static char* held;
  for (int i = 0; i < 6; ++i) {
    char* more = malloc(1u << 30);
    if (!more) break;
    memset(more, i, 1u << 30);
    *(char**)more = held, held = more;
  }
  work(a, b, c);
}
