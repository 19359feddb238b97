#include "measure_server/runner/pulse.h"

#include <algorithm>
#include <cmath>

#include "measure_server/runner/sampling.h"

namespace tuner {

#if defined(__x86_64__)
namespace {

constexpr double kEvenChainNs = 500;

// 480 multiplications, 1440 cycles.
double chain_ns() {
  const double begin = monotonic_ns();
  long rounds = 60;
  asm volatile(
      "movl $3, %%eax\n"
      "1:\n\t"
      ".rept 8\n\t"
      "imulq %%rax, %%rax\n\t"
      ".endr\n\t"
      "dec %0\n\t"
      "jnz 1b"
      : "+r"(rounds)
      :
      : "rax", "cc");
  return monotonic_ns() - begin;
}

double full_core_ns() {
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
}

}  // namespace

Pulse take_pulse() {
  // A clock that changes in between says nothing: soon it will have changed.
  constexpr int kTries = 3;
  constexpr double kSteady = 0.03;
  Pulse pulse;
  for (int i = 0; i < kTries; ++i) {
    const double before = chain_ns();
    pulse.ns = full_core_ns();
    const double behind = chain_ns();
    // The shorter one, so that a stop in a chain does not hide a neighbour.
    const double chain = std::min(before, behind);
    pulse.even_ns = pulse.ns * kEvenChainNs / chain;
    if (std::fabs(before - behind) <= kSteady * chain) break;
  }
  return pulse;
}
#else
Pulse take_pulse() { return {}; }
#endif

}  // namespace tuner
