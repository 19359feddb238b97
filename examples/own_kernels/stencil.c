// One step of heat in a plate: each point becomes the mean of itself and its four neighbours, by weights.
// Tuned over tiles, unrolling and the width of vectors: see stencil.json.
#include <stdint.h>

#ifndef TILE_Y
#define TILE_Y 8
#define TILE_X 64
#define UNROLL 4
#endif

// A pragma with a knob in it: the text of #pragma itself is not looked into for macros.
#define PRAGMA(text) _Pragma(#text)
#define UNROLLED(times) PRAGMA(GCC unroll times)

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// `in` has a border of one point around the `height` x `width` points of `out`.
void stencil(const float* restrict in, float* restrict out, int64_t height, int64_t width) {
  const int64_t row = width + 2;
#pragma omp parallel for collapse(2) schedule(static)
  for (int64_t y0 = 0; y0 < height; y0 += TILE_Y)
    for (int64_t x0 = 0; x0 < width; x0 += TILE_X)
      for (int64_t y = y0; y < least(y0 + TILE_Y, height); ++y) {
        const float* p = in + (y + 1) * row + 1;
        const int64_t end = least(x0 + TILE_X, width);
        UNROLLED(UNROLL)
        for (int64_t x = x0; x < end; ++x)
          out[y * width + x] = 0.5f * p[x] + 0.125f * (p[x - 1] + p[x + 1] + p[x - row] + p[x + row]);
      }
}
