/* The kernel ABI: what a compiled kernel is given and what it promises. Plain C, no dependency.
 *
 *   int32_t NAME(void* const* args, const tuner_runtime* rt);        the kernel
 *   int32_t NAME_pack(void* const* args, const tuner_runtime* rt);   packs constant operands, once, before
 * the first call
 *
 * `args` holds one pointer per argument in manifest order, each aligned to 64 bytes. The kernel returns 0, or
 * a negative number when `rt` does not fit it. It owns no threads and no memory: the host does, once, for all
 * kernels. A kernel may be called from several threads at once if each call has its own workspace and
 * outputs.
 */
#ifndef TUNER_RUNTIME_H_
#define TUNER_RUNTIME_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TUNER_ABI_VERSION 1

/* One share of a parallel loop: iterations begin..end-1, run on thread `thread` of 0..num_threads-1. */
typedef void (*tuner_task)(void* closure, int32_t begin, int32_t end, int32_t thread);

typedef struct tuner_runtime {
  uint32_t abi_version; /* TUNER_ABI_VERSION */
  int32_t num_threads;  /* threads parallel_for uses; >= 1 */
  /* Runs iterations 0..extent-1, statically partitioned over num_threads, and returns when all are done. Not
   * re-entrant. */
  void (*parallel_for)(void* pool, int32_t extent, tuner_task task, void* closure);
  void* pool;
  /* workspace_bytes + num_threads * workspace_bytes_per_thread of the manifest, aligned to 64 bytes; NULL
   * when both are 0. */
  void* workspace;
} tuner_runtime;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TUNER_RUNTIME_H_ */
