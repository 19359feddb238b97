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
#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

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

/* Types that this process may multiply by tiles (AMX), as a sum of these; 0: none. */
#define TUNER_TILES_BFLOAT16 1
#define TUNER_TILES_INT8 2
#define TUNER_TILES_FLOAT16 4

/* Asks Linux, the first time, for the tile registers: a process has none before (arch_prctl,
 * ARCH_REQ_XCOMP_PERM), and all its threads and children of fork() have them then. Call it before a kernel
 * that uses tiles; NAME_runs_here() of a built library does. Any thread may. Where the system refuses, it is
 * as if the CPU had no tiles. */
static inline int32_t tuner_tiles(void) {
#if defined(__x86_64__) && defined(__linux__)
  static int32_t known = -1; /* every thread finds the same */
  int32_t found = __atomic_load_n(&known, __ATOMIC_RELAXED);
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (found >= 0) return found;
  found = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d >> 24 & 1) != 0) {
    const long kPermission = 0x1023, kTileData = 18;
    long answer = 158; /* the number of arch_prctl */
    __asm__ volatile("syscall" : "+a"(answer) : "D"(kPermission), "S"(kTileData) : "rcx", "r11", "memory");
    if (answer == 0) {
      found = (int32_t)(((d >> 22 & 1) != 0 ? TUNER_TILES_BFLOAT16 : 0) |
                        ((d >> 25 & 1) != 0 ? TUNER_TILES_INT8 : 0));
      if (__get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 21 & 1) != 0) found |= TUNER_TILES_FLOAT16;
    }
  }
  __atomic_store_n(&known, found, __ATOMIC_RELAXED);
  return found;
#else
  return 0;
#endif
}

/* Units of an AArch64 CPU that came after NEON, as a sum of these; 0: none, or another architecture. */
#define TUNER_UNITS_BF16 1
#define TUNER_UNITS_DOTPROD 2
#define TUNER_UNITS_FULLFP16 4
#define TUNER_UNITS_I8MM 8
#define TUNER_UNITS_SVE 16
#define TUNER_UNITS_SVE2 32

/* As Linux tells them: bits of AT_HWCAP and AT_HWCAP2 (asm/hwcap.h), whose macros old headers lack. */
static inline int32_t tuner_units(void) {
#if defined(__aarch64__) && defined(__linux__)
  const unsigned long first = getauxval(16), second = getauxval(26);
  return (int32_t)((second >> 14 & 1 ? TUNER_UNITS_BF16 : 0) | (first >> 20 & 1 ? TUNER_UNITS_DOTPROD : 0) |
                   (first >> 10 & first >> 9 & 1 ? TUNER_UNITS_FULLFP16 : 0) |
                   (second >> 13 & 1 ? TUNER_UNITS_I8MM : 0) | (first >> 22 & 1 ? TUNER_UNITS_SVE : 0) |
                   (second >> 1 & 1 ? TUNER_UNITS_SVE2 : 0));
#else
  return 0;
#endif
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TUNER_RUNTIME_H_ */
