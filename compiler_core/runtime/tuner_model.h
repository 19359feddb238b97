/* A compiled model, run from C or C++: all of it is in this header, plain C11 and C++ on POSIX, compilers GCC and Clang; nothing to
 * link but the model's library, which is data and kernels. NAME.h of a library has the same by names and types.
 *
 *   extern const tuner_model tuner_NAME_model;                         the library's only symbol
 *   tuner_weights_open(&tuner_NAME_model, "NAME.weights", &weights);   once; every context shares it
 *   tuner_context_create(&tuner_NAME_model, weights, NULL, &context);  one for each thread that runs the model
 *   tuner_context_run(context, inputs, outputs);                       any number of times
 *   tuner_context_destroy(context);
 *   tuner_weights_close(weights);
 *
 * A model is a list of steps, each a call of a kernel; a step with guards runs only if they hold. Values between them lie in the
 * context's arena; constants in the weights file, as kernels read them. The file is mapped: processes that run the same model share
 * its memory, and who writes a new file puts it in the place of the old one by renaming. A file that is cut while it is mapped ends
 * the process when the lost part is read.
 *
 * A context belongs to one thread at a time; any number of contexts run at once. Functions return 0, or a code below zero that
 * tuner_model_error() explains; nothing is left behind then.
 */
#ifndef TUNER_MODEL_H_
#define TUNER_MODEL_H_

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tuner_kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TUNER_MODEL_VERSION 2      /* of the table below */
#define TUNER_MODEL_CPUS_VERSION 3 /* of a library for several CPUs: the table is a tuner_model_cpus */
#define TUNER_WEIGHTS_VERSION 1    /* of the weights file */

/* Codes. Those above -16 come from a kernel that does not fit the runtime. */
#define TUNER_MODEL_NO_MEMORY (-16)
#define TUNER_MODEL_OTHER_ABI (-17)
#define TUNER_MODEL_OTHER_CPU (-18)
#define TUNER_MODEL_UNALIGNED (-19)
#define TUNER_WEIGHTS_NO_FILE (-20)
#define TUNER_WEIGHTS_NO_ACCESS (-21)
#define TUNER_WEIGHTS_NOT_ONE (-22)
#define TUNER_WEIGHTS_OTHER_ABI (-23)
#define TUNER_WEIGHTS_FOREIGN (-24)
#define TUNER_WEIGHTS_SHORT (-25)
#define TUNER_WEIGHTS_DAMAGED (-26)

/* Where an argument of a step lies: `offset` bytes behind the beginning of ... */
#define TUNER_ARENA 0   /* ... the context's arena */
#define TUNER_WEIGHTS 1 /* ... the weights file */
#define TUNER_INPUT 2   /* ... input `index` of the model */
#define TUNER_OUTPUT 3  /* ... output `index` of the model */
typedef struct tuner_place {
  int32_t kind, index;
  int64_t offset; /* a multiple of 64 */
} tuner_place;

/* What must hold for a step to run: a bool that an earlier step, or the caller, has written. */
typedef struct tuner_guard {
  tuner_place place; /* of one byte, 0 for false */
  int32_t wanted;    /* 0 or 1 */
  int32_t unused;
} tuner_guard;

/* One call of a kernel. */
typedef struct tuner_step {
  const char* name;     /* of the model's node whose result it gives */
  const char* workload; /* what it computes: the key, as in plan.json */
  tuner_entry entry;
  const tuner_place* args;
  int32_t num_args;
  int32_t kernel; /* steps with the same number run the same code */
  /* All must hold, else no output needs the step, and a run leaves it out. */
  const tuner_guard* guards;
  int32_t num_guards;
  int32_t unused;
} tuner_step;

/* The table. Everything it points to lives as long as the library is loaded. */
typedef struct tuner_model {
  int32_t version; /* TUNER_MODEL_VERSION, or TUNER_MODEL_CPUS_VERSION */
  int32_t threads; /* it is made for; right on any number */
  const char* name;
  const char* target;           /* the CPU it is compiled for */
  const char* instruction_sets; /* that the CPU must have: "avx2 fma"; as GCC names them, "" for none */
  const char* source_digest;    /* SHA-256 of the model that was compiled, as plan.json tells it */
  const char* weights_digest;   /* 64 hexadecimal digits: which weights file is the model's */
  uint64_t weights_checksum;    /* of all that stands behind the file's header */
  int64_t weights_bytes;        /* of the file */
  int64_t arena_bytes;
  int64_t workspace_bytes, workspace_bytes_per_thread; /* enough for every step */
  int32_t num_inputs, num_outputs, num_steps, num_kernels;
  const tuner_arg* inputs;
  const tuner_arg* outputs;
  const tuner_step* steps; /* in order: each behind those whose results it reads */
} tuner_model;

/* The table of a library for several CPUs (`tuner compile --for`): one table for each, with its kernels, steps and places. All have
 * the same inputs, outputs and weights file. A context takes the first whose instructions this CPU has. */
typedef struct tuner_model_cpus {
  tuner_model model; /* of the last CPU, but for its version */
  int32_t num_cpus;
  int32_t unused;
  const tuner_model* cpus; /* of TUNER_MODEL_VERSION; those with more instruction sets first */
} tuner_model_cpus;

/* The beginning of a weights file. Numbers are little-endian, as on every CPU there are libraries for. Constants follow, each at a
 * multiple of 64, with zeros between them and up to a multiple of 64 at the end. */
typedef struct tuner_weights_header {
  char magic[8]; /* TUNER_WEIGHTS_MAGIC */
  uint32_t version;
  uint32_t header_bytes; /* 128 */
  int64_t file_bytes;
  char digest[64];
  char unused[40]; /* zeros */
} tuner_weights_header;
#define TUNER_WEIGHTS_MAGIC "tunerwts"

/* What a code means, as the end of a message: "net.weights: " and "belongs to another model". */
static inline const char* tuner_model_error(int32_t code) {
  switch (code) {
    case 0:
      return "no error";
    case -1:
      return "the runtime is of another ABI version than the kernels";
    case -2:
      return "a kernel was given no workspace";
    case -3:
      return "the runtime has no threads";
    case TUNER_MODEL_NO_MEMORY:
      return "out of memory";
    case TUNER_MODEL_OTHER_ABI:
      return "the library's table is of another version than tuner_model.h; take the header that lies beside "
             "the library";
    case TUNER_MODEL_OTHER_CPU:
      return "this CPU lacks instructions that the model is compiled for";
    case TUNER_MODEL_UNALIGNED:
      return "every input and output must be aligned to 64 bytes";
    case TUNER_WEIGHTS_NO_FILE:
      return "there is no such file";
    case TUNER_WEIGHTS_NO_ACCESS:
      return "cannot be read";
    case TUNER_WEIGHTS_NOT_ONE:
      return "is no weights file";
    case TUNER_WEIGHTS_OTHER_ABI:
      return "is a weights file of another version";
    case TUNER_WEIGHTS_FOREIGN:
      return "belongs to another model, or to this one compiled at another time";
    case TUNER_WEIGHTS_SHORT:
      return "has another length than was written: it is cut, or something was added";
    case TUNER_WEIGHTS_DAMAGED:
      return "is damaged: its checksum is not the model's";
    default:
      return "a kernel refused to run";
  }
}

/* ---- the CPU ---- */

/* 1 when this CPU has the instruction sets of a table for one CPU. */
static inline int32_t tuner_cpu_has_all(const tuner_model* model) {
  return tuner_cpu_has_sets(model->instruction_sets);
}

/* The table that contexts take here: the model's own, or of several the first for this CPU. NULL: this CPU lacks instructions. */
static inline const tuner_model* tuner_model_here(const tuner_model* model) {
  const tuner_model_cpus* const all = (const tuner_model_cpus*)(const void*)model;
  int32_t i;
  if (model->version != TUNER_MODEL_CPUS_VERSION) return tuner_cpu_has_all(model) ? model : NULL;
  for (i = 0; i < all->num_cpus; ++i)
    if (tuner_cpu_has_all(&all->cpus[i])) return &all->cpus[i];
  return NULL;
}

/* 1 when this CPU has the instructions that the model is compiled for. Asks Linux for tile registers (AMX) where they are needed. */
static inline int32_t tuner_model_runs_here(const tuner_model* model) {
  return tuner_model_here(model) != NULL;
}

/* 1 when this header knows the table. */
static inline int32_t tuner_model_is_known(const tuner_model* model) {
  return model->version == TUNER_MODEL_VERSION || model->version == TUNER_MODEL_CPUS_VERSION;
}

/* ---- weights ---- */

/* The checksum of blocks of 64 bytes: eight sums side by side, at the speed of memory. Begin with zeros, add any number of blocks,
 * end. Every single changed bit changes it. */
typedef struct tuner_checksum {
  uint64_t lanes[8];
} tuner_checksum;

/* Eight lanes in registers, whatever the compiler's level of optimization. */
#define TUNER_CHECKSUM_LANE(lane, i)                           \
  (lane) = ((lane) ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15); \
  (lane) ^= (lane) >> 29
static inline void tuner_checksum_add(tuner_checksum* sum, const void* blocks, int64_t bytes) {
  uint64_t a = sum->lanes[0], b = sum->lanes[1], c = sum->lanes[2], d = sum->lanes[3];
  uint64_t e = sum->lanes[4], f = sum->lanes[5], g = sum->lanes[6], h = sum->lanes[7];
  const char* at = (const char*)blocks;
  const char* const end = at + bytes;
  for (; at < end; at += 64) {
    uint64_t words[8];
    memcpy(words, at, sizeof words);
    TUNER_CHECKSUM_LANE(a, 0);
    TUNER_CHECKSUM_LANE(b, 1);
    TUNER_CHECKSUM_LANE(c, 2);
    TUNER_CHECKSUM_LANE(d, 3);
    TUNER_CHECKSUM_LANE(e, 4);
    TUNER_CHECKSUM_LANE(f, 5);
    TUNER_CHECKSUM_LANE(g, 6);
    TUNER_CHECKSUM_LANE(h, 7);
  }
  sum->lanes[0] = a, sum->lanes[1] = b, sum->lanes[2] = c, sum->lanes[3] = d;
  sum->lanes[4] = e, sum->lanes[5] = f, sum->lanes[6] = g, sum->lanes[7] = h;
}
#undef TUNER_CHECKSUM_LANE

static inline uint64_t tuner_checksum_end(const tuner_checksum* sum) {
  uint64_t all = 0;
  int i;
  for (i = 0; i < 8; ++i) {
    all = (all ^ sum->lanes[i]) * 0xbf58476d1ce4e5b9u;
    all ^= all >> 31;
  }
  return all;
}

/* The mapped file, read-only. */
typedef struct tuner_weights {
  const char* bytes; /* of the file; at a multiple of 2 MiB, so that large pages can serve it */
  int64_t size;
  int32_t users; /* who opened it, and its contexts */
} tuner_weights;

/* Whether a header is that of the model's file. */
static inline int32_t tuner_weights_check(const tuner_model* model, const tuner_weights_header* header,
                                          int64_t size) {
  if (size < 16 || memcmp(header->magic, TUNER_WEIGHTS_MAGIC, 8) != 0) return TUNER_WEIGHTS_NOT_ONE;
  if (header->version != TUNER_WEIGHTS_VERSION || header->header_bytes != sizeof *header)
    return TUNER_WEIGHTS_OTHER_ABI;
  if (size < (int64_t)sizeof *header) return TUNER_WEIGHTS_SHORT;
  if (memcmp(header->digest, model->weights_digest, 64) != 0) return TUNER_WEIGHTS_FOREIGN;
  if (size != header->file_bytes || size != model->weights_bytes) return TUNER_WEIGHTS_SHORT;
  return 0;
}

/* Maps `size` bytes of the file at a multiple of 2 MiB. NULL: there is no room. */
static inline const char* tuner_weights_map(int file, size_t size) {
  const size_t kLarge = (size_t)2 << 20, page = (size_t)sysconf(_SC_PAGESIZE);
  char *room, *begin;
  size_t before, used;
  /* The file's own pages as room: pages behind its end may be mapped, only not read. */
  room = (char*)mmap(NULL, size + kLarge, PROT_READ, MAP_SHARED, file, 0);
  if (room == (char*)MAP_FAILED) return NULL;
  before = (kLarge - ((uintptr_t)room & (kLarge - 1))) & (kLarge - 1);
  begin = room + before;
  if (before != 0 && mmap(begin, size, PROT_READ, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) {
    munmap(room, size + kLarge);
    return NULL;
  }
  if (before != 0) munmap(room, before);
  used = (size + page - 1) / page * page;
  if (size + kLarge - before > used) munmap(begin + used, size + kLarge - before - used);
  return begin;
}

static inline void tuner_weights_close(tuner_weights* weights) {
  if (!weights || __atomic_sub_fetch(&weights->users, 1, __ATOMIC_ACQ_REL) != 0) return;
  munmap((void*)weights->bytes, (size_t)weights->size);
  free(weights);
}

static inline int32_t tuner_weights_of(const tuner_model* model, int file, tuner_weights* weights) {
  struct stat about;
  tuner_weights_header header;
  tuner_checksum sum;
  int32_t code;
  ssize_t got;
  memset(&header, 0, sizeof header);
  memset(&sum, 0, sizeof sum);
  if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) return TUNER_WEIGHTS_NO_ACCESS;
  got = read(file, &header, sizeof header);
  if (got < 0 || (got < (ssize_t)sizeof header && got != about.st_size)) return TUNER_WEIGHTS_NO_ACCESS;
  code = tuner_weights_check(model, &header, (int64_t)about.st_size);
  if (code != 0) return code;
  weights->size = (int64_t)about.st_size;
  weights->bytes = tuner_weights_map(file, (size_t)about.st_size);
  if (!weights->bytes) return TUNER_MODEL_NO_MEMORY;
  /* Reads every page once: damage is found now, and the first run finds them in memory. */
  tuner_checksum_add(&sum, weights->bytes + sizeof header, weights->size - (int64_t)sizeof header);
  if (tuner_checksum_end(&sum) == model->weights_checksum) return 0;
  munmap((void*)weights->bytes, (size_t)weights->size);
  return TUNER_WEIGHTS_DAMAGED;
}

/* Maps the model's weights file and checks it: whose it is, and that no byte has changed. */
static inline int32_t tuner_weights_open(const tuner_model* model, const char* path,
                                         tuner_weights** weights) {
  tuner_weights* made;
  int32_t code;
  int file;
  *weights = NULL;
  if (!tuner_model_is_known(model)) return TUNER_MODEL_OTHER_ABI;
  file = open(path, O_RDONLY | O_NONBLOCK); /* a FIFO must not make it wait */
  if (file < 0) return errno == ENOENT ? TUNER_WEIGHTS_NO_FILE : TUNER_WEIGHTS_NO_ACCESS;
  made = (tuner_weights*)malloc(sizeof *made);
  code = made ? tuner_weights_of(model, file, made) : TUNER_MODEL_NO_MEMORY;
  close(file);
  if (code != 0) {
    free(made);
    return code;
  }
  made->users = 1;
  *weights = made;
  return 0;
}

/* ---- contexts ---- */

/* Called before and after each step that runs, on the thread that runs the model. */
typedef void (*tuner_step_hook)(void* data, int32_t step, int32_t done);

/* An argument that each run sets. */
typedef struct tuner_late_arg {
  void** arg;
  const tuner_place* place;
} tuner_late_arg;

typedef struct tuner_context {
  const tuner_model* model;
  tuner_weights* weights;
  tuner_runtime runtime; /* with the context's own workspace */
  char* arena;
  void** args; /* of all steps, one after the other */
  tuner_late_arg* late;
  int32_t num_late;
  int32_t failed_step; /* of the last run; -1: none */
  int32_t every_step;
  tuner_step_hook hook;
  void* hook_data;
} tuner_context;

/* `bytes` of memory, aligned; large ones so that large pages can serve them, as many as they fill: what is behind them takes small
 * pages, and so no more than it needs. All pages are there at once. */
static inline void* tuner_context_memory(int64_t bytes) {
  const size_t kLarge = (size_t)2 << 20, border = (size_t)bytes >= kLarge ? kLarge : 64;
  const size_t rounded = ((size_t)bytes + border - 1) / border * border;
  void* const memory = aligned_alloc(border, rounded == 0 ? border : rounded);
#ifdef MADV_HUGEPAGE
  if (memory && border == kLarge) madvise(memory, (size_t)bytes / kLarge * kLarge, MADV_HUGEPAGE);
#endif
  if (memory) memset(memory, 0, (size_t)bytes);
  return memory;
}

/* NULL is allowed. */
static inline void tuner_context_destroy(tuner_context* context) {
  if (!context) return;
  free(context->runtime.workspace);
  free(context->arena);
  free(context->args);
  free(context->late);
  tuner_weights_close(context->weights);
  free(context);
}

/* Points the arguments of all steps to the arena and the weights. */
static inline void tuner_context_place(tuner_context* context) {
  const tuner_model* const model = context->model;
  void** arg = context->args;
  int32_t s, a;
  for (s = 0; s < model->num_steps; ++s)
    for (a = 0; a < model->steps[s].num_args; ++a, ++arg) {
      const tuner_place* const place = &model->steps[s].args[a];
      if (place->kind == TUNER_ARENA) {
        *arg = context->arena + place->offset;
      } else if (place->kind == TUNER_WEIGHTS) {
        *arg = (char*)context->weights->bytes + place->offset;
      } else {
        context->late[context->num_late].arg = arg;
        context->late[context->num_late++].place = place;
      }
    }
}

/* A context with its own arena and workspace. It keeps the weights open. `runtime`: the threads to run on (tuner_pool_runtime), which
 * must outlive it; NULL: the thread that runs it alone. */
static inline int32_t tuner_context_create(const tuner_model* model, tuner_weights* weights,
                                           const tuner_runtime* runtime, tuner_context** context) {
  tuner_context* made;
  int32_t s;
  size_t args = 0;
  *context = NULL;
  if (!tuner_model_is_known(model)) return TUNER_MODEL_OTHER_ABI;
  model = tuner_model_here(model);
  if (!model) return TUNER_MODEL_OTHER_CPU;
  if (runtime && runtime->abi_version != TUNER_ABI_VERSION) return -1;
  if (runtime && runtime->num_threads < 1) return -3;
  made = (tuner_context*)calloc(1, sizeof *made);
  if (!made) return TUNER_MODEL_NO_MEMORY;
  made->model = model;
  made->weights = weights;
  made->failed_step = -1;
  __atomic_fetch_add(&weights->users, 1, __ATOMIC_RELAXED);
  made->runtime = runtime ? *runtime : tuner_serial_runtime(NULL);
  made->runtime.workspace = tuner_context_memory(
      model->workspace_bytes + made->runtime.num_threads * model->workspace_bytes_per_thread);
  made->arena = (char*)tuner_context_memory(model->arena_bytes);
  for (s = 0; s < model->num_steps; ++s) args += (size_t)model->steps[s].num_args;
  made->args = (void**)malloc((args + 1) * sizeof *made->args);
  made->late = (tuner_late_arg*)malloc((args + 1) * sizeof *made->late);
  if (!made->runtime.workspace || !made->arena || !made->args || !made->late) {
    tuner_context_destroy(made);
    return TUNER_MODEL_NO_MEMORY;
  }
  tuner_context_place(made);
  *context = made;
  return 0;
}

/* Both at once: a context that has the weights file to itself until others share it. */
static inline int32_t tuner_model_create(const tuner_model* model, const char* weights_path,
                                         const tuner_runtime* runtime, tuner_context** context) {
  tuner_weights* weights;
  int32_t code;
  *context = NULL;
  if (!tuner_model_is_known(model)) return TUNER_MODEL_OTHER_ABI;
  if (!tuner_model_runs_here(model)) return TUNER_MODEL_OTHER_CPU; /* before the file is read */
  code = tuner_weights_open(model, weights_path, &weights);
  if (code != 0) return code;
  code = tuner_context_create(model, weights, runtime, context);
  tuner_weights_close(weights); /* the context keeps it */
  return code;
}

/* Whether later runs leave no step out (1) or those that no output needs (0, as a context begins): to check or to time each step. */
static inline void tuner_context_run_every_step(tuner_context* context, int32_t every_step) {
  context->every_step = every_step;
}

/* Calls `hook` before and after each step of later runs; NULL: no more. */
static inline void tuner_context_watch(tuner_context* context, tuner_step_hook hook, void* data) {
  context->hook = hook;
  context->hook_data = data;
}

/* 1 when all guards of the step hold. */
static inline int32_t tuner_step_is_needed(const tuner_context* context, const tuner_step* step,
                                           const void* const* inputs, void* const* outputs) {
  int32_t g;
  for (g = 0; g < step->num_guards; ++g) {
    const tuner_place* const place = &step->guards[g].place;
    const char* begin = context->arena;
    if (place->kind == TUNER_WEIGHTS) begin = context->weights->bytes;
    if (place->kind == TUNER_INPUT) begin = (const char*)inputs[place->index];
    if (place->kind == TUNER_OUTPUT) begin = (const char*)outputs[place->index];
    if ((begin[place->offset] != 0) != (step->guards[g].wanted != 0)) return 0;
  }
  return 1;
}

/* Runs the model: one pointer for each input and output of the table, in its order, aligned to 64 bytes. Outputs overlap nothing. */
static inline int32_t tuner_context_run(tuner_context* context, const void* const* inputs,
                                        void* const* outputs) {
  const tuner_model* const model = context->model;
  void* const* arg = context->args;
  int32_t i, s;
  context->failed_step = -1;
  for (i = 0; i < model->num_inputs; ++i)
    if ((uintptr_t)inputs[i] % 64 != 0) return TUNER_MODEL_UNALIGNED;
  for (i = 0; i < model->num_outputs; ++i)
    if ((uintptr_t)outputs[i] % 64 != 0) return TUNER_MODEL_UNALIGNED;
  for (i = 0; i < context->num_late; ++i) {
    const tuner_place* const place = context->late[i].place;
    char* const begin =
        place->kind == TUNER_INPUT ? (char*)inputs[place->index] : (char*)outputs[place->index];
    *context->late[i].arg = begin + place->offset;
  }
  for (s = 0; s < model->num_steps; arg += model->steps[s].num_args, ++s) {
    int32_t code;
    if (!context->every_step && !tuner_step_is_needed(context, &model->steps[s], inputs, outputs)) continue;
    if (context->hook) context->hook(context->hook_data, s, 0);
    code = model->steps[s].entry(arg, &context->runtime);
    if (context->hook) context->hook(context->hook_data, s, 1);
    if (code != 0) {
      context->failed_step = s;
      return code;
    }
  }
  return 0;
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TUNER_MODEL_H_ */
