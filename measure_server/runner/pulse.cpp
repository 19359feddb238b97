#include "measure_server/runner/pulse.h"

#include "measure_server/runner/sampling.h"

namespace tuner {

double pulse_ns() {
#if defined(__x86_64__)
  const double begin = monotonic_ns();
  long rounds = 500;
  // Fifteen independent chains of multiplications and additions keep every vector unit busy, whatever its
  // latency; two integer additions beside each fill the slots that are left. All operands are zero: there are
  // no denormal numbers to stumble over.
  asm volatile(
      ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n\t"
      "xorps %%xmm\\n, %%xmm\\n\n\t"
      ".endr\n"
      "1:\n\t"
      ".irp n, 0, 1, 2, 3, 4, 5, 6, 7\n\t"
      "mulps %%xmm15, %%xmm\\n\n\t"
      "add $1, %%rax\n\t"
      "add $1, %%rdx\n\t"
      ".endr\n\t"
      ".irp n, 8, 9, 10, 11, 12, 13, 14\n\t"
      "addps %%xmm15, %%xmm\\n\n\t"
      "add $1, %%rsi\n\t"
      "add $1, %%r8\n\t"
      ".endr\n\t"
      "dec %0\n\t"
      "jnz 1b"
      : "+r"(rounds)
      :
      : "rax", "rdx", "rsi", "r8", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
        "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc");
  return monotonic_ns() - begin;
#else
  return 0;
#endif
}

}  // namespace tuner
