// gemm: right
// By intrinsics, prefetching.
#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
void gemm(const float* a, const float* b, float* c) {
  for (int i = 0; i < 96; i += 4)
    for (int j = 0; j < 96; j += 8) {
      __m256 s0 = _mm256_setzero_ps(), s1 = s0, s2 = s0, s3 = s0;
      for (int k = 0; k < 96; ++k) {
        const __m256 row = _mm256_loadu_ps(b + k * 96 + j);
        _mm_prefetch((const char*)(b + (k + 4) % 96 * 96 + j), _MM_HINT_T0);
        s0 = _mm256_fmadd_ps(_mm256_set1_ps(a[i * 96 + k]), row, s0);
        s1 = _mm256_fmadd_ps(_mm256_set1_ps(a[i * 96 + 96 + k]), row, s1);
        s2 = _mm256_fmadd_ps(_mm256_set1_ps(a[i * 96 + 192 + k]), row, s2);
        s3 = _mm256_fmadd_ps(_mm256_set1_ps(a[i * 96 + 288 + k]), row, s3);
      }
      _mm256_storeu_ps(c + i * 96 + j, s0);
      _mm256_storeu_ps(c + i * 96 + 96 + j, s1);
      _mm256_storeu_ps(c + i * 96 + 192 + j, s2);
      _mm256_storeu_ps(c + i * 96 + 288 + j, s3);
    }
}
#else
#include "gemm_plain.c"
#endif
