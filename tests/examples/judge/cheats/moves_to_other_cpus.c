// gemm: refused
// Changes where the process runs.
#define _GNU_SOURCE
#include <sched.h>
#include "honest_gemm.h"
void gemm(const float* a, const float* b, float* c) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(0, &set);
  sched_setaffinity(0, sizeof set, &set);
  work(a, b, c);
}
