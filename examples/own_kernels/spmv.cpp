// y = A * x for a sparse matrix whose rows all have `width` elements (ELLPACK), column by column: see spmv.json.
#include <cstdint>

#ifndef ROWS
#define ROWS 8
#define UNROLL 4
#define AHEAD 0
#define BY_ROW 0
#endif

#define PRAGMA(text) _Pragma(#text)
#define UNROLLED(times) PRAGMA(GCC unroll times)

// values and columns: [width][rows]; rows is a multiple of ROWS.
void spmv(const float* __restrict values, const std::int32_t* __restrict columns, const float* __restrict x,
          float* __restrict y, std::int32_t rows, std::int32_t width) {
  for (std::int64_t r = 0; r < rows; r += ROWS) {
    float sum[ROWS] = {};
#if BY_ROW
    for (int i = 0; i < ROWS; ++i) {
      UNROLLED(UNROLL)
      for (std::int64_t k = 0; k < width; ++k) {
        const std::int64_t at = k * rows + r + i;
        sum[i] += values[at] * x[columns[at]];
      }
    }
#else
    UNROLLED(UNROLL)
    for (std::int64_t k = 0; k < width; ++k) {
#if AHEAD > 0
      __builtin_prefetch(columns + (k + AHEAD) * rows + r);
      __builtin_prefetch(values + (k + AHEAD) * rows + r);
#endif
      for (int i = 0; i < ROWS; ++i) {
        const std::int64_t at = k * rows + r + i;
        sum[i] += values[at] * x[columns[at]];
      }
    }
#endif
    for (int i = 0; i < ROWS; ++i) y[r + i] = sum[i];
  }
}

void spmv_plain(const float* values, const std::int32_t* columns, const float* x, float* y, std::int32_t rows,
                std::int32_t width) {
  for (std::int64_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (std::int64_t k = 0; k < width; ++k) sum += double(values[k * rows + r]) * x[columns[k * rows + r]];
    y[r] = float(sum);
  }
}
