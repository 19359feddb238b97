// gemm: refused
// Stops, and waits to be woken.
#include <signal.h>
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  raise(SIGSTOP);
  work(a, b, c);
}
