// C = A * B of row-major float32 matrices, in tiles of macros' sizes: see sgemm.json.
#include <stdint.h>

#ifndef MR
#define MR 4
#define NR 16
#define KC 64
#define UNROLL 1
#define PACK 0
#endif

#define PRAGMA(text) _Pragma(#text)
#define UNROLLED(times) PRAGMA(GCC unroll times)

// MR x NR sums stay in registers while KC terms are added.
static inline void tile(const float* restrict a, const float* restrict b, float* restrict c, int64_t n, int64_t k,
                        int64_t ldb, int64_t terms, int first) {
  float sum[MR][NR];
  for (int i = 0; i < MR; ++i)
    for (int j = 0; j < NR; ++j) sum[i][j] = first ? 0.0f : c[i * n + j];
  UNROLLED(UNROLL)
  for (int64_t p = 0; p < terms; ++p)
    for (int i = 0; i < MR; ++i)
      for (int j = 0; j < NR; ++j) sum[i][j] += a[i * k + p] * b[p * ldb + j];
  for (int i = 0; i < MR; ++i)
    for (int j = 0; j < NR; ++j) c[i * n + j] = sum[i][j];
}

// m is a multiple of MR, n of NR and k of KC.
void sgemm(const float* restrict a, const float* restrict b, float* restrict c, int64_t m, int64_t n, int64_t k) {
  for (int64_t p = 0; p < k; p += KC)
    for (int64_t j = 0; j < n; j += NR) {
#if PACK
      static _Thread_local float packed[KC * NR];
      for (int64_t q = 0; q < KC; ++q)
        for (int64_t l = 0; l < NR; ++l) packed[q * NR + l] = b[(p + q) * n + j + l];
      for (int64_t i = 0; i < m; i += MR) tile(a + i * k + p, packed, c + i * n + j, n, k, NR, KC, p == 0);
#else
      for (int64_t i = 0; i < m; i += MR) tile(a + i * k + p, b + p * n + j, c + i * n + j, n, k, n, KC, p == 0);
#endif
    }
}
