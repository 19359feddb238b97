/* What a built library says of each of its kernels, as C data: for programs that choose a kernel at run time
 * by its workload instead of calling it by name. And which instruction sets this CPU has. Plain C11 and C++;
 * nothing to link.
 */
#ifndef TUNER_KERNEL_H_
#define TUNER_KERNEL_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tuner_runtime.h"
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the CPU ---- */

#if defined(__x86_64__)
/* What tuner_cpu_word() tells: registers of cpuid, by leaf and subleaf. */
enum tuner_cpu_words {
  TUNER_CPU_1_ECX,
  TUNER_CPU_7_EBX,
  TUNER_CPU_7_ECX,
  TUNER_CPU_7_EDX,
  TUNER_CPU_7_1_EAX,
  TUNER_CPU_7_1_EDX,
  TUNER_CPU_EXTENDED_ECX,
  TUNER_CPU_AVX10, /* bit v: version v or a later one */
  TUNER_CPU_KEPT,  /* bits TUNER_CPU_ANY to TUNER_CPU_APX; for tiles the system is asked */
  TUNER_CPU_WORDS
};
enum tuner_cpu_kept { TUNER_CPU_ANY, TUNER_CPU_YMM, TUNER_CPU_ZMM, TUNER_CPU_APX, TUNER_CPU_TILES };

/* Asked once: in a virtual machine each cpuid takes microseconds. Any thread may; all find the same. */
static inline uint32_t tuner_cpu_word(int32_t which) {
  static uint32_t words[TUNER_CPU_WORDS];
  static int32_t known = 0;
  uint32_t found[TUNER_CPU_WORDS] = {0}, a = 0, b = 0, c = 0, d = 0, low = 0, high = 0;
  int32_t i;
  if (__atomic_load_n(&known, __ATOMIC_ACQUIRE)) return __atomic_load_n(&words[which], __ATOMIC_RELAXED);
  if (__get_cpuid(1, &a, &b, &c, &d) != 0) found[TUNER_CPU_1_ECX] = c;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) {
    found[TUNER_CPU_7_EBX] = b, found[TUNER_CPU_7_ECX] = c, found[TUNER_CPU_7_EDX] = d;
    if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0)
      found[TUNER_CPU_7_1_EAX] = a, found[TUNER_CPU_7_1_EDX] = d;
  }
  if (__get_cpuid(0x80000001, &a, &b, &c, &d) != 0) found[TUNER_CPU_EXTENDED_ECX] = c;
  if ((found[TUNER_CPU_7_1_EDX] >> 19 & 1) != 0 && __get_cpuid_count(0x24, 0, &a, &b, &c, &d) != 0)
    for (i = 1; i < 32 && (uint32_t)i <= (b & 0xff); ++i) found[TUNER_CPU_AVX10] |= 1U << i;
  if ((found[TUNER_CPU_1_ECX] >> 27 & 1) != 0) /* OSXSAVE */
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  found[TUNER_CPU_KEPT] = 1U << TUNER_CPU_ANY | (uint32_t)((low & 0x6) == 0x6) << TUNER_CPU_YMM |
                          (uint32_t)((low & 0xe6) == 0xe6) << TUNER_CPU_ZMM |
                          (low >> 19 & 1) << TUNER_CPU_APX;
  for (i = 0; i < TUNER_CPU_WORDS; ++i) __atomic_store_n(&words[i], found[i], __ATOMIC_RELAXED);
  __atomic_store_n(&known, 1, __ATOMIC_RELEASE);
  return found[which];
}
#endif

/* 1 when this CPU has the instruction set, by GCC's or LLVM's name (on AArch64 LLVM's), and the system lets
 * it be used; 0 when it has not; -1 for a name that is not known here. On x86-64 every set that LLVM uses of
 * its own accord is known. */
static inline int32_t tuner_cpu_has(const char* set, size_t length) {
#if defined(__x86_64__)
  static const struct {
    const char* name;
    uint8_t word, bit, kept;
  } sets[] = {
      {"sse3", TUNER_CPU_1_ECX, 0, TUNER_CPU_ANY},
      {"ssse3", TUNER_CPU_1_ECX, 9, TUNER_CPU_ANY},
      {"fma", TUNER_CPU_1_ECX, 12, TUNER_CPU_YMM},
      {"sse4.1", TUNER_CPU_1_ECX, 19, TUNER_CPU_ANY},
      {"sse4.2", TUNER_CPU_1_ECX, 20, TUNER_CPU_ANY},
      {"movbe", TUNER_CPU_1_ECX, 22, TUNER_CPU_ANY},
      {"popcnt", TUNER_CPU_1_ECX, 23, TUNER_CPU_ANY},
      {"avx", TUNER_CPU_1_ECX, 28, TUNER_CPU_YMM},
      {"f16c", TUNER_CPU_1_ECX, 29, TUNER_CPU_YMM},
      {"lzcnt", TUNER_CPU_EXTENDED_ECX, 5, TUNER_CPU_ANY},
      {"sse4a", TUNER_CPU_EXTENDED_ECX, 6, TUNER_CPU_ANY},
      {"xop", TUNER_CPU_EXTENDED_ECX, 11, TUNER_CPU_YMM},
      {"fma4", TUNER_CPU_EXTENDED_ECX, 16, TUNER_CPU_YMM},
      {"tbm", TUNER_CPU_EXTENDED_ECX, 21, TUNER_CPU_ANY},
      {"bmi", TUNER_CPU_7_EBX, 3, TUNER_CPU_ANY},
      {"avx2", TUNER_CPU_7_EBX, 5, TUNER_CPU_YMM},
      {"bmi2", TUNER_CPU_7_EBX, 8, TUNER_CPU_ANY},
      {"avx512f", TUNER_CPU_7_EBX, 16, TUNER_CPU_ZMM},
      {"avx512dq", TUNER_CPU_7_EBX, 17, TUNER_CPU_ZMM},
      {"avx512ifma", TUNER_CPU_7_EBX, 21, TUNER_CPU_ZMM},
      {"avx512cd", TUNER_CPU_7_EBX, 28, TUNER_CPU_ZMM},
      {"avx512bw", TUNER_CPU_7_EBX, 30, TUNER_CPU_ZMM},
      {"avx512vl", TUNER_CPU_7_EBX, 31, TUNER_CPU_ZMM},
      {"avx512vbmi", TUNER_CPU_7_ECX, 1, TUNER_CPU_ZMM},
      {"avx512vbmi2", TUNER_CPU_7_ECX, 6, TUNER_CPU_ZMM},
      {"gfni", TUNER_CPU_7_ECX, 8, TUNER_CPU_ANY},
      {"avx512vnni", TUNER_CPU_7_ECX, 11, TUNER_CPU_ZMM},
      {"avx512bitalg", TUNER_CPU_7_ECX, 12, TUNER_CPU_ZMM},
      {"avx512vpopcntdq", TUNER_CPU_7_ECX, 14, TUNER_CPU_ZMM},
      {"amx-bf16", TUNER_CPU_7_EDX, 22, TUNER_CPU_TILES},
      {"avx512fp16", TUNER_CPU_7_EDX, 23, TUNER_CPU_ZMM},
      {"amx-tile", TUNER_CPU_7_EDX, 24, TUNER_CPU_TILES},
      {"amx-int8", TUNER_CPU_7_EDX, 25, TUNER_CPU_TILES},
      {"avxvnni", TUNER_CPU_7_1_EAX, 4, TUNER_CPU_YMM},
      {"avx512bf16", TUNER_CPU_7_1_EAX, 5, TUNER_CPU_ZMM},
      {"amx-fp16", TUNER_CPU_7_1_EAX, 21, TUNER_CPU_TILES},
      {"avxifma", TUNER_CPU_7_1_EAX, 23, TUNER_CPU_YMM},
      {"avxvnniint8", TUNER_CPU_7_1_EDX, 4, TUNER_CPU_YMM},
      {"avxneconvert", TUNER_CPU_7_1_EDX, 5, TUNER_CPU_YMM},
      {"amx-complex", TUNER_CPU_7_1_EDX, 8, TUNER_CPU_TILES},
      {"avxvnniint16", TUNER_CPU_7_1_EDX, 10, TUNER_CPU_YMM},
      {"egpr", TUNER_CPU_7_1_EDX, 21, TUNER_CPU_APX},
      {"ndd", TUNER_CPU_7_1_EDX, 21, TUNER_CPU_APX},
      {"avx10.1", TUNER_CPU_AVX10, 1, TUNER_CPU_ZMM},
      {"avx10.2", TUNER_CPU_AVX10, 2, TUNER_CPU_ZMM},
  };
  size_t i;
  for (i = 0; i < sizeof sets / sizeof sets[0]; ++i) {
    if (strlen(sets[i].name) != length || memcmp(set, sets[i].name, length) != 0) continue;
    if ((tuner_cpu_word(sets[i].word) >> sets[i].bit & 1) == 0) return 0;
    return sets[i].kept == TUNER_CPU_TILES ? tuner_tiles() != 0
                                           : (int32_t)(tuner_cpu_word(TUNER_CPU_KEPT) >> sets[i].kept & 1);
  }
#elif defined(__aarch64__)
  static const char* const names[] = {"bf16", "dotprod", "fullfp16", "i8mm", "sve", "sve2"};
  int i;
  for (i = 0; i < 6; ++i) /* in the order of the bits of tuner_units() */
    if (length == strlen(names[i]) && memcmp(set, names[i], length) == 0)
      return (int32_t)(tuner_units() >> i & 1);
#else
  (void)set;
  (void)length;
#endif
  return -1;
}

/* 1 when this CPU has all of the instruction sets, whose names have a space between: "avx2 fma". One that is
 * not known here is missing. */
static inline int32_t tuner_cpu_has_sets(const char* sets) {
  while (*sets) {
    const char* const end = strchr(sets, ' ');
    const size_t length = end ? (size_t)(end - sets) : strlen(sets);
    if (tuner_cpu_has(sets, length) != 1) return 0;
    sets += length + (end ? 1 : 0);
  }
  return 1;
}

/* ---- kernels ---- */

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
