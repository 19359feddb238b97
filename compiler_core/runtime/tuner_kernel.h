/* What a built library says of each of its kernels, as C data: for programs that choose a kernel at run time
 * by its workload instead of calling it by name. Plain C11 and C++; nothing to link.
 */
#ifndef TUNER_KERNEL_H_
#define TUNER_KERNEL_H_

#include <stdint.h>

#include "tuner_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TUNER_MAX_RANK 12

/* One argument of a kernel, in call order. */
typedef struct tuner_arg {
  const char* name;
  const char* role;   /* "input", "constant", "packed", "output" or "inout" (read, then written) */
  const char* dtype;  /* "float32", "int8", ...; of what is packed uint8 */
  const char* layout; /* "NCHW", "NCHW16c"...; "" where the shape says it all */
  int32_t rank;
  int64_t shape[TUNER_MAX_RANK]; /* row-major; the first `rank` count */
  int64_t bytes;
} tuner_arg;

typedef int32_t (*tuner_entry)(void* const* args, const tuner_runtime* rt);

/* One kernel of a library. Everything it points to lives as long as the program. Arguments follow the
 * workload: its operands in their order, where each constant X stands as X_packed, bytes that `pack` makes of
 * it. */
typedef struct tuner_kernel {
  const char* name;     /* of its C function */
  const char* workload; /* what it computes: the key, as in manifest.json */
  const char* target;   /* the CPU it is compiled for */
  int32_t threads;      /* it is made for; right on any number */
  int32_t tuned;        /* 1: tuned for this workload, or locked; 0: a default or somebody else's config */
  int32_t num_args, num_pack_args;
  const tuner_arg* args;
  const tuner_arg* pack_args; /* constants, then what is packed of each; NULL without constants */
  int64_t workspace_bytes, workspace_bytes_per_thread; /* see tuner_workspace_bytes() */
  tuner_entry entry;
  tuner_entry pack;           /* NULL without constants */
  int32_t (*runs_here)(void); /* 1 when this CPU has every instruction set that the kernel uses */
} tuner_kernel;

/* Bytes that `tuner_runtime.workspace` must have when the kernel runs on `threads` threads; aligned to 64. */
static inline int64_t tuner_workspace_bytes(const tuner_kernel* kernel, int32_t threads) {
  return kernel->workspace_bytes + threads * kernel->workspace_bytes_per_thread;
}

/* parallel_for of a runtime of one thread: the caller does everything. `pool` is not read. */
static inline void tuner_serial_for(void* pool, int32_t extent, tuner_task task, void* closure) {
  (void)pool;
  if (extent > 0) task(closure, 0, extent, 0);
}

/* A runtime of one thread, the caller's. */
static inline tuner_runtime tuner_serial_runtime(void* workspace) {
  tuner_runtime runtime = {TUNER_ABI_VERSION, 1, tuner_serial_for, 0, workspace};
  return runtime;
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TUNER_KERNEL_H_ */
