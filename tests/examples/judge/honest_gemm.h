// What cheats do when they must.
#include <string.h>
enum { N = 96, BYTES = N * N * 4 };
static void work(const float* a, const float* b, float* c) {
  for (int i = 0; i < N; ++i) {
    float row[N] = {0};
    for (int k = 0; k < N; ++k)
      for (int j = 0; j < N; ++j) row[j] += a[i * N + k] * b[k * N + j];
    memcpy(c + i * N, row, sizeof row);
  }
}
