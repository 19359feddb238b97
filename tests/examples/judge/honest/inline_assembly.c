// gemm: right
// Its inner product by hand, with a loop of its own.
#if defined(__AVX2__) && defined(__FMA__)
void gemm(const float* a, const float* b, float* c) {
  for (int i = 0; i < 96; ++i)
    for (int j = 0; j < 96; j += 8) {
      const float *p = a + i * 96, *q = b + j;
      long n = 96;
      __asm__ volatile(
          "vxorps %%ymm0, %%ymm0, %%ymm0\n"
          ".p2align 4\n"
          "1:\n\t"
          "vbroadcastss (%0), %%ymm1\n\t"
          "vfmadd231ps (%1), %%ymm1, %%ymm0\n\t"
          "add $4, %0; add $384, %1\n\t"
          "dec %2\n\t"
          "jnz 1b\n\t"
          "vmovups %%ymm0, (%3)"
          : "+r"(p), "+r"(q), "+r"(n)
          : "r"(c + i * 96 + j)
          : "ymm0", "ymm1", "memory", "cc");
    }
}
#else
#include "gemm_plain.c"
#endif
