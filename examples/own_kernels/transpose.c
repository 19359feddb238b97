// Transposes a matrix in tiles and prints how long it takes: a program whose best tiles are searched as it is.
//
//   ./transpose --size 2048 --rows 32 --columns 8
//
// The macro UNROLL is how many columns a step of the inner loop takes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static void transpose(const float* in, float* out, int n, int rows, int columns) {
  for (int r0 = 0; r0 < n; r0 += rows)
    for (int c0 = 0; c0 < n; c0 += columns)
      for (int r = r0; r < r0 + rows && r < n; ++r)
        for (int c = c0; c < c0 + columns && c < n; c += UNROLL)
          for (int u = 0; u < UNROLL; ++u) out[(size_t)(c + u) * n + r] = in[(size_t)r * n + c + u];
}

static int number_after(int argc, char** argv, const char* name) {
  for (int i = 1; i + 1 < argc; ++i)
    if (strcmp(argv[i], name) == 0) return atoi(argv[i + 1]);
  fprintf(stderr, "expected %s NUMBER\n", name);
  exit(2);
}

int main(int argc, char** argv) {
  const int n = number_after(argc, argv, "--size");
  const int rows = number_after(argc, argv, "--rows"), columns = number_after(argc, argv, "--columns");
  float* const in = malloc(sizeof(float) * n * n);
  float* const out = malloc(sizeof(float) * n * n);
  if (in == NULL || out == NULL) return 1;
  for (int i = 0; i < n * n; ++i) in[i] = out[i] = i;
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const double begin = now_ms();
    transpose(in, out, n, rows, columns);
    const double took = now_ms() - begin;
    if (took < best) best = took;
  }
  if (out[1] != in[n]) return 3;
  printf("best of 5: %.6f ms\n", best);
  return 0;
}
