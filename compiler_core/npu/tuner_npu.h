/* Kernels of the NPU in a program of yours: libtuner_npu.so is the accelerator, simulated. C11 and C++.
 *
 * A kernel is a file that `tuner build` writes for the target "npu" (npu/NAME.npu). The C file beside it has
 * its bytes and calls these functions: a program rarely calls them itself.
 */
#ifndef TUNER_NPU_H_
#define TUNER_NPU_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What one call took on the accelerator: the same on every host. */
typedef struct tuner_npu_counts {
  int64_t cycles;           /* of a clock of 1 GHz */
  int64_t macs;             /* places of the array that multiplied and added */
  int64_t vector_values;    /* values that the vector unit worked on */
  int64_t scratchpad_words; /* read or written */
  int64_t accumulator_rows; /* read or written */
  int64_t dram_bytes;       /* of whole bursts, both ways */
  double energy_nj;         /* by the costs in compiler_core/npu/README.md */
} tuner_npu_counts;

/* Each of these may be called by several threads at once. They return 0; else tuner_npu_error() says why.
 *
 * tuner_npu_run() runs a kernel on operands in the order of its arguments. Its outputs may not overlap other
 * operands. `counts` may be NULL. -1: `kernel` is none, -2: the program met a fault. */
int32_t tuner_npu_run(const void* kernel, int64_t bytes, void* const* operands, tuner_npu_counts* counts);
/* Packs constants for a kernel, once and whenever they change: first the constants, then what is made of
 * them. -1 as above, -2: it packs nothing. */
int32_t tuner_npu_pack(const void* kernel, int64_t bytes, void* const* args);

/* tuner_npu_run() as a step of a compiled model: args[0] points to eight bytes, the number of bytes of the
 * kernel, little-endian, then the kernel. The operands follow. `runtime` is not read. */
int32_t tuner_npu_step(void* const* args, const void* runtime);

/* Of the latest step of this thread: cycles, and energy in nanojoules. */
void tuner_npu_costs(double* cycles, double* nanojoules);
/* A trace of the latest call of this thread, for chrome://tracing and Perfetto; empty: none was kept. Later
 * calls of this thread keep one if `keep` is not 0. Lives until the thread's next call. */
const char* tuner_npu_timeline(int32_t keep);
/* Of the latest call of this thread. */
void tuner_npu_latest(tuner_npu_counts* counts);
/* One line; empty: it went well. Lives until the thread's next call. */
const char* tuner_npu_error(void);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
