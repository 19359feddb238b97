/* libtuner_runtime: tuned kernels inside an application. Plain C11 and C++; link with -ltuner_runtime.
 *
 *   tuner_source* source;                                       a database, or what `tuner build` wrote
 *   if (tuner_open("tuner.db", NULL, &source)) { puts(tuner_last_error()); ... }
 *   tuner_function* matmul;
 *   tuner_find(source, "{\"op\": \"matmul\", \"a\": [64, 256], \"b\": [256, 128], \"constant\": [\"b\"]}", &matmul);
 *   void* weights[] = {NULL, b, NULL};              operands in the workload's order: a, b, out
 *   tuner_packed* packed;
 *   tuner_pack(matmul, weights, &packed);           constants, once; `b` may be freed afterwards
 *   void* operands[] = {a, NULL, out};
 *   tuner_run(matmul, packed, operands);            any number of times, from any thread
 *
 * Threads. Any thread may call any function, but close, release or free a handle from one thread only, when
 * no other thread uses it. tuner_run() of the same function runs in several threads at once when each
 * call has outputs of its own. A kernel made for several threads uses a pool of the library; a call that
 * finds the pool busy with another call does all its work on its own thread. After fork() the child may go on
 * with the functions it has (each call then on its own thread) and must open sources of its own.
 *
 * Ownership. The caller owns each handle until it closes, releases or frees it. Functions and packed
 * constants stay valid after their source is closed. A string belongs to the handle that returned it.
 *
 * Errors. Functions return TUNER_OK or another code; tuner_last_error() then says what was wrong, in one
 * line. The library never ends the process for a mistake of the caller, prints nothing but messages
 * (tuner_options.message), and throws no exception.
 *
 * Environment, read by tuner_open(). See README.md.
 *   TUNER_CAPTURE=FILE.json  the workloads that were asked for are written there, as a job file that `tuner submit` takes
 *   TUNER_LOCK=FILE          tuner_options.lock, where that is NULL
 *   TUNER_VERIFY=1           tuner_options.verify, where that is 0
 */
#ifndef TUNER_RUNTIME_API_H_
#define TUNER_RUNTIME_API_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TUNER_API __attribute__((visibility("default")))

typedef enum tuner_code {
  TUNER_OK = 0,
  TUNER_INVALID =
      1, /* the caller's mistake: a workload, operand or option, a file that is no database of ours */
  TUNER_NOT_FOUND = 2, /* no such file, or nothing there serves this workload on this CPU */
  TUNER_FAILED = 3     /* what was read is damaged, the disk or the system failed */
} tuner_code;

typedef struct tuner_source tuner_source;     /* an opened database or bundle */
typedef struct tuner_function tuner_function; /* the kernel of one workload, loaded */
typedef struct tuner_packed tuner_packed;     /* constant operands as one function wants them */

typedef void (*tuner_message_fn)(void* user, const char* line);

/* Zero it and set what you need: {.struct_bytes = sizeof(tuner_options), .target = "cpu -threads=4"}. Strings
 * are copied. */
typedef struct tuner_options {
  size_t struct_bytes; /* sizeof(tuner_options) of the program's header */
  /* As in job files: "cpu" (also NULL: this host, one thread), "cpu -threads=4", "llvm -mcpu=haswell
   * -threads=2". For a bundle, NULL takes any kernel that this CPU can run. */
  const char* target;
  /* Compiled kernels are kept here for the next start and for other processes. NULL:
   * $XDG_CACHE_HOME/tuner/kernels or ~/.cache/tuner/kernels; "": nothing is kept. */
  const char* cache_dir;
  /* A folder with artifacts as workers keep them (DIGEST.so, DIGEST.json), looked at first for the very code
   * that was measured. NULL: none. */
  const char* artifact_dir;
  /* Ways of computing that kernels may use, with commas between: "direct" keeps to the sums as they are
   * defined, where Winograd convolutions round differently. NULL: any. */
  const char* algorithms;
  /* Receives each message instead of stderr: one line without a newline, from any thread. */
  tuner_message_fn message;
  void* message_user;
  /* What the times of the answer mean: "warm" (also NULL): constants lie in the caches, as far as they fit;
   * "cold": they come from memory, as in a network whose weights are larger than the caches. Ignored for a
   * bundle: this was decided when it was built. */
  const char* constants;
  /* A lock file, as `tuner lock` writes it. Kernels have its configs, whatever the database says; tuner_find() is
   * TUNER_NOT_FOUND for a workload without an entry, or whose config no longer exists, or where a bundle holds another
   * one. NULL: the file that TUNER_LOCK names; "": none. */
  const char* lock;
  /* 1: a kernel that tuner_find() makes is first raced against its default config, once on this machine: the verdict is
   * kept in cache_dir. If the kernel is slower by 10 % or more, or its answers differ, the default is used instead, and a
   * message says so. A locked kernel that is slower stays. This takes 0.3 s for each kernel, 4 s at most but for a longer
   * call, and makes operands of its own. A bundle needs its default kernels for it (tuner build --with-default). 0: if
   * TUNER_VERIFY is 1. -1: never. */
  int32_t verify;
} tuner_options;

/* "0.1.0". */
TUNER_API const char* tuner_version(void);
/* 1 when this library can compile kernels; 0 when it only loads them (built with TUNER_RUNTIME_CODEGEN=OFF).
 */
TUNER_API int tuner_can_compile(void);
/* The message of this thread's last failed call; "" before the first. Valid until this thread's next call. */
TUNER_API const char* tuner_last_error(void);

/* Opens a database file, or a bundle (the folder that `tuner build -o` wrote, or its manifest.json),
 * read-only. A daemon may write the database meanwhile. `path` NULL: the default database of `tuner`; where
 * there is none yet, every answer is a default config. An empty path is refused. `options` NULL: all defaults. */
TUNER_API tuner_code tuner_open(const char* path, const tuner_options* options, tuner_source** source);
TUNER_API void tuner_close(tuner_source* source); /* NULL is allowed */

/* The best kernel known for a workload: JSON as an entry of a job file has it (its "op" and shapes), or a key as
 * `tuner query --json` prints it. A kernel of your own is found in a bundle, by its key. An entry as TUNER_CAPTURE
 * wrote it is taken as it stands: its "target" must be that of the source, its "uses" are not looked at; other keys are
 * refused. Compiles or loads the kernel the first time (milliseconds to seconds); the same workload again gives the same
 * kernel at once, also when something better was tuned meanwhile: open another source to see that. Where the workload
 * itself is not tuned, the closest answer is used and a message says so, once for each workload in the life of the
 * process. */
TUNER_API tuner_code tuner_find(tuner_source* source, const char* workload, tuner_function** function);
TUNER_API void tuner_release(tuner_function* function); /* NULL is allowed */

typedef struct tuner_operand {
  const char* name;  /* "a", "weight", "out" */
  const char* role;  /* "input", "constant", "output", or "inout": added to what it holds */
  const char* dtype; /* "float32", "int8", ... */
  int32_t rank;
  const int64_t* shape; /* row-major */
  int64_t bytes;
} tuner_operand;

/* The operands of the workload, the same whatever kernel was chosen: inputs and constants in the order that
 * its operator has them in templates/workload/workload.h, then "out". */
TUNER_API int32_t tuner_num_operands(const tuner_function* function);
TUNER_API tuner_code tuner_get_operand(const tuner_function* function, int32_t index, tuner_operand* operand);

typedef struct tuner_answer {
  size_t struct_bytes;  /* set by the caller: sizeof(tuner_answer) */
  const char* workload; /* key */
  const char* target;   /* the target that the kernel was made for */
  const char* kind;     /* "exact", "same-family", "nearest", "portable", "default" or "locked" */
  const char* template_name;
  const char* config;
  const char* digest; /* SHA-256 of the code */
  const char* note;   /* "" when exact or locked; else what is lost, what is used instead, what to do */
  int32_t threads;
  int32_t compiled;      /* 1: by this process; 0: loaded */
  const char* algorithm; /* "direct", "winograd", "tf32", "tf32x3" */
  /* Of tuner_options.verify: "kept"; "slower", "wrong" (the default is used, but for a locked kernel that is slower);
   * "undecided" (a message says why); "default": the kernel has the default config anyway; "": it was not asked for. */
  const char* verdict;
  double raced_ns, raced_default_ns; /* of a call, in that race; 0: not timed */
} tuner_answer;
/* Tells which kernel was chosen and why. */
TUNER_API tuner_code tuner_describe(const tuner_function* function, tuner_answer* answer);

/* Copies or packs the constants: operands[i] of each operand whose role is "constant"; others are ignored.
 * A function without constants needs no tuner_pack(): give tuner_run() NULL as `packed`. */
TUNER_API tuner_code tuner_pack(const tuner_function* function, const void* const* operands,
                                tuner_packed** packed);
TUNER_API void tuner_free_packed(tuner_packed* packed); /* NULL is allowed */

/* Computes. operands[i] is aligned to 64 bytes (tuner_allocate), does not overlap an output, and is ignored
 * where the operand is constant. Inputs are only read. */
TUNER_API tuner_code tuner_run(const tuner_function* function, const tuner_packed* packed,
                               void* const* operands);

/* ---- compiled models: the folders that `tuner compile -o` writes ----
 *
 *   tuner_loaded_model* model;
 *   if (tuner_model_open("out", &model)) { puts(tuner_last_error()); ... }
 *   tuner_model_context* context;                    one for each thread that runs the model
 *   tuner_model_new_context(model, 0, &context);
 *   const void* inputs[] = {image};
 *   void* outputs[] = {scores};
 *   tuner_model_run(context, inputs, outputs);       any number of times
 *
 * The same without this library: the header beside the model's library. Opening a folder runs what is in it: one from elsewhere is
 * a program from elsewhere.
 *
 * Threads. A context belongs to one thread at a time; contexts of one model run at once and share its weights. After fork() the
 * child makes contexts of its own.
 * Ownership. Contexts stay valid after their model is closed. What tuner_model_get_input() points to is valid until both the model
 * and its contexts are gone. */
typedef struct tuner_loaded_model tuner_loaded_model;
typedef struct tuner_model_context tuner_model_context;

/* Loads the library of the folder and maps its weights, after checking that every file is whole and belongs to the others, and that
 * this CPU has the instructions. */
TUNER_API tuner_code tuner_model_open(const char* folder, tuner_loaded_model** model);
TUNER_API void tuner_model_close(tuner_loaded_model* model); /* NULL is allowed */

/* Inputs and outputs, in the order that tuner_model_run() takes them. */
TUNER_API int32_t tuner_model_num_inputs(const tuner_loaded_model* model);
TUNER_API int32_t tuner_model_num_outputs(const tuner_loaded_model* model);
TUNER_API tuner_code tuner_model_get_input(const tuner_loaded_model* model, int32_t index,
                                           tuner_operand* operand);
TUNER_API tuner_code tuner_model_get_output(const tuner_loaded_model* model, int32_t index,
                                            tuner_operand* operand);

/* Memory for the values between inputs and outputs, and `threads` threads to run on, the caller's among them; 0: as many as the model
 * was compiled for. All memory is allocated here; runs allocate none. */
TUNER_API tuner_code tuner_model_new_context(const tuner_loaded_model* model, int32_t threads,
                                             tuner_model_context** context);
TUNER_API void tuner_model_free_context(tuner_model_context* context); /* NULL is allowed */

/* Runs the model: a pointer for each input and output, row-major, aligned to 64 bytes (tuner_allocate). Outputs overlap nothing. */
TUNER_API tuner_code tuner_model_run(tuner_model_context* context, const void* const* inputs,
                                     void* const* outputs);

/* Memory aligned to 64 bytes, zeroed; NULL when there is none. */
TUNER_API void* tuner_allocate(size_t bytes);
TUNER_API void tuner_free(void* memory);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TUNER_RUNTIME_API_H_ */
